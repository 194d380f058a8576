//! What the tests share: the driver they run on, and child processes of the same test binary.
//!
//! What a test finds out about first uses, about faults or about settings of the whole process, it
//! finds out in a child: a test that is ignored, run by name in a fresh process of the same binary.

#![allow(dead_code)]

use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use rocm_device_map::{Config, DriverChoice, Status, choose_driver, configure};

/// Set for a child, so that a sweep over all ignored tests skips their bodies.
const CHILD_VARIABLE: &str = "RDM_TEST_CHILD";
/// How long a child may take. A hang is a failure.
const CHILD_BUDGET: Duration = Duration::from_secs(120);

/// Tells the user something, past libtest's capture.
pub fn tell(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The driver to test on: `RDM_DRIVER`, else a real one that has a GPU, else `sim`. None where the
/// one that was asked for by name has no device here: the test then skips, and this has said so.
pub fn driver_with_device(test: &str) -> Option<DriverChoice> {
    match choose_driver() {
        Ok(choice) if choice.device_count > 0 => {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| tell(&format!("tests run on {choice}")));
            Some(choice)
        }
        Ok(choice) => {
            tell(&format!("{test} is skipped: {choice}"));
            None
        }
        Err(error)
            if matches!(
                error.status(),
                Status::NoDriver | Status::NoDevice | Status::Permission
            ) =>
        {
            let named = std::env::var("RDM_DRIVER").unwrap_or_default();
            tell(&format!(
                "{test} is skipped: RDM_DRIVER asks for {named}, which can not be used here: {error}"
            ));
            None
        }
        Err(error) => panic!("no driver to test on: {error}"),
    }
}

/// Makes `sim` this process's driver, for tests that look into it.
pub fn use_sim(device_count: u8) {
    static CONFIGURED: Once = Once::new();
    CONFIGURED.call_once(|| {
        configure(&Config::new().driver("sim").sim_device_count(device_count))
            .expect("nothing has used the driver yet");
    });
}

/// Whether this process is a child that [`run_child`] started.
pub fn is_child() -> bool {
    std::env::var_os(CHILD_VARIABLE).is_some()
}

/// How a child ended, and what it wrote.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Outcome {
    /// Panics with all that the child wrote unless it ended well and came to its end.
    pub fn expect_done(&self, marker: &str) {
        assert!(
            self.status.success() && self.stdout.contains(marker),
            "the child ended with {} after {:?} and {} \"{marker}\"\n--- stdout\n{}\n--- stderr\n{}",
            self.status,
            self.elapsed,
            if self.stdout.contains(marker) {
                "printed"
            } else {
                "did not print"
            },
            self.stdout,
            self.stderr
        );
    }

    /// How many lines say that the device with this index was bound.
    pub fn bound_lines(&self, index: i32) -> usize {
        self.bound_indices()
            .iter()
            .filter(|&&bound| bound == index)
            .count()
    }

    /// The index in each line that says that a device was bound, in their order.
    pub fn bound_indices(&self) -> Vec<i32> {
        self.stderr
            .lines()
            .filter_map(|line| line.split_once("bound HIP device "))
            .map(|(_, rest)| {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().expect("a device index follows")
            })
            .collect()
    }
}

/// Runs an ignored test of this binary, by name, in a fresh process. Unless the environment says
/// otherwise it has no cache on disk, so that it compiles what it uses.
pub fn run_child(test: &str, environment: &[(&str, &str)]) -> Outcome {
    let program = std::env::current_exe().expect("this test binary has a path");
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--ignored", "--nocapture"])
        .arg("--test-threads=1")
        .env(CHILD_VARIABLE, "1")
        .env("RDM_CACHE_DIR", "")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().expect("the child can be started");
    // Both pipes are drained while it runs: a full pipe would stop it.
    let stdout = drain(child.stdout.take().expect("it is piped"));
    let stderr = drain(child.stderr.take().expect("it is piped"));
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        if start.elapsed() > CHILD_BUDGET {
            child.kill().expect("the child can be ended");
            child.wait().expect("the child can be waited for");
            panic!(
                "the child {test} took more than {CHILD_BUDGET:?}\n--- stdout\n{}\n--- stderr\n{}",
                stdout.join().unwrap_or_default(),
                stderr.join().unwrap_or_default()
            );
        }
        thread::sleep(Duration::from_millis(5));
    };
    Outcome {
        status,
        elapsed: start.elapsed(),
        stdout: stdout.join().expect("the reader does not panic"),
        stderr: stderr.join().expect("the reader does not panic"),
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The values in an array's bytes.
pub fn values(bytes: &[u8]) -> Vec<f32> {
    assert_eq!(bytes.len() % 4, 0, "{} bytes are no f32s", bytes.len());
    bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_ne_bytes(bytes.try_into().expect("four bytes")))
        .collect()
}
