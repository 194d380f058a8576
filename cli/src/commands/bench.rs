//! `rdm bench`: what the library costs, beside the designs that it replaces.

mod table;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rocm_device_map::{Device, DriverChoice, LogLevel, set_log_handler};
use rocm_device_map_benches::{self as benches, Check, Group, Options, Progress, Report};

use crate::output::{Failure, choose_and_tell, write, write_json};

const DEFAULT_THREADS: [u32; 5] = [1, 2, 4, 8, 16];
const MOST_THREADS: u32 = 1024;
const FEWEST_ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 1000;

/// Measures what the library costs, beside the designs that it replaces, in one run.
///
/// Each round runs ours and every baseline one after the other. A figure is the median of the rounds,
/// with how far a round was from it. RATIO is the baseline's time divided by ours, round by round; it
/// is left out, with the reason below the table, where its spread is larger than its effect. Leaves
/// the cache of compiled kernels alone. Takes a minute or two in all.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to measure: lookups, events, modules, launch, evaluations, first-use or all
    #[arg(value_name = "WHAT", default_value = "all", value_parser = what)]
    what: Vec<What>,
    /// Numbers of threads to measure on, each at most 1024
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = DEFAULT_THREADS, value_parser = thread_count)]
    threads: Vec<u32>,
    /// How often each is measured, at least 3
    #[arg(long, value_name = "N", default_value = "7", value_parser = round_count)]
    rounds: u32,
    /// How long each runs in a round, in milliseconds
    #[arg(long, value_name = "MS", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    round_ms: u32,
    /// The device to measure on, by its index
    #[arg(
        long,
        value_name = "INDEX",
        default_value = "0",
        allow_negative_numbers = true
    )]
    device: i32,
    /// Write a JSON list with an object for each row to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a plot of cost against threads to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Fail where a ratio is less than this, as lookups=20, or lookups@16=150 for 16 threads in place
    /// of 2; may be given several times
    #[arg(long, value_name = "GROUP=RATIO")]
    check_ratio: Vec<Check>,
}

/// One word on the command line.
#[derive(Clone, Copy)]
enum What {
    All,
    One(Group),
}

fn what(text: &str) -> Result<What, String> {
    if text == "all" {
        return Ok(What::All);
    }
    Group::from_name(text).map(What::One).ok_or_else(|| {
        let names: Vec<&str> = Group::ALL.iter().map(|group| group.name()).collect();
        format!("it is {} or all", names.join(", "))
    })
}

fn thread_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=MOST_THREADS) => Ok(number),
        _ => Err(format!(
            "it is whole numbers from 1 to {MOST_THREADS}, with commas between them"
        )),
    }
}

fn round_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ FEWEST_ROUNDS..=MOST_ROUNDS) => Ok(number),
        _ => Err(format!(
            "it is a whole number from {FEWEST_ROUNDS} to {MOST_ROUNDS}; fewer rounds tell no spread"
        )),
    }
}

fn groups(what: &[What]) -> Vec<Group> {
    let asked = |group: &Group| {
        what.iter().any(|what| match what {
            What::All => true,
            What::One(one) => one == group,
        })
    };
    Group::ALL.into_iter().filter(asked).collect()
}

/// What can not come true is said before anything is measured.
fn check_arguments(arguments: &Arguments, groups: &[Group]) -> Result<(), Failure> {
    for check in &arguments.check_ratio {
        let group = check.group.name();
        if !groups.contains(&check.group) {
            return Err(Failure::usage(format!(
                "--check-ratio names {group}, which is not measured; add it to WHAT"
            )));
        }
        if !arguments.threads.contains(&check.threads) {
            return Err(Failure::usage(format!(
                "--check-ratio looks at {group} on {} threads, which --threads does not list",
                check.threads
            )));
        }
    }
    Ok(())
}

/// Opened at the start, so that minutes of measuring are not lost to a wrong path.
struct Output<'a> {
    option: &'static str,
    path: &'a Path,
    file: File,
}

impl<'a> Output<'a> {
    fn open(option: &'static str, path: Option<&'a PathBuf>) -> Result<Option<Self>, Failure> {
        path.map(|path| {
            let file = File::create(path).map_err(|error| {
                Failure::usage(format!(
                    "{option} {} can not be written: {error}",
                    path.display()
                ))
            })?;
            Ok(Self { option, path, file })
        })
        .transpose()
    }

    fn write(mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| {
            Failure::new(format!(
                "{} {} can not be written: {error}",
                self.option,
                self.path.display()
            ))
        })
    }
}

/// On a terminal a bar; else nothing.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent}%  {msg}") {
            bar.set_style(style);
        }
        let above = bar.clone();
        let _ = set_log_handler(LogLevel::Info, move |_, line| {
            above.suspend(|| eprintln!("{line}"));
        });
        Self(bar)
    }
}

impl Progress for Bar {
    fn begin(&mut self, steps: u64) {
        self.0.set_length(steps);
    }

    fn step(&mut self, what: &str) {
        self.0.inc(1);
        self.0.set_message(what.to_owned());
    }
}

fn device_name(arguments: &Arguments, choice: &DriverChoice) -> Result<String, Failure> {
    let (driver, count) = (&choice.driver, choice.device_count);
    if count == 0 {
        return Err(Failure::new(format!(
            "the driver {driver} has no device to run on; RDM_DRIVER=sim simulates some"
        )));
    }
    if !(0..count).contains(&arguments.device) {
        return Err(Failure::usage(format!(
            "--device is {}; the driver {driver} has {count}, so it is 0 to {}",
            arguments.device,
            count - 1
        )));
    }
    Ok(Device::get(arguments.device)?.info()?.name)
}

fn first_use_command(driver: &str, device: i32, threads: u32) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rdm"));
    let mut command = Command::new(program);
    command
        .arg("bench-worker")
        .args(["--threads", &threads.to_string()])
        .args(["--device", &device.to_string()])
        .env("RDM_DRIVER", driver);
    command
}

/// What the reader of the figures has to know about them.
fn notes(choice: &DriverChoice, device: &str, threads: &[u32]) -> Vec<String> {
    let mut notes = vec![format!("device: {device}")];
    if choice.driver == "sim" {
        notes.push(
            "the driver is simulated: lookups and pools cost what they cost anywhere, what the driver does costs \
             what the simulation does"
                .to_owned(),
        );
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if threads.iter().any(|&threads| threads as usize > processors) {
        notes.push(format!(
            "this process has {processors} processors; on more threads than that they take turns"
        ));
    }
    if cfg!(debug_assertions) {
        notes.push("this is a debug build: its figures say nothing".to_owned());
    }
    notes
}

fn judge(checks: &[Check], report: &Report) -> bool {
    let mut all_hold = true;
    for check in checks {
        match check.judge(report) {
            Ok(text) => eprintln!("holds: {text}"),
            Err(text) => {
                eprintln!("error: {text}");
                all_hold = false;
            }
        }
    }
    all_hold
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let groups = groups(&arguments.what);
    check_arguments(arguments, &groups)?;
    // Modules are compiled anew on purpose, and would fill the user's cache.
    // SAFETY: no other thread of this process runs yet.
    unsafe { std::env::set_var("RDM_CACHE_DIR", "") };
    let to_stdout = arguments.json.as_deref() == Some(Path::new("-"));
    let choice = choose_and_tell(to_stdout)?;
    let mut bar = Bar::new();
    let device = device_name(arguments, &choice)?;
    let json = Output::open("--json", arguments.json.as_ref().filter(|_| !to_stdout))?;
    let svg = Output::open("--svg", arguments.svg.as_ref())?;
    let notes = notes(&choice, &device, &arguments.threads);
    if to_stdout {
        eprintln!("{}", notes.join("\n"));
    } else {
        write(&format!("{}\n", notes.join("\n")))?;
    }

    let start = Instant::now();
    let driver = choice.driver.clone();
    let options = Options {
        groups,
        threads: arguments.threads.clone(),
        rounds: arguments.rounds,
        round_time: Duration::from_millis(arguments.round_ms.into()),
        device_index: arguments.device,
        driver: choice.driver,
        device,
        first_use_process: &|threads| first_use_command(&driver, arguments.device, threads),
    };
    let report = benches::run(&options, &mut bar).map_err(Failure::new)?;
    bar.0.finish_and_clear();

    if let Some(output) = svg {
        output.write(&benches::svg(&report).map_err(Failure::new)?)?;
    }
    if let Some(output) = json {
        let text = serde_json::to_string_pretty(&report.rows)
            .map_err(|error| Failure::new(format!("can not write JSON: {error}")))?;
        output.write(&format!("{text}\n"))?;
    }
    if to_stdout {
        write_json(&report.rows)?;
    } else {
        let seconds = start.elapsed().as_secs_f64();
        let rows = report.rows.len();
        write(&table::text(&report.rows))?;
        write(&format!(
            "{rows} rows of {} rounds in {seconds:.1} s\n",
            arguments.rounds
        ))?;
    }
    Ok(ExitCode::from(u8::from(!judge(
        &arguments.check_ratio,
        &report,
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_measured_once_and_in_a_fixed_order() {
        let events = What::One(Group::Events);
        let lookups = What::One(Group::Lookups);
        assert_eq!(
            groups(&[events, lookups, events]),
            [Group::Lookups, Group::Events]
        );
        assert_eq!(groups(&[events, What::All]), Group::ALL);
    }
}
