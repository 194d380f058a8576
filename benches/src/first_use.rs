//! A device's first use by many threads at once, which is to cost one construction.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rocm_device_map::Device;

use crate::report::{Report, row};
use crate::{Options, Progress};

const MANY: u32 = 64;
const NAME: &str = "first use";
const BASELINE: &str = "one thread's construction";

pub(crate) fn steps(options: &Options<'_>) -> u64 {
    u64::from(options.rounds) * 2
}

/// First uses one device with `threads` threads that start together, in a process that has loaded the
/// driver and used no device yet. The time is from the start until the last thread has the device.
///
/// # Errors
///
/// What a thread could not do, as text.
pub fn first_use(threads: u32, device_index: i32) -> Result<Duration, String> {
    let gate = RwLock::new(());
    let ready = AtomicU32::new(0);
    thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let (gate, ready) = (&gate, &ready);
        let mut handles = Vec::new();
        for thread in 0..threads {
            let body = move || {
                ready.fetch_add(1, Ordering::Release);
                drop(gate.read().unwrap_or_else(PoisonError::into_inner));
                let found = Device::get(device_index);
                found.map(|_| Instant::now())
            };
            handles.push(
                thread::Builder::new()
                    .spawn_scoped(scope, body)
                    .map_err(|error| format!("thread {thread} can not be started: {error}"))?,
            );
        }
        while ready.load(Ordering::Acquire) < threads {
            thread::sleep(Duration::from_micros(50));
        }
        let start = Instant::now();
        drop(closed);
        let mut end = start;
        for handle in handles {
            let found = handle.join().map_err(|_| "a thread panicked".to_owned())?;
            end = end.max(found.map_err(|error| error.to_string())?);
        }
        Ok(end - start)
    })
}

fn in_a_process(options: &Options<'_>, threads: u32) -> Result<f64, String> {
    let mut command = (options.first_use_process)(threads);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("a process for a first use can not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse::<u64>() {
        Ok(ns) if output.status.success() => Ok(ns as f64),
        _ => Err(format!(
            "a process for a first use ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

pub(crate) fn run(
    options: &Options<'_>,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), String> {
    let (mut ours, mut baseline) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(in_a_process(options, MANY)?);
        progress.step(NAME);
        baseline.push(in_a_process(options, 1)?);
        progress.step(BASELINE);
    }
    let mut row = row(options, NAME, BASELINE, MANY, &ours, &baseline);
    row.per_second = None;
    report.rows.push(row);
    Ok(())
}
