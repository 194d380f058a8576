//! `rdm warm`: compiles kernels ahead of time, into the cache that programs look in.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use rocm_device_map::{cache, probe_driver};
use serde::Serialize;

use crate::commands::warm_worker::{Answer, Job, Outcome};
use crate::output::{Failure, write, write_json};

/// How much of what a worker wrote to standard error is shown where it crashed.
const TAIL_BYTES: usize = 2000;

/// Compiles kernel sources ahead of time, into the cache on disk, without a GPU.
///
/// A program that is started later with that cache compiles none of them, as long as it gives the same
/// module name, source and options on a GPU of that architecture, with the same compiler. Compiles in
/// several processes at once. Exits with 1 where a source does not compile, and shows the compiler's
/// words.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files of HIP C++ source with extern "C" __global__ kernels
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The architecture to compile for, such as gfx1100, sm_90 or sim; may be given several times
    #[arg(long = "arch", value_name = "ARCH", required = true)]
    architectures: Vec<String>,
    /// The module's name, as the program gives it [default: the file's name without its folder]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// An option for the compiler, as the program gives it; may be given several times, in order
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// The driver whose compiler to use [default: as the architecture says: hip, cuda or sim]
    #[arg(long, value_name = "DRIVER")]
    driver: Option<String>,
    /// How many processes compile at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Print one JSON object to standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    cache: String,
    compiled: usize,
    found: usize,
    failed: usize,
    seconds: f64,
    kernels: Vec<KernelReport>,
}

#[derive(Serialize)]
struct KernelReport {
    file: String,
    name: String,
    architecture: String,
    driver: String,
    /// `compiled`, `found` or `failed`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    seconds: f64,
}

/// A job, where it came from, and what came of it.
struct Task {
    file: PathBuf,
    driver: String,
    job: Job,
    answer: Option<Answer>,
}

impl Task {
    fn is_stored(&self) -> bool {
        let outcome = self.answer.as_ref().map(|answer| &answer.outcome);
        !matches!(outcome, None | Some(Outcome::Failed { .. }))
    }

    fn title(&self) -> String {
        format!("{} for {}", self.file.display(), self.job.architecture)
    }
}

/// The driver that an architecture belongs to.
fn driver_of(architecture: &str) -> Option<&'static str> {
    if architecture.starts_with("gfx") {
        Some("hip")
    } else if architecture.starts_with("sm_") || architecture.starts_with("compute_") {
        Some("cuda")
    } else if architecture == "sim" {
        Some("sim")
    } else {
        None
    }
}

fn tasks_of(arguments: &Arguments) -> Result<Vec<Task>, Failure> {
    if arguments.name.is_some() && arguments.files.len() > 1 {
        return Err(Failure::usage(
            "--name names one module, and there are several files",
        ));
    }
    let mut architectures: Vec<&String> = Vec::new();
    for architecture in &arguments.architectures {
        if !architectures.contains(&architecture) {
            architectures.push(architecture);
        }
    }
    let mut tasks = Vec::new();
    for file in &arguments.files {
        let source = read_source(file)?;
        let name = match &arguments.name {
            Some(name) => name.clone(),
            None => own_name(file)?,
        };
        for &architecture in &architectures {
            let driver = match (&arguments.driver, driver_of(architecture)) {
                (Some(driver), _) => driver.clone(),
                (None, Some(driver)) => driver.to_owned(),
                (None, None) => {
                    return Err(Failure::usage(format!(
                        "--arch is {architecture}, and only gfx..., sm_... and sim tell the driver; say it with --driver"
                    )));
                }
            };
            tasks.push(Task {
                file: file.clone(),
                driver,
                job: Job {
                    name: name.clone(),
                    source: source.clone(),
                    options: arguments.options.clone(),
                    architecture: architecture.clone(),
                },
                answer: None,
            });
        }
    }
    Ok(tasks)
}

fn read_source(file: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::new(format!("can not read {}: {error}", file.display())))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{} is not text in UTF-8", file.display())))
}

fn own_name(file: &Path) -> Result<String, Failure> {
    let name = file.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!(
            "{} has no name that is text; give --name",
            file.display()
        ))
    })
}

/// A cache that can not be written to makes all this for nothing.
fn usable_cache() -> Result<String, Failure> {
    let info = cache::info()?;
    match info.problem {
        Some(problem) => Err(Failure::new(format!("no cache to compile into: {problem}"))),
        None if !info.enabled => Err(Failure::new("no cache to compile into")),
        None => Ok(info.path.display().to_string()),
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let mut tasks = tasks_of(arguments)?;
    let cache = usable_cache()?;
    let mut drivers: Vec<String> = tasks.iter().map(|task| task.driver.clone()).collect();
    drivers.sort_unstable();
    drivers.dedup();
    for driver in &drivers {
        probe_driver(driver)?;
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let workers = arguments.jobs.map_or(processors, usize::from);
    let bar = progress_bar(tasks.len() as u64);
    for driver in &drivers {
        let of_driver = tasks.iter_mut().filter(|task| task.driver == *driver);
        compile_all(driver, of_driver.collect(), workers, &bar)?;
    }
    bar.finish_and_clear();
    for driver in &drivers {
        let of_driver = tasks.iter_mut().filter(|task| task.driver == *driver);
        check_all(driver, of_driver)?;
    }
    let report = report_of(&tasks, cache, start.elapsed().as_secs_f64());
    tell(&report, arguments.json)?;
    Ok(ExitCode::from(u8::from(report.failed > 0)))
}

fn progress_bar(jobs: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(jobs);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} kernels  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

// ---- Workers ---------------------------------------------------------------------------------------

/// A process that compiles. It ends when its input does.
struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The end of what it writes to standard error.
    errors: JoinHandle<String>,
}

impl Worker {
    fn start(driver: &str) -> Result<Self, Failure> {
        let failed =
            |error| Failure::new(format!("can not start a process to compile in: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut process = Command::new(program)
            .args(["warm-worker", driver])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        );
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(Failure::new("a process to compile in has no pipes"));
        };
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
            errors: thread::spawn(move || read_tail(errors)),
        })
    }

    /// None where the process has ended in place of an answer.
    fn ask(&mut self, job: &Job) -> Option<Answer> {
        let text = serde_json::to_string(job).ok()?;
        writeln!(self.input, "{text}").ok()?;
        self.input.flush().ok()?;
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Ends the process and gives how it ended and what it said.
    fn end(mut self) -> String {
        drop(self.input);
        drop(self.output);
        let status = match self.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let said = self.errors.join().unwrap_or_default();
        format!(
            "the process that compiled it ended with {status}: {}",
            said.trim_end()
        )
    }
}

fn read_tail(mut pipe: impl Read) -> String {
    let mut tail: Vec<u8> = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut part) {
        tail.extend_from_slice(&part[..count]);
        let over = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..over);
    }
    String::from_utf8_lossy(&tail).into_owned()
}

/// Compiles the tasks in several processes. A task whose process crashes has failed; another process
/// goes on with the rest.
fn compile_all(
    driver: &str,
    tasks: Vec<&mut Task>,
    workers: usize,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let workers = workers.min(tasks.len());
    let queue = Mutex::new(VecDeque::from(tasks));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| compile_some(driver, &queue, bar)))
            .collect();
        let mut outcome = Ok(());
        for thread in threads {
            let ended = thread.join();
            outcome = outcome.and(ended.unwrap_or_else(|_| {
                Err(Failure::new(
                    "a thread that waits for a compile has panicked",
                ))
            }));
        }
        outcome
    })
}

fn compile_some(
    driver: &str,
    queue: &Mutex<VecDeque<&mut Task>>,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let mut worker = None;
    while let Some(task) = next() {
        let mut current = match worker.take() {
            Some(current) => current,
            None => Worker::start(driver)?,
        };
        let start = Instant::now();
        let answer = match current.ask(&task.job) {
            Some(answer) => {
                worker = Some(current);
                answer
            }
            None => Answer {
                outcome: Outcome::Failed {
                    error: current.end(),
                },
                seconds: start.elapsed().as_secs_f64(),
            },
        };
        if let Outcome::Failed { error } = &answer.outcome {
            bar.suspend(|| eprintln!("error: {}: {error}", task.title()));
        }
        task.answer = Some(answer);
        bar.inc(1);
    }
    if let Some(worker) = worker {
        worker.end();
    }
    Ok(())
}

/// Looks whether a fresh process finds what was compiled: the disk may be full, or the limit too low.
fn check_all<'a>(driver: &str, tasks: impl Iterator<Item = &'a mut Task>) -> Result<(), Failure> {
    let mut worker = Worker::start(driver)?;
    for task in tasks.filter(|task| task.is_stored()) {
        let found = worker.ask(&task.job).map(|answer| answer.outcome);
        if matches!(found, Some(Outcome::Found { .. })) {
            continue;
        }
        let said = worker.end();
        return Err(Failure::new(format!(
            "{} was compiled and is not in the cache: the disk may be full, or RDM_CACHE_MAX_BYTES too low for \
             all of them; {said}",
            task.title()
        )));
    }
    worker.end();
    Ok(())
}

// ---- The report ------------------------------------------------------------------------------------

fn report_of(tasks: &[Task], cache: String, seconds: f64) -> Report {
    let kernels: Vec<KernelReport> = tasks.iter().map(kernel_report).collect();
    let count = |outcome| {
        let with_outcome = kernels.iter().filter(|kernel| kernel.outcome == outcome);
        with_outcome.count()
    };
    Report {
        cache,
        compiled: count("compiled"),
        found: count("found"),
        failed: count("failed"),
        seconds,
        kernels,
    }
}

fn kernel_report(task: &Task) -> KernelReport {
    let never_asked = Outcome::Failed {
        error: "it was not compiled".to_owned(),
    };
    let outcome = task.answer.as_ref().map(|answer| answer.outcome.clone());
    let (outcome, code_bytes, error) = match outcome.unwrap_or(never_asked) {
        Outcome::Compiled { code_bytes } => ("compiled", Some(code_bytes), None),
        Outcome::Found { code_bytes } => ("found", Some(code_bytes), None),
        Outcome::Failed { error } => ("failed", None, Some(error)),
    };
    KernelReport {
        file: task.file.display().to_string(),
        name: task.job.name.clone(),
        architecture: task.job.architecture.clone(),
        driver: task.driver.clone(),
        outcome,
        code_bytes,
        error,
        seconds: task.answer.as_ref().map_or(0.0, |answer| answer.seconds),
    }
}

fn tell(report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        return write_json(report);
    }
    let mut text = String::new();
    for kernel in report
        .kernels
        .iter()
        .filter(|kernel| kernel.error.is_none())
    {
        text.push_str(&format!(
            "{} for {}: {} in {:.2} s\n",
            kernel.file, kernel.architecture, kernel.outcome, kernel.seconds
        ));
    }
    text.push_str(&format!(
        "{} compiled, {} found, {} failed in {:.1} s; the cache is {}\n",
        report.compiled, report.found, report.failed, report.seconds, report.cache
    ));
    write(&text)
}
