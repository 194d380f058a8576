//! `rdm stress`: many threads, each on new streams, on several devices, checking every element.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rocm_device_map::probe::{add, arange_f32, array_to_raw_bytes, full_like, multiply_scalar};
use rocm_device_map::streams::{
    install_thread_local_default_stream, new_thread_local_stream_on_gpu,
};
use rocm_device_map::{
    Counters, Device, DriverChoice, counters, default_log_level, set_log_handler,
};
use serde::{Serialize, Serializer};

use crate::output::{Failure, choose_and_tell, write, write_json};

const ELEMENTS: u16 = 256;
const EVALUATIONS_IN_A_ROUND: u32 = 4;
const DEFAULT_SECONDS: f64 = 10.0;
const MOST_THREADS: u32 = 1024;
/// How many complaints are printed. All are counted.
const COMPLAINTS_SHOWN: usize = 5;

/// Evaluates on many threads at once and checks every element.
///
/// Each round, each thread creates a new stream on the next device, installs it as its default and
/// evaluates `arange * 2 + 1` four times. The threads start together, so that the devices' first uses
/// race with each other and with lookups. Without --rounds and --seconds it runs for 10 seconds.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many devices to use, from the first on [default: 2, or all there are if fewer]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    devices: Option<u32>,
    /// How many threads to run, at most 1024
    #[arg(long, value_name = "N", default_value = "8", value_parser = thread_count)]
    threads: u32,
    /// End after so many rounds on each thread
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    rounds: Option<u32>,
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// Show at the end what the library counted
    #[arg(long)]
    counters: bool,
    /// Print one JSON object to standard output
    #[arg(long)]
    json: bool,
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("it is a whole number from 1 to {}", u32::MAX)),
        Ok(number) => Ok(number),
    }
}

fn thread_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=MOST_THREADS) => Ok(number),
        _ => Err(format!("it is a whole number from 1 to {MOST_THREADS}")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok(number),
        _ => Err("it is a number of seconds above 0, and at most 1000000".to_owned()),
    }
}

#[derive(Serialize)]
struct Report {
    driver: String,
    devices: Vec<DeviceReport>,
    threads: u32,
    evaluations: u64,
    wrong: u64,
    errors: u64,
    seconds: f64,
    evaluations_per_second: f64,
    /// With --counters.
    #[serde(serialize_with = "by_name", skip_serializing_if = "Option::is_none")]
    counters: Option<Counters>,
}

#[derive(Serialize)]
struct DeviceReport {
    index: i32,
    /// None for a device that no thread came to use.
    name: Option<String>,
    constructions: u64,
}

/// What the threads count together.
struct Tally {
    evaluations: AtomicU64,
    rounds: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
    threads_done: AtomicU64,
    out_of_time: AtomicBool,
    complaints: Mutex<Vec<String>>,
}

impl Tally {
    fn new() -> Self {
        Self {
            evaluations: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            threads_done: AtomicU64::new(0),
            out_of_time: AtomicBool::new(false),
            complaints: Mutex::new(Vec::new()),
        }
    }

    fn complain(&self, complaint: impl FnOnce() -> String) {
        if let Ok(mut complaints) = self.complaints.lock() {
            if complaints.len() < COMPLAINTS_SHOWN {
                complaints.push(complaint());
            }
        }
    }

    /// Compares every element of one evaluation.
    fn check(&self, thread: u32, device: i32, bytes: &[u8]) {
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        let expected = (0..ELEMENTS).map(|index| f32::from(index) * 2.0 + 1.0);
        let mut found = bytes
            .chunks_exact(4)
            .map(|bytes| f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let mut wrong = 0;
        for (index, expected) in expected.enumerate() {
            let found = found.next();
            if found != Some(expected) {
                wrong += 1;
                self.complain(|| {
                    format!(
                        "thread {thread}, device {device}: element {index} is {}, not {expected}",
                        found.map_or_else(|| "missing".to_owned(), |value| value.to_string())
                    )
                });
            }
        }
        wrong += found.count() as u64;
        if wrong > 0 {
            self.wrong.fetch_add(wrong, Ordering::Relaxed);
        }
    }
}

/// What one thread does. It ends with its first error: after a fault there would be no end of them.
fn work(thread: u32, devices: u32, rounds: u32, tally: &Tally) {
    for round in 0..rounds {
        let device = ((u64::from(thread) + u64::from(round)) % u64::from(devices)) as i32;
        if let Err(error) = run_round(thread, device, tally) {
            tally.errors.fetch_add(1, Ordering::Relaxed);
            tally.complain(|| format!("thread {thread}, device {device}: {error}"));
            return;
        }
        tally.rounds.fetch_add(1, Ordering::Relaxed);
        if tally.out_of_time.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn run_round(thread: u32, device: i32, tally: &Tally) -> Result<(), Box<dyn std::error::Error>> {
    let stream = new_thread_local_stream_on_gpu(device)?;
    install_thread_local_default_stream(Some(&stream))?;
    for _ in 0..EVALUATIONS_IN_A_ROUND {
        let range = arange_f32(0.0, f32::from(ELEMENTS), 1.0);
        let result = add(&multiply_scalar(&range, 2.0), &full_like(&range, 1.0));
        tally.check(thread, device, &array_to_raw_bytes(&result)?);
        if tally.out_of_time.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// The progress of the run on a terminal, and the library's log lines above it.
fn progress_bar(rounds: Option<u64>, limit: Option<Duration>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (length, unit) = match (rounds, limit) {
        (Some(rounds), _) => (rounds, "rounds"),
        (None, limit) => (limit.unwrap_or_default().as_millis() as u64, "ms"),
    };
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit}  {{msg}}");
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    let above = bar.clone();
    let _ = set_log_handler(default_log_level(), move |_, line| {
        above.suspend(|| eprintln!("{line}"));
    });
    bar
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let choice = choose_and_tell(arguments.json)?;
    let devices = device_count(arguments.devices, &choice)?;
    let limit = match (arguments.rounds, arguments.seconds) {
        (Some(_), None) => None,
        (_, seconds) => Some(Duration::from_secs_f64(seconds.unwrap_or(DEFAULT_SECONDS))),
    };
    let tally = Tally::new();
    let elapsed = run_threads(arguments, devices, limit, &tally)?;

    let seconds = elapsed.as_secs_f64();
    let evaluations = tally.evaluations.load(Ordering::Relaxed);
    let report = Report {
        driver: choice.driver,
        devices: (0..devices as i32)
            .map(describe)
            .collect::<Result<_, _>>()?,
        threads: arguments.threads,
        evaluations,
        wrong: tally.wrong.load(Ordering::Relaxed),
        errors: tally.errors.load(Ordering::Relaxed),
        seconds,
        evaluations_per_second: evaluations as f64 / seconds.max(1e-9),
        counters: arguments.counters.then(counters).transpose()?,
    };
    for complaint in tally.complaints.lock().iter().flat_map(|list| list.iter()) {
        eprintln!("error: {complaint}");
    }
    if arguments.json {
        write_json(&report)?;
    } else {
        write(&summary(&report))?;
    }
    let bound_twice = report.devices.iter().any(|device| device.constructions > 1);
    let failed = report.wrong > 0 || report.errors > 0 || report.evaluations == 0 || bound_twice;
    Ok(ExitCode::from(u8::from(failed)))
}

fn by_name<S: Serializer>(counters: &Option<Counters>, serializer: S) -> Result<S::Ok, S::Error> {
    let entries = counters.iter().flat_map(Counters::entries);
    serializer.collect_map(entries.map(|entry| (entry.name, entry.value)))
}

fn device_count(asked: Option<u32>, choice: &DriverChoice) -> Result<u32, Failure> {
    let there = u32::try_from(choice.device_count).unwrap_or(0);
    let driver = &choice.driver;
    match asked {
        _ if there == 0 => Err(Failure::new(format!(
            "the driver {driver} has no device to run on; RDM_DRIVER=sim simulates some"
        ))),
        None => Ok(there.min(2)),
        Some(asked) if asked <= there => Ok(asked),
        Some(asked) => Err(Failure::usage(format!(
            "--devices is {asked}; the driver {driver} has {there}, so it is at most that{}",
            if driver == "sim" {
                " (RDM_SIM_DEVICES sets how many it simulates)"
            } else {
                ""
            }
        ))),
    }
}

fn run_threads(
    arguments: &Arguments,
    devices: u32,
    limit: Option<Duration>,
    tally: &Tally,
) -> Result<Duration, Failure> {
    let threads = arguments.threads;
    let rounds = arguments.rounds.unwrap_or(u32::MAX);
    let rounds_in_all = arguments
        .rounds
        .map(|rounds| u64::from(rounds) * u64::from(threads));
    let bar = progress_bar(rounds_in_all, limit);
    // Closed until every thread is there; what is behind it says whether they all are.
    let gate = RwLock::new(false);
    let elapsed = thread::scope(|scope| {
        let mut closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        for thread in 0..threads {
            let gate = &gate;
            let body = move || {
                if *gate.read().unwrap_or_else(PoisonError::into_inner) {
                    work(thread, devices, rounds, tally);
                }
                tally.threads_done.fetch_add(1, Ordering::Release);
            };
            let builder = thread::Builder::new().name(format!("stress-{thread}"));
            builder.spawn_scoped(scope, body).map_err(|error| {
                Failure::new(format!(
                    "thread {thread} of {threads} can not be started: {error}"
                ))
            })?;
        }
        *closed = true;
        drop(closed);
        let start = Instant::now();
        while tally.threads_done.load(Ordering::Acquire) < u64::from(threads) {
            thread::sleep(Duration::from_millis(20));
            let elapsed = start.elapsed();
            if limit.is_some_and(|limit| elapsed >= limit) {
                tally.out_of_time.store(true, Ordering::Relaxed);
            }
            bar.set_position(match rounds_in_all {
                Some(_) => tally.rounds.load(Ordering::Relaxed),
                None => elapsed.as_millis() as u64,
            });
            bar.set_message(format!(
                "{} evaluations",
                tally.evaluations.load(Ordering::Relaxed)
            ));
        }
        Ok::<Duration, Failure>(start.elapsed())
    })?;
    bar.finish_and_clear();
    Ok(elapsed)
}

fn describe(index: i32) -> Result<DeviceReport, Failure> {
    let constructions = Device::construction_count(index)?;
    let name = match constructions {
        0 => None,
        _ => Some(Device::get(index)?.info()?.name),
    };
    Ok(DeviceReport {
        index,
        name,
        constructions,
    })
}

fn summary(report: &Report) -> String {
    let mut text = String::new();
    for device in &report.devices {
        text.push_str(&match &device.name {
            Some(name) => format!(
                "device {}: {name}, bound {}\n",
                device.index,
                match device.constructions {
                    1 => "once".to_owned(),
                    count => format!("{count} times"),
                }
            ),
            None => format!("device {}: not used\n", device.index),
        });
    }
    text.push_str(&format!(
        "{} evaluations on {} threads in {:.1} s: {:.0} a second; {} wrong values, {} errors\n",
        report.evaluations,
        report.threads,
        report.seconds,
        report.evaluations_per_second,
        report.wrong,
        report.errors
    ));
    for entry in report.counters.iter().flat_map(Counters::entries) {
        text.push_str(&format!("{:<24}{:>16}\n", entry.name, entry.value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right() -> Vec<f32> {
        (0..ELEMENTS)
            .map(|index| f32::from(index) * 2.0 + 1.0)
            .collect()
    }

    fn wrong_values(values: &[f32]) -> u64 {
        let tally = Tally::new();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        tally.check(0, 0, &bytes);
        assert_eq!(tally.evaluations.into_inner(), 1);
        tally.wrong.into_inner()
    }

    #[test]
    fn every_element_counts() {
        assert_eq!(wrong_values(&right()), 0);
        for index in [0, 1, 255] {
            let mut values = right();
            values[index] += 1.0;
            assert_eq!(wrong_values(&values), 1);
            values[index] = f32::NAN;
            assert_eq!(wrong_values(&values), 1);
        }
        assert_eq!(wrong_values(&[]), 256);
        assert_eq!(wrong_values(&right()[..255]), 1);
        assert_eq!(wrong_values(&[right(), vec![1.0]].concat()), 1);
    }

    #[test]
    fn complaints_are_few_and_name_the_place() {
        let tally = Tally::new();
        tally.check(3, 1, &[]);
        let complaints = tally.complaints.into_inner().unwrap();
        assert_eq!(complaints.len(), COMPLAINTS_SHOWN);
        assert_eq!(
            complaints[0],
            "thread 3, device 1: element 0 is missing, not 1"
        );
    }
}
