//! The program as its user meets it: output, JSON, complaints, exit codes.

use std::process::{Command, Output};

use serde_json::Value;

fn rdm(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rdm"))
        .args(arguments)
        .env_remove("RDM_DRIVER")
        .env_remove("RDM_SIM_DEVICES")
        .envs(environment.iter().copied())
        .output()
        .expect("the program can be started")
}

fn on_sim(arguments: &[&str]) -> Output {
    rdm(arguments, &[("RDM_DRIVER", "sim")])
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the output is text")
}

fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "--- stdout\n{}\n--- stderr\n{}",
        stdout(output),
        stderr(output)
    );
}

fn json(output: &Output) -> Value {
    expect_code(output, 0);
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn stress_reports_what_it_did_as_json() {
    let output = on_sim(&["stress", "--json", "--rounds", "5", "--threads", "4"]);
    let report = json(&output);
    assert_eq!(
        keys(&report),
        [
            "devices",
            "driver",
            "errors",
            "evaluations",
            "evaluations_per_second",
            "seconds",
            "threads",
            "wrong"
        ]
    );
    assert_eq!(report["driver"], "sim");
    assert_eq!(report["threads"], 4);
    assert_eq!(report["evaluations"], 4 * 5 * 4);
    assert_eq!(report["wrong"], 0);
    assert_eq!(report["errors"], 0);
    let seconds = report["seconds"].as_f64().expect("a number");
    let rate = report["evaluations_per_second"].as_f64().expect("a number");
    assert!(seconds > 0.0 && (rate * seconds - 80.0).abs() < 1.0);
    let devices = report["devices"].as_array().expect("a list");
    assert_eq!(devices.len(), 2);
    for (index, device) in devices.iter().enumerate() {
        assert_eq!(keys(device), ["constructions", "index", "name"]);
        assert_eq!(device["index"], index);
        assert_eq!(device["constructions"], 1);
        assert!(device["name"].as_str().is_some_and(|name| !name.is_empty()));
    }
    let told = stderr(&output);
    assert!(
        told.lines().next().is_some_and(|line| line.contains("sim")),
        "{told}"
    );
    for index in 0..2 {
        let line = format!("bound HIP device {index}:");
        assert_eq!(told.matches(&line).count(), 1, "{told}");
    }
}

#[test]
fn stress_shows_what_the_library_counted() {
    let asked = ["--rounds", "3", "--threads", "4", "--counters"];
    let report = json(&on_sim(&[&["stress", "--json"][..], &asked].concat()));
    let counters = &report["counters"];
    let count = |name: &str| counters[name].as_u64().unwrap_or_else(|| panic!("{name}"));
    // Each evaluation is four launches and waits once; each round is a new stream.
    let evaluations = report["evaluations"].as_u64().expect("a number");
    assert_eq!(count("launches"), 4 * evaluations);
    assert_eq!(count("streams_created"), 3 * 4);
    assert_eq!(count("device_constructions"), 2);
    assert_eq!(count("events_alive"), 0);
    assert_eq!(
        count("faults") + count("driver_errors") + count("launches_refused"),
        0
    );
    assert!(count("device_hits") > 0 && count("device_hits") < count("device_lookups"));
    assert!(count("compiles") + count("disk_cache_hits") > 0);

    let output = on_sim(&[&["stress"][..], &asked].concat());
    expect_code(&output, 0);
    let text = stdout(&output);
    for name in keys(counters) {
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        let value = line.and_then(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        assert!(value.is_some(), "{name}: {text}");
    }
    let without = stdout(&on_sim(&["stress", "--rounds", "1"]));
    assert!(!without.contains("device_lookups"), "{without}");
}

#[test]
fn the_first_line_says_which_driver_and_why() {
    let output = on_sim(&["stress", "--rounds", "2"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.contains("sim") && first.contains("RDM_DRIVER"),
        "{text}"
    );
    assert!(
        text.contains("64 evaluations on 8 threads") && text.contains("0 wrong values, 0 errors"),
        "{text}"
    );
}

#[test]
fn without_a_choice_the_first_line_names_what_was_found() {
    let output = rdm(&["info"], &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    let first = text.lines().next().unwrap_or_default();
    let report = json(&rdm(&["info", "--json"], &[]));
    let name = report["driver"]["name"].as_str().expect("a name");
    assert!(first.starts_with(&format!("driver {name} ")), "{text}");
    if name == "sim" {
        assert!(first.contains("simulated GPUs, since"), "{text}");
    }
}

#[test]
fn stress_ends_when_its_time_is_over() {
    let start = std::time::Instant::now();
    let report = json(&on_sim(&["stress", "--json", "--seconds", "0.5"]));
    assert!(start.elapsed().as_secs_f64() < 20.0);
    assert!(
        report["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds >= 0.5)
    );
    assert!(
        report["evaluations"]
            .as_u64()
            .is_some_and(|count| count > 0)
    );
}

#[test]
fn stress_uses_the_devices_it_is_told_to() {
    let report = json(&rdm(
        &["stress", "--json", "--devices", "3", "--rounds", "3"],
        &[("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "5")],
    ));
    assert_eq!(report["devices"].as_array().map(Vec::len), Some(3));
    // Fewer devices than the default: all there are.
    let report = json(&rdm(
        &["stress", "--json", "--rounds", "1"],
        &[("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "1")],
    ));
    assert_eq!(report["devices"].as_array().map(Vec::len), Some(1));
    // One thread and one round reach one device, and the other is not touched.
    let output = on_sim(&["stress", "--json", "--threads", "1", "--rounds", "1"]);
    let report = json(&output);
    assert_eq!(report["devices"][1]["constructions"], 0);
    assert_eq!(report["devices"][1]["name"], Value::Null);
    assert!(!stderr(&output).contains("bound HIP device 1"));
}

#[test]
fn info_describes_the_driver_and_its_devices() {
    let report = json(&rdm(
        &["info", "--json"],
        &[("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "3")],
    ));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["driver"]["name"], "sim");
    assert_eq!(report["driver"]["device_count"], 3);
    let devices = report["devices"].as_array().expect("a list");
    assert_eq!(devices.len(), 3);
    for (index, device) in devices.iter().enumerate() {
        assert_eq!(device["index"], index);
        assert_eq!(device["architecture"], "sim");
        assert_eq!(device["max_threads_per_block"], 1024);
        assert_eq!(device["faulted"], false);
    }
    let text = stdout(&on_sim(&["info"]));
    for word in ["driver", "Simulated GPU", "1024"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn info_on_one_device_touches_no_other() {
    let output = on_sim(&["info", "--json", "--device", "1"]);
    let report = json(&output);
    assert_eq!(report["devices"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["devices"][0]["index"], 1);
    let told = stderr(&output);
    assert!(told.contains("bound HIP device 1"), "{told}");
    assert!(!told.contains("bound HIP device 0"), "{told}");
}

#[test]
fn bad_arguments_are_named_with_what_would_be_right() {
    for (arguments, words) in [
        (
            &["stress", "--threads", "0"][..],
            &["'0'", "--threads", "1 to 1024"][..],
        ),
        (&["stress", "--threads", "1025"], &["'1025'", "1 to 1024"]),
        (&["stress", "--threads", "many"], &["'many'", "1 to 1024"]),
        (&["stress", "--threads=-1"], &["'-1'", "1 to 1024"]),
        (&["stress", "--rounds", "0"], &["'0'", "--rounds", "from 1"]),
        (
            &["stress", "--seconds", "0"],
            &["'0'", "--seconds", "above 0"],
        ),
        (&["stress", "--seconds", "nan"], &["'nan'", "above 0"]),
        (&["stress", "--seconds", "inf"], &["'inf'", "above 0"]),
        (
            &["stress", "--devices", "0"],
            &["'0'", "--devices", "from 1"],
        ),
        (
            &["stress", "--devices", "3"],
            &["--devices is 3", "has 2", "RDM_SIM_DEVICES"],
        ),
        (&["info", "--device", "2"], &["--device is 2", "0 to 1"]),
        (&["info", "--device", "-1"], &["--device is -1", "0 to 1"]),
        (&["stres"], &["stres", "stress"]),
        (&[], &["Usage"]),
    ] {
        let output = on_sim(arguments);
        expect_code(&output, 2);
        let complaint = stderr(&output);
        for word in words {
            assert!(
                complaint.contains(word),
                "{arguments:?}: no {word} in\n{complaint}"
            );
        }
    }
}

#[test]
fn what_can_not_run_ends_with_code_1() {
    let none = [("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "0")];
    let output = rdm(&["stress"], &none);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("sim has no device"), "{output:?}");
    // Looking at none is no failure.
    let report = json(&rdm(&["info", "--json"], &none));
    assert_eq!(report["devices"].as_array().map(Vec::len), Some(0));

    let output = rdm(&["stress"], &[("RDM_DRIVER", "vulkan")]);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("vulkan"), "{output:?}");
}

#[test]
fn help_and_version_are_there() {
    for arguments in [&["--help"][..], &["stress", "--help"], &["info", "--help"]] {
        let output = rdm(arguments, &[]);
        expect_code(&output, 0);
        assert!(stdout(&output).contains("Usage"));
    }
    let output = rdm(&["--version"], &[]);
    expect_code(&output, 0);
    assert_eq!(
        stdout(&output).trim(),
        format!("rdm {}", env!("CARGO_PKG_VERSION"))
    );
}
