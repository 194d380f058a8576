//! `rdm cache` and `rdm warm` as their user meets them, and the programs that are started after them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use rocm_device_map::{Module, ModuleSource, probe_driver};
use serde_json::Value;

/// A folder with sources and a cache to be, removed at its end.
struct Bench(PathBuf);

impl Bench {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("rdm-cli-cache-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file can be written");
        path.to_str().expect("a path that is text").to_owned()
    }

    /// Sources of kernels, whose files are named `kernel_0.hip` and so on.
    fn write_kernels(&self, count: usize) -> Vec<String> {
        let write = |number| self.write(&kernel_name(number), &kernel_text(number));
        (0..count).map(write).collect()
    }

    fn rdm_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_rdm"))
            .args(arguments)
            .env_remove("RDM_DRIVER")
            .env_remove("RDM_CACHE_MAX_BYTES")
            .env("RDM_CACHE_DIR", self.cache())
            .envs(environment.iter().copied())
            .output()
            .expect("the program can be started")
    }

    fn rdm(&self, arguments: &[&str]) -> Output {
        self.rdm_with(arguments, &[])
    }

    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.cache()).expect("there is a cache");
        let paths = files.map(|file| file.expect("an entry").path());
        let mut entries: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "code"))
            .collect();
        entries.sort();
        entries
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kernel_name(number: usize) -> String {
    format!("kernel_{number}.hip")
}

fn kernel_text(number: usize) -> String {
    format!(
        "extern \"C\" __global__ void fill(float *out) {{ out[threadIdx.x] = {number}.5f * FACTOR; }}\n"
    )
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

fn json(output: &Output, code: i32) -> Value {
    expect_code(output, code);
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

// ---- A program that is started later -------------------------------------------------------------

const PROGRAM_VARIABLE: &str = "RDM_TEST_PROGRAM";

/// What a program does that gets the code of so many kernels for these architectures, as it compiled
/// and found them: (compiled, found).
fn run_program(bench: &Bench, driver: &str, count: usize, architectures: &[&str]) -> (u64, u64) {
    let output = Command::new(std::env::current_exe().expect("this test binary has a path"))
        .args(["program", "--exact", "--ignored", "--nocapture"])
        .env("RDM_DRIVER", driver)
        .env("RDM_CACHE_DIR", bench.cache())
        .env(
            PROGRAM_VARIABLE,
            format!("{count} {}", architectures.join(" ")),
        )
        .output()
        .expect("the program can be started");
    expect_code(&output, 0);
    let stdout = text(&output.stdout);
    let (_, counts) = stdout.split_once("COUNTS ").expect("it came to its end");
    let mut numbers = counts
        .split_whitespace()
        .map_while(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
#[ignore = "the program that the other tests start"]
fn program() {
    let Ok(wanted) = std::env::var(PROGRAM_VARIABLE) else {
        return;
    };
    let mut words = wanted.split(' ');
    let count: usize = words.next().unwrap().parse().unwrap();
    let architectures: Vec<&str> = words.collect();
    for number in 0..count {
        let source = ModuleSource::new(&kernel_name(number), &kernel_text(number))
            .and_then(|source| source.option("-DFACTOR=2"))
            .unwrap();
        for architecture in &architectures {
            assert!(!source.code_for(architecture).unwrap().is_empty());
        }
    }
    println!(
        "COUNTS {} {}",
        Module::compile_count().unwrap(),
        Module::disk_hit_count().unwrap()
    );
}

/// Warms kernels for the architectures, and then looks whether a program compiles any.
fn warm_and_run(driver: &str, architectures: &[&str]) {
    const KERNELS: usize = 4;
    let bench = Bench::new();
    let files = bench.write_kernels(KERNELS);
    let mut arguments = vec!["warm", "--json", "--option", "-DFACTOR=2", "--jobs", "2"];
    for architecture in architectures {
        arguments.extend(["--arch", architecture]);
    }
    arguments.extend(files.iter().map(String::as_str));
    let jobs = KERNELS * architectures.len();

    let report = json(&bench.rdm(&arguments), 0);
    assert_eq!(report["compiled"], jobs);
    assert_eq!(report["found"], 0);
    assert_eq!(report["failed"], 0);
    assert_eq!(report["cache"], bench.cache().to_str().unwrap());
    let kernels = report["kernels"].as_array().expect("a list");
    assert_eq!(kernels.len(), jobs);
    for kernel in kernels {
        assert_eq!(kernel["outcome"], "compiled");
        assert_eq!(kernel["driver"], driver);
        assert!(kernel["code_bytes"].as_u64().expect("a number") > 0);
    }
    assert_eq!(bench.entries().len(), jobs);
    let program = run_program(&bench, driver, KERNELS, architectures);
    assert_eq!(program, (0, jobs as u64));
    // A second time there is nothing to do.
    let report = json(&bench.rdm(&arguments), 0);
    assert_eq!(
        (&report["compiled"], &report["found"]),
        (&0.into(), &jobs.into())
    );
}

#[test]
fn a_program_started_after_warm_compiles_nothing() {
    warm_and_run("sim", &["sim"]);
}

#[test]
fn a_program_started_after_warm_for_two_amd_architectures_compiles_nothing() {
    if let Err(error) = probe_driver("hip") {
        eprintln!("skipped: {error}");
        return;
    }
    warm_and_run("hip", &["gfx90a", "gfx1030"]);
}

#[test]
fn warm_gives_the_compilers_words_and_fails() {
    let bench = Bench::new();
    let right = bench.write(
        "right.hip",
        "extern \"C\" __global__ void k(int *out) { *out = 1; }\n",
    );
    let wrong = bench.write(
        "wrong.hip",
        "extern \"C\" __global__ void k(int *out) {\n  *out = nobody;\n}\n",
    );
    let output = bench.rdm(&["warm", "--arch", "sim", &right, &wrong]);
    expect_code(&output, 1);
    let stderr = text(&output.stderr);
    for part in ["wrong.hip for sim", "wrong.hip:2", "nobody"] {
        assert!(stderr.contains(part), "no \"{part}\" in: {stderr}");
    }
    let stdout = text(&output.stdout);
    assert!(stdout.contains("1 compiled, 0 found, 1 failed"), "{stdout}");
    assert_eq!(bench.entries().len(), 1);
    let report = json(
        &bench.rdm(&["warm", "--json", "--arch", "sim", &right, &wrong]),
        1,
    );
    assert_eq!(report["found"], 1);
    assert_eq!(report["kernels"][1]["outcome"], "failed");
    let error = report["kernels"][1]["error"].as_str().expect("a text");
    assert!(error.contains("nobody"), "{error}");
}

#[test]
fn warm_refuses_what_it_can_not_do() {
    let bench = Bench::new();
    let file = bench.write(
        "k.hip",
        "extern \"C\" __global__ void k(int *out) { *out = 1; }\n",
    );
    let file = file.as_str();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["warm", file], 2, "--arch"),
        (&["warm", "--arch", "sim"], 2, "FILE"),
        (&["warm", "--arch", "weird", file], 2, "--driver"),
        (
            &["warm", "--arch", "sim", "--name", "n", file, file],
            2,
            "--name",
        ),
        (&["warm", "--arch", "sim", "--jobs", "0", file], 2, "--jobs"),
        (
            &["warm", "--arch", "sim", "/no/such/file"],
            1,
            "/no/such/file",
        ),
        (
            &["warm", "--arch", "sim", "--driver", "metal", file],
            1,
            "metal",
        ),
        (
            &["warm", "--arch", "sim", "--option", "-fnever", file],
            1,
            "-fnever",
        ),
    ];
    for (arguments, code, part) in cases {
        let output = bench.rdm(arguments);
        expect_code(&output, code);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
    let arguments = ["warm", "--arch", "sim", file];
    for (variable, value, part) in [
        ("RDM_CACHE_DIR", "", "RDM_CACHE_DIR is empty"),
        ("RDM_CACHE_DIR", "relative", "does not begin with"),
        ("RDM_CACHE_DIR", "/proc/no/cache", "/proc"),
        ("RDM_CACHE_MAX_BYTES", "10", "RDM_CACHE_MAX_BYTES"),
    ] {
        let output = bench.rdm_with(&arguments, &[(variable, value)]);
        expect_code(&output, 1);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(part), "{variable}={value}: {stderr}");
    }
}

/// A compiler that kills whoever runs it takes only its own job with it.
#[test]
fn warm_survives_a_compiler_that_crashes() {
    let bench = Bench::new();
    let files = bench.write_kernels(3);
    let compiler = bench.write(
        "compiler++",
        "#!/bin/sh
for argument in \"$@\"; do
  case $argument in
    /*) grep -q ' 1.5f' \"$argument\" 2>/dev/null && kill -9 $PPID ;;
  esac
done
exec c++ \"$@\"
",
    );
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&compiler, executable).unwrap();
    let mut arguments = vec![
        "warm",
        "--json",
        "--arch",
        "sim",
        "--option",
        "-DFACTOR=2",
        "--jobs",
        "1",
    ];
    arguments.extend(files.iter().map(String::as_str));
    let output = bench.rdm_with(&arguments, &[("RDM_SIM_COMPILER", &compiler)]);
    let report = json(&output, 1);
    assert_eq!(
        (&report["compiled"], &report["failed"]),
        (&2.into(), &1.into())
    );
    let error = report["kernels"][1]["error"].as_str().expect("a text");
    assert!(error.contains("signal: 9"), "{error}");
}

// ---- rdm cache -----------------------------------------------------------------------------------

fn warm_some(bench: &Bench, count: usize) {
    let files = bench.write_kernels(count);
    let mut arguments = vec!["warm", "--arch", "sim", "--option", "-DFACTOR=2"];
    arguments.extend(files.iter().map(String::as_str));
    expect_code(&bench.rdm(&arguments), 0);
}

fn size_of(paths: &[PathBuf]) -> u64 {
    paths
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum()
}

#[test]
fn cache_shows_what_there_is() {
    let bench = Bench::new();
    let before = json(&bench.rdm(&["cache", "show", "--json"]), 0);
    assert_eq!(before["enabled"], true);
    assert_eq!(before["entries"], 0);
    assert_eq!(before["problem"], Value::Null);
    assert!(!bench.cache().exists(), "a look makes no folder");
    warm_some(&bench, 2);
    let report = json(&bench.rdm(&["cache", "show", "--json"]), 0);
    assert_eq!(report["entries"], 2);
    assert_eq!(report["size_bytes"], size_of(&bench.entries()));
    assert_eq!(report["limit_bytes"], 1u64 << 30);
    assert_eq!(report["path"], bench.cache().to_str().unwrap());
    let output = bench.rdm(&["cache", "show"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("2 kernels, "), "{stdout}");
    assert!(stdout.contains(" KiB of at most 1.00 GiB"), "{stdout}");
    let off = bench.rdm_with(&["cache", "show"], &[("RDM_CACHE_DIR", "")]);
    expect_code(&off, 0);
    assert!(text(&off.stdout).contains("no cache on disk: RDM_CACHE_DIR is empty"));
}

fn truncate(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(50).unwrap();
}

#[test]
fn cache_checks_and_removes_what_is_damaged() {
    let bench = Bench::new();
    warm_some(&bench, 3);
    let entries = bench.entries();
    expect_code(&bench.rdm(&["cache", "check"]), 0);
    truncate(&entries[1]);
    let output = bench.rdm(&["cache", "check"]);
    expect_code(&output, 1);
    let name = entries[1].file_name().unwrap().to_str().unwrap();
    let stdout = text(&output.stdout);
    assert!(stdout.contains(&format!("{name}: damaged\n")), "{stdout}");
    assert!(stdout.contains("3 kernels"), "{stdout}");
    let report = json(&bench.rdm(&["cache", "check", "--json"]), 1);
    assert_eq!(report["damaged"], serde_json::json!([name]));
    let report = json(&bench.rdm(&["cache", "check", "--remove", "--json"]), 0);
    assert_eq!(
        (&report["entries"], &report["removed"]),
        (&3.into(), &true.into())
    );
    assert_eq!(bench.entries().len(), 2);
    expect_code(&bench.rdm(&["cache", "check"]), 0);
}

#[test]
fn cache_prunes_and_clears() {
    let bench = Bench::new();
    let nothing = json(&bench.rdm(&["cache", "clear", "--json"]), 0);
    assert_eq!(nothing["removed"], 0);
    warm_some(&bench, 4);
    let all = size_of(&bench.entries());
    let most = (all - 1).to_string();
    let report = json(&bench.rdm(&["cache", "prune", "--to", &most, "--json"]), 0);
    assert_eq!(
        (&report["removed"], &report["entries"]),
        (&1.into(), &3.into())
    );
    let left = size_of(&bench.entries());
    assert_eq!(report["size_bytes"], left);
    assert_eq!(report["removed_bytes"], all - left);
    // Without a size it is the limit.
    let limit = (left - 1).to_string();
    let environment = [("RDM_CACHE_MAX_BYTES", limit.as_str())];
    let output = bench.rdm_with(&["cache", "prune", "--json"], &environment);
    assert_eq!(json(&output, 0)["entries"], 2);
    let output = bench.rdm(&["cache", "clear"]);
    expect_code(&output, 0);
    assert!(text(&output.stdout).contains("removed 2 kernels"));
    assert_eq!(bench.entries().len(), 0);
}

#[test]
fn cache_says_why_there_is_none() {
    let bench = Bench::new();
    for command in [["cache", "check"], ["cache", "prune"], ["cache", "clear"]] {
        let output = bench.rdm_with(&command, &[("RDM_CACHE_DIR", "")]);
        expect_code(&output, 1);
        assert!(text(&output.stderr).contains("error: no cache on disk: RDM_CACHE_DIR is empty"));
    }
    expect_code(&bench.rdm(&["cache"]), 2);
    let output = bench.rdm(&["cache", "prune", "--to", "1.5G"]);
    expect_code(&output, 2);
    assert!(text(&output.stderr).contains("whole number of bytes"));
}
