//! `rdm bench` as its user meets it.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rdm"))
        .arg("bench")
        .args(arguments)
        .env("RDM_DRIVER", "sim")
        .env_remove("RDM_SIM_DEVICES")
        .envs(environment.iter().copied())
        .output()
        .expect("the program can be started")
}

/// As short as it gets: what is measured is not looked at here.
const SHORT: [&str; 5] = ["--rounds", "3", "--round-ms", "1", "--threads=1,2"];

fn short(arguments: &[&str]) -> Output {
    bench(&[arguments, &SHORT].concat(), &[])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is text")
}

fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "--- stdout\n{}\n--- stderr\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// A file of this test's own.
fn temporary(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

fn check_row(row: &Value) {
    let mut keys: Vec<&str> = row
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "baseline",
            "baseline_ns_per_op",
            "baseline_spread_ns",
            "device",
            "driver",
            "name",
            "ns_per_op",
            "per_second",
            "ratio",
            "ratio_spread",
            "reason",
            "rounds",
            "spread_ns",
            "threads",
            "unit"
        ]
    );
    let figure = |key: &str| {
        row[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key} of {row}"))
    };
    assert!(
        figure("ns_per_op") > 0.0 && figure("baseline_ns_per_op") > 0.0,
        "{row}"
    );
    assert!(
        figure("spread_ns") >= 0.0 && figure("baseline_spread_ns") >= 0.0,
        "{row}"
    );
    assert_eq!(row["unit"], "ns");
    assert_eq!(row["rounds"], 3);
    assert_eq!(row["driver"], "sim");
    // A ratio or a reason, never both.
    assert_ne!(row["ratio"].is_null(), row["reason"].is_null(), "{row}");
    if let Some(ratio) = row["ratio"].as_f64() {
        assert!(figure("ratio_spread") <= (ratio - 1.0).abs(), "{row}");
    }
}

#[test]
fn every_group_gives_a_row_for_each_pair_and_number_of_threads() {
    let output = short(&["all", "--json", "-"]);
    expect_code(&output, 0);
    let report: Value =
        serde_json::from_slice(&output.stdout).expect("one JSON list, nothing else");
    let rows = report.as_array().expect("a list");
    rows.iter().for_each(check_row);
    for (name, baseline, threads) in [
        ("device lookup", "thread-local memory alone", 1),
        ("device lookup", "shared mutex, hash map", 2),
        ("device and encoder lookup", "two locks", 2),
        ("event create and release", "driver create and destroy", 1),
        ("event create and release", "first-thread-only pool", 2),
        ("event record", "driver record", 2),
        (
            "module hit, compiling, p99.9",
            "one lock while compiling, compiling, p99.9",
            2,
        ),
        ("module hit, compiling, p99.9", "module hit, idle, p99.9", 1),
        ("launch", "driver launch", 2),
        ("make current", "driver set-device", 1),
        ("evaluation", "hand-written driver code", 2),
        ("first use", "one thread's construction", 64),
    ] {
        let count = rows
            .iter()
            .filter(|row| {
                row["name"] == name && row["baseline"] == baseline && row["threads"] == threads
            })
            .count();
        assert_eq!(count, 1, "{name} against {baseline} on {threads}");
    }
    let told = text(&output.stderr);
    assert!(told.starts_with("driver sim"), "{told}");
    assert!(told.contains("simulated: "), "{told}");
}

#[test]
fn a_table_says_the_driver_the_device_and_what_is_left_out() {
    let json = temporary("rows.json");
    let file = json.to_str().expect("a path that is text");
    let output = short(&["events", "launch", "--json", file]);
    expect_code(&output, 0);
    let told = text(&output.stdout);
    assert!(told.starts_with("driver sim"), "{told}");
    for word in [
        "device: Simulated GPU",
        "ratio",
        "event record",
        "launch",
        "rows of 3 rounds",
    ] {
        assert!(told.contains(word), "no {word} in\n{told}");
    }
    assert!(!told.contains("device and encoder lookup"), "{told}");
    // The table and the file say the same.
    let rows: Value = serde_json::from_slice(&std::fs::read(&json).expect("the file is there"))
        .expect("the file is JSON");
    let rows = rows.as_array().expect("a list");
    let refused = rows.iter().filter(|row| row["ratio"].is_null()).count();
    assert_eq!(told.matches("no ratio for ").count(), refused, "{told}");
    std::fs::remove_file(json).expect("the file can be removed");
}

#[test]
fn the_plot_is_an_svg_with_a_line_for_each_design() {
    let svg = temporary("plot.svg");
    let output = short(&[
        "lookups",
        "events",
        "--svg",
        svg.to_str().expect("a path that is text"),
    ]);
    expect_code(&output, 0);
    let drawn = std::fs::read_to_string(&svg).expect("the file is there");
    let document = roxmltree::Document::parse(&drawn).expect("well-formed XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let labels: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
        .filter_map(|node| node.text().map(str::trim))
        .collect();
    for label in [
        "Lookups",
        "Events, recorded",
        "threads",
        "device lookup (ours)",
        "two locks",
        "one locked pool",
        "driver record",
    ] {
        assert!(labels.contains(&label), "no {label} in {labels:?}");
    }
    let lines = document
        .descendants()
        .filter(|node| node.tag_name().name() == "polyline")
        .count();
    assert!(lines >= 8 + 7 + 2, "{lines} lines");
    std::fs::remove_file(svg).expect("the file can be removed");
}

#[test]
fn a_ratio_that_does_not_hold_ends_with_code_1() {
    let output = short(&["lookups", "--check-ratio", "lookups=0.0001"]);
    let told = text(&output.stderr);
    // On a busy machine there may be no ratio at all; then that is said.
    match output.status.code() {
        Some(0) => assert!(
            told.contains("holds: device and encoder lookup on 2 threads"),
            "{told}"
        ),
        _ => {
            expect_code(&output, 1);
            assert!(told.contains("no ratio, since"), "{told}");
        }
    }
    let output = short(&["lookups", "--check-ratio", "lookups=1e9"]);
    expect_code(&output, 1);
    let told = text(&output.stderr);
    assert!(
        told.contains("error: device and encoder lookup on 2 threads against two locks"),
        "{told}"
    );
}

#[test]
fn bad_arguments_are_named_with_what_would_be_right() {
    for (arguments, words) in [
        (&["lookup"][..], &["'lookup'", "lookups", "first-use"][..]),
        (&["--threads", "0"], &["'0'", "--threads", "1 to 1024"]),
        (&["--threads", "1,x"], &["'x'", "1 to 1024"]),
        (&["--threads", ""], &["--threads", "1 to 1024"]),
        (&["--rounds", "2"], &["'2'", "--rounds", "3 to 1000"]),
        (&["--round-ms", "0"], &["--round-ms", "1..=10000"]),
        (&["--device", "2"], &["--device is 2", "0 to 1"]),
        (&["--device", "-1"], &["--device is -1", "0 to 1"]),
        (
            &["--check-ratio", "lookups"],
            &["--check-ratio", "GROUP=RATIO"],
        ),
        (&["--check-ratio", "lookups=no"], &["above 0", "\"no\""]),
        (&["--check-ratio", "first-use=1"], &["lookups, events"]),
        (&["events", "--check-ratio", "lookups=1"], &["not measured"]),
        (
            &["lookups", "--threads", "1", "--check-ratio", "lookups=1"],
            &["on 2 threads", "--threads does not list"],
        ),
        (
            &["--json", "/nowhere/rows.json"],
            &["--json /nowhere/rows.json"],
        ),
        (
            &["--svg", "/nowhere/plot.svg"],
            &["--svg /nowhere/plot.svg"],
        ),
    ] {
        let output = bench(arguments, &[]);
        expect_code(&output, 2);
        let complaint = text(&output.stderr);
        for word in words {
            assert!(
                complaint.contains(word),
                "{arguments:?}: no {word} in\n{complaint}"
            );
        }
    }
}

#[test]
fn without_a_device_it_ends_with_code_1() {
    let output = bench(&["lookups"], &[("RDM_SIM_DEVICES", "0")]);
    expect_code(&output, 1);
    assert!(text(&output.stderr).contains("sim has no device"));
}

#[test]
fn what_the_driver_refuses_ends_the_run_and_is_named() {
    // The hundredth event of the process can not be made.
    let output = bench(
        &["events", "--threads=1", "--rounds=3", "--round-ms=1"],
        &[("RDM_SIM_INJECT", "hipEventCreateWithFlags:100:0:2:0")],
    );
    expect_code(&output, 1);
    let told = text(&output.stderr);
    assert!(
        told.contains("error: driver create and destroy, 1 threads: "),
        "{told}"
    );
}
