//! The same measuring as `measure.hpp`: threads released together work until a deadline, and the wall time counts to the
//! last one's end.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the command line asks for.
pub struct Settings {
    /// How long each measurement takes.
    pub duration: Duration,
    /// On how many threads.
    pub threads: Vec<usize>,
}

impl Settings {
    /// From `--seconds S` and `--threads N,N,...`.
    pub fn from_arguments() -> Result<Self, String> {
        let mut settings = Self {
            duration: Duration::from_millis(200),
            threads: vec![1, 2, 4, 8, 16],
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let value = arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value"))?;
            match argument.as_str() {
                "--seconds" => {
                    let seconds: f64 = value
                        .parse()
                        .map_err(|_| format!("--seconds {value}: not a number"))?;
                    if !(seconds > 0.0 && seconds <= 60.0) {
                        return Err(format!("--seconds {value}: more than 0 and at most 60"));
                    }
                    settings.duration = Duration::from_secs_f64(seconds);
                }
                "--threads" => {
                    let counts: Result<Vec<usize>, _> = value.split(',').map(str::parse).collect();
                    settings.threads = counts
                        .map_err(|_| format!("--threads {value}: whole numbers with commas"))?;
                    if settings
                        .threads
                        .iter()
                        .any(|&count| count == 0 || count > 1024)
                    {
                        return Err(format!("--threads {value}: each is 1 to 1024"));
                    }
                }
                other => {
                    return Err(format!(
                        "unknown argument {other}; there are --seconds and --threads"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// One thread's part of a measurement.
pub struct Worker<'a> {
    barrier: &'a Barrier,
    duration: Duration,
    begin: Instant,
    checked: Instant,
    left: u64,
    stride: u64,
    /// Operations done.
    pub operations: u64,
    /// Values that were not what they had to be.
    pub wrong: u64,
    end: Instant,
}

impl Worker<'_> {
    /// Ends the preparation: returns once every thread is there.
    pub fn start(&mut self) {
        self.barrier.wait();
        self.begin = Instant::now();
        self.checked = self.begin;
    }

    /// Whether to do one more operation. The clock is asked seldom enough not to be what is measured.
    #[inline(always)]
    pub fn more(&mut self) -> bool {
        if self.left != 0 {
            self.left -= 1;
            return true;
        }
        self.refill()
    }

    #[inline(never)]
    fn refill(&mut self) -> bool {
        if self.stride == 0 {
            self.stride = 1;
            return true;
        }
        self.operations += self.stride;
        let now = Instant::now();
        if now - self.begin >= self.duration {
            return false;
        }
        if now - self.checked < self.duration / 64 {
            self.stride *= 2;
        }
        self.checked = now;
        self.left = self.stride - 1;
        true
    }

    /// Ends the measured part.
    pub fn stop(&mut self) {
        self.end = Instant::now();
    }
}

/// Runs `body` on each number of threads and prints a line of JSON for each. The body prepares, calls `start`, works
/// while there is `more`, completes its work, and calls `stop`.
pub fn measure<F>(settings: &Settings, name: &str, body: F) -> u64
where
    F: Fn(&mut Worker<'_>) + Sync,
{
    let mut all_wrong = 0;
    for &threads in &settings.threads {
        let barrier = Barrier::new(threads);
        let operations = AtomicU64::new(0);
        let wrong = AtomicU64::new(0);
        let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let now = Instant::now();
                        let mut worker = Worker {
                            barrier: &barrier,
                            duration: settings.duration,
                            begin: now,
                            checked: now,
                            left: 0,
                            stride: 0,
                            operations: 0,
                            wrong: 0,
                            end: now,
                        };
                        body(&mut worker);
                        operations.fetch_add(worker.operations, Ordering::Relaxed);
                        wrong.fetch_add(worker.wrong, Ordering::Relaxed);
                        (worker.begin, worker.end)
                    })
                })
                .collect();
            // A thread that failed has said why and ended the process.
            handles
                .into_iter()
                .filter_map(|handle| handle.join().ok())
                .collect()
        });
        let begin = spans
            .iter()
            .map(|span| span.0)
            .min()
            .unwrap_or_else(Instant::now);
        let end = spans.iter().map(|span| span.1).max().unwrap_or(begin);
        let wall = (end - begin).as_secs_f64();
        let operations = operations.load(Ordering::Relaxed);
        let wrong = wrong.load(Ordering::Relaxed);
        all_wrong += wrong;
        println!(
            "{{\"peer\":\"cudarc\",\"name\":\"{name}\",\"threads\":{threads},\"operations\":{operations},\
             \"ns_per_op\":{:.3},\"per_second\":{:.1},\"wrong\":{wrong}}}",
            wall * 1e9 * threads as f64 / operations as f64,
            operations as f64 / wall,
        );
    }
    all_wrong
}
