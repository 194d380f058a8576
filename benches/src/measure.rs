//! Runs a design on threads that start together.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::disturbance::{Span, is_disturbed, time_without_processor};

/// Where a worker is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) thread: u32,
    pub(crate) device_index: i32,
}

/// Something whose cost is measured.
pub(crate) trait Design: Sync {
    fn name(&self) -> &str;
    /// Called on the thread that will work. What goes wrong is told at the worker's end.
    fn worker(&self, place: Place) -> Box<dyn Worker + '_>;
}

/// One thread's part.
pub(crate) trait Worker {
    /// Does nothing once something went wrong. Gives the time that counts, where that is not all.
    fn run(&mut self, iterations: u64) -> Option<Duration>;
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// Run before the clock starts, so that what is made once is there.
const WARM_UP: u64 = 32;

#[derive(Clone, Copy)]
enum Gate {
    Open,
    /// Not every thread could be started.
    GivenUp,
}

struct Times {
    span: Span,
    own: Option<Duration>,
}

/// One run on all threads.
pub(crate) struct Run {
    /// For one operation on each thread.
    pub(crate) ns: f64,
    /// Whether other work on the machine kept the threads from running at once.
    pub(crate) is_disturbed: bool,
}

/// A run that other work did not disturb, tried again for as long as `patience`; else the last one.
pub(crate) fn run_undisturbed(
    design: &dyn Design,
    threads: u32,
    device_index: i32,
    iterations: u64,
    patience: Duration,
) -> Result<f64, String> {
    let begin = Instant::now();
    loop {
        let run = run_once(design, threads, device_index, iterations)?;
        if !run.is_disturbed || begin.elapsed() >= patience {
            return Ok(run.ns);
        }
    }
}

/// Runs a design once on each of `threads` threads.
pub(crate) fn run_once(
    design: &dyn Design,
    threads: u32,
    device_index: i32,
    iterations: u64,
) -> Result<Run, String> {
    let gate = RwLock::new(Gate::GivenUp);
    let ready = AtomicU32::new(0);
    let all: Vec<Times> = thread::scope(|scope| {
        let mut closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let (gate, ready) = (&gate, &ready);
        let mut handles = Vec::new();
        for thread in 0..threads {
            let body = move || -> Result<Times, String> {
                let mut worker = design.worker(Place {
                    thread,
                    device_index,
                });
                worker.run(WARM_UP.min(iterations));
                ready.fetch_add(1, Ordering::Release);
                let state = *gate.read().unwrap_or_else(PoisonError::into_inner);
                let iterations = match state {
                    Gate::Open => iterations,
                    Gate::GivenUp => 0,
                };
                let waited_before = time_without_processor();
                let start = Instant::now();
                let own = worker.run(iterations);
                let end = Instant::now();
                let waited = time_without_processor()
                    .zip(waited_before)
                    .map_or(Duration::ZERO, |(after, before)| after - before);
                worker.end()?;
                let span = Span { start, end, waited };
                Ok(Times { span, own })
            };
            let builder = thread::Builder::new().name(format!("bench-{thread}"));
            handles.push(builder.spawn_scoped(scope, body).map_err(|error| {
                format!("thread {thread} of {threads} can not be started: {error}")
            })?);
        }
        while ready.load(Ordering::Acquire) < threads {
            thread::sleep(Duration::from_micros(50));
        }
        *closed = Gate::Open;
        drop(closed);
        handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            })
            .collect::<Result<Vec<Times>, String>>()
    })
    .map_err(|error| format!("{}, {threads} threads: {error}", design.name()))?;
    let spans: Vec<Span> = all.iter().map(|times| times.span).collect();
    Ok(Run {
        ns: wall_time(&all).as_nanos() as f64 / iterations as f64,
        is_disturbed: is_disturbed(&spans),
    })
}

/// From the first thread's start to the last one's end; or the longest of their own times.
fn wall_time(all: &[Times]) -> Duration {
    let own = all.iter().filter_map(|times| times.own).max();
    own.unwrap_or_else(|| {
        let start = all.iter().map(|times| times.span.start).min();
        let end = all.iter().map(|times| times.span.end).max();
        match (start, end) {
            (Some(start), Some(end)) => end - start,
            _ => Duration::ZERO,
        }
    })
}

/// How many operations take about `target`.
pub(crate) fn calibrate(
    design: &dyn Design,
    threads: u32,
    device_index: i32,
    target: Duration,
) -> Result<u64, String> {
    const MOST: u64 = 1 << 32;
    let target = target.as_nanos() as f64;
    let mut iterations = 16;
    loop {
        let took = run_once(design, threads, device_index, iterations)?.ns * iterations as f64;
        let growth = target / took.max(1.0);
        if growth < 4.0 || iterations >= MOST {
            return Ok(((iterations as f64 * growth) as u64).clamp(1, MOST));
        }
        iterations = (iterations as f64 * growth.min(16.0)) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Takes a fixed time, and counts.
    struct Fixed {
        ns: u64,
        is_own: bool,
        fails_on: Option<u32>,
        runs: Mutex<Vec<u64>>,
    }

    struct FixedWorker<'a> {
        design: &'a Fixed,
        thread: u32,
    }

    impl Design for Fixed {
        fn name(&self) -> &str {
            "fixed"
        }
        fn worker(&self, place: Place) -> Box<dyn Worker + '_> {
            Box::new(FixedWorker {
                design: self,
                thread: place.thread,
            })
        }
    }

    impl Worker for FixedWorker<'_> {
        fn run(&mut self, iterations: u64) -> Option<Duration> {
            self.design.runs.lock().unwrap().push(iterations);
            let time = Duration::from_nanos(self.design.ns * iterations);
            if self.design.is_own {
                return Some(time);
            }
            thread::sleep(time);
            None
        }
        fn end(self: Box<Self>) -> Result<(), String> {
            match self.design.fails_on {
                Some(thread) if thread == self.thread => Err("it broke".to_owned()),
                _ => Ok(()),
            }
        }
    }

    fn fixed(ns: u64, is_own: bool, fails_on: Option<u32>) -> Fixed {
        Fixed {
            ns,
            is_own,
            fails_on,
            runs: Mutex::new(Vec::new()),
        }
    }

    #[test]
    fn an_operation_takes_the_wall_time_divided_by_the_iterations() {
        let design = fixed(100_000, false, None);
        let ns = run_once(&design, 3, 0, 100).unwrap().ns;
        assert!((100_000.0..1_000_000.0).contains(&ns), "{ns}");
        // A warm-up and a run on each thread.
        let mut runs = design.runs.into_inner().unwrap();
        runs.sort_unstable();
        assert_eq!(runs, [32, 32, 32, 100, 100, 100]);
    }

    #[test]
    fn a_design_may_say_what_counts() {
        let design = fixed(7, true, None);
        assert_eq!(run_once(&design, 2, 0, 1000).map(|run| run.ns), Ok(7.0));
    }

    #[test]
    fn the_first_failure_is_told_with_the_design() {
        let design = fixed(1, true, Some(1));
        let error = run_once(&design, 2, 0, 10).map(|run| run.ns).unwrap_err();
        assert_eq!(error, "fixed, 2 threads: it broke");
    }

    #[test]
    fn calibration_comes_to_the_target() {
        let design = fixed(250, true, None);
        let iterations = calibrate(&design, 1, 0, Duration::from_millis(10)).unwrap();
        assert_eq!(iterations, 40_000);
        let slow = fixed(50_000_000, true, None);
        assert_eq!(
            calibrate(&slow, 1, 0, Duration::from_millis(10)),
            Ok(1),
            "an operation longer than the target is run once"
        );
    }
}
