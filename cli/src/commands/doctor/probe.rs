//! A look at each driver, in a child process, and what the child says on its way.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rocm_device_map::diagnosis::BUILT_IN_DRIVERS;
use serde::{Deserialize, Serialize};

/// Stands before each message in the child's output, among which a runtime may print what it likes.
pub const MARK: &str = "rdm-probe ";

/// Every driver that a build can have.
const DRIVERS: [&str; 3] = ["hip", "cuda", "sim"];

#[derive(Clone, Debug, Default, Serialize)]
pub struct DriverReport {
    pub name: String,
    pub built_in: bool,
    pub opened: bool,
    pub error: Option<DriverError>,
    pub attempts: Vec<Attempt>,
    pub runtime_path: String,
    pub compiler_path: String,
    pub versions: Versions,
    pub device_count: Option<i32>,
    pub devices: Vec<DeviceReport>,
    pub compiles: Vec<CompileReport>,
}

/// Why a driver could not be looked at to the end.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct DriverError {
    /// The library's status, such as `RDM_ERROR_NO_DRIVER`, or `CRASHED`, `CRASHED_AT_EXIT`, `HUNG`,
    /// `NOT_STARTED`.
    pub status: String,
    pub message: String,
    /// The driver's own error number, where one of its calls failed.
    pub driver_code: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attempt {
    pub name: String,
    pub result: String,
    pub used: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Versions {
    pub driver: Option<i32>,
    pub runtime: Option<i32>,
    pub compiler: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceReport {
    pub index: i32,
    pub error: Option<String>,
    pub name: String,
    pub architecture: String,
    pub total_memory_bytes: u64,
    pub multiprocessor_count: i32,
    pub warp_size: i32,
    pub max_threads_per_block: i32,
}

/// A small kernel compiled for an architecture; nothing was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompileReport {
    pub architecture: String,
    pub seconds: f64,
    pub error: Option<String>,
}

/// What the child is about to do: where it was when it crashed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Open,
    Device(i32),
    Compile(String),
    End,
}

impl Step {
    fn clause(&self) -> String {
        match self {
            Self::Open => "while it was opened".to_owned(),
            Self::Device(index) => format!("while device {index} was looked at"),
            Self::Compile(architecture) => {
                format!("while it compiled a kernel for {architecture}")
            }
            Self::End => "as the process ended".to_owned(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    Begin(Step),
    /// All attempts so far.
    Attempts(Vec<Attempt>),
    Failed(DriverError),
    Opened {
        device_count: i32,
        runtime_path: String,
        compiler_path: String,
        versions: Versions,
    },
    Device(DeviceReport),
    Compiled(CompileReport),
}

/// Looks at every driver, at the same time.
pub fn look_at_all(timeout: Duration) -> Vec<DriverReport> {
    thread::scope(|scope| {
        let threads: Vec<_> = DRIVERS
            .iter()
            .map(|&name| scope.spawn(move || look_at(name, timeout)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("looking at a driver does not panic"))
            .collect()
    })
}

fn look_at(name: &str, timeout: Duration) -> DriverReport {
    let mut report = DriverReport {
        name: name.to_owned(),
        built_in: BUILT_IN_DRIVERS.contains(&name),
        ..DriverReport::default()
    };
    if !report.built_in {
        return report;
    }
    match start(name) {
        Ok(child) => follow(child, &mut report, timeout),
        Err(error) => {
            report.error = Some(DriverError {
                status: "NOT_STARTED".to_owned(),
                message: format!("no process could be started to look at the driver: {error}"),
                driver_code: None,
            });
        }
    }
    report
}

/// This program's own file, or the name it was called by where the kernel does not tell.
fn own_program() -> PathBuf {
    std::env::current_exe()
        .unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default().into())
}

fn start(name: &str) -> std::io::Result<Child> {
    Command::new(own_program())
        .args(["doctor", "--probe", name])
        // It shall compile, and leave nothing behind.
        .env("RDM_CACHE_DIR", "")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

enum Heard {
    Line(String),
    /// What the child wrote to standard error, once that is closed.
    Complaint(String),
}

fn listen(child: &mut Child) -> Receiver<Heard> {
    let (sender, receiver): (Sender<Heard>, _) = channel();
    if let Some(output) = child.stdout.take() {
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(Heard::Line(line)).is_err() {
                    return;
                }
            }
        });
    }
    if let Some(mut output) = child.stderr.take() {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = output.read_to_end(&mut bytes);
            let _ = sender.send(Heard::Complaint(
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        });
    }
    receiver
}

/// Takes in what the child says until it ends, and ends it where it does not.
fn follow(mut child: Child, report: &mut DriverReport, timeout: Duration) {
    let receiver = listen(&mut child);
    let end = Instant::now() + timeout;
    let mut step = Step::Open;
    let mut complaint = String::new();
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Heard::Line(line)) => take_in(&line, report, &mut step),
            Ok(Heard::Complaint(text)) => complaint = text,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    let ended = wait_until(&mut child, end);
    let failure = match ended {
        None => {
            let _ = child.kill();
            let _ = child.wait();
            Some((
                "HUNG",
                format!("did not answer within {} s", timeout.as_secs()),
            ))
        }
        Some(status) if !status.success() => Some((
            if matches!(step, Step::End) {
                "CRASHED_AT_EXIT"
            } else {
                "CRASHED"
            },
            describe_end(status),
        )),
        Some(_) => None,
    };
    if let Some((status, what)) = failure {
        let said = last_line(&complaint);
        report.error = Some(DriverError {
            status: status.to_owned(),
            message: format!("the runtime {what} {}{said}", step.clause()),
            driver_code: None,
        });
    }
}

/// Its output may be closed a moment before it has ended.
fn wait_until(child: &mut Child, end: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
            _ => return None,
        }
    }
}

fn describe_end(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("crashed with signal {signal}{}", name_signal(signal)),
        (None, Some(code)) => format!("ended the process with code {code}"),
        (None, None) => "ended the process".to_owned(),
    }
}

fn name_signal(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        _ => "",
    }
}

fn last_line(text: &str) -> String {
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => {
            let short: String = line.trim().chars().take(200).collect();
            format!("; it printed: {short}")
        }
        None => String::new(),
    }
}

fn take_in(line: &str, report: &mut DriverReport, step: &mut Step) {
    // A runtime may have left a line of its own unfinished before it.
    let Some((_, text)) = line.split_once(MARK) else {
        return;
    };
    match serde_json::from_str(text) {
        Ok(Message::Begin(next)) => *step = next,
        Ok(Message::Attempts(attempts)) => report.attempts = attempts,
        Ok(Message::Failed(error)) => report.error = Some(error),
        Ok(Message::Opened {
            device_count,
            runtime_path,
            compiler_path,
            versions,
        }) => {
            report.opened = true;
            report.device_count = Some(device_count);
            report.runtime_path = runtime_path;
            report.compiler_path = compiler_path;
            report.versions = versions;
        }
        Ok(Message::Device(device)) => report.devices.push(device),
        Ok(Message::Compiled(compile)) => report.compiles.push(compile),
        Err(_) => {}
    }
}
