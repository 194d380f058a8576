//! What the tests of run-time compiled modules share: sources, children that run alone, and the tail of
//! many short times.

#![allow(dead_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rocm_device_map::ModuleSource;

use crate::common::{run_child, tell};

pub const DONE: &str = "ROCM_JIT_MODULE done";
pub const THREADS: usize = 8;
/// A source that is compiled before anything is measured.
pub const WARM: usize = 7;

/// The source of a kernel whose outputs no other number's kernel has.
pub fn source(number: usize) -> ModuleSource {
    let text = format!(
        "extern \"C\" __global__ void fill(float *out, float step, unsigned count) {{\n  \
           unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  \
           if (i < count) out[i] = step * (float)i + {number}.0f;\n\
         }}\n"
    );
    // One name for all: it is the whole source that tells modules apart.
    ModuleSource::new("fill.hip", &text).expect("there is no NUL in it")
}

/// Runs a child, several times over, while no other test of this file runs: they would share the
/// processors with it, and one measures.
pub fn run_children(child: &str, environment: &[(&str, &str)], runs: usize) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..runs {
        let outcome = run_child(child, environment);
        outcome.expect_done(DONE);
        for line in outcome.stderr.lines().filter(|line| line.contains("hit")) {
            tell(line);
        }
    }
}

/// Counts a thread out when it ends, also by a panic, so that those who wait for it end as well.
pub struct CountDownOnDrop<'a>(pub &'a AtomicUsize);

impl Drop for CountDownOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

pub const SAMPLES: usize = 100_000;

/// How long each of at most [`SAMPLES`] hits took, in nanoseconds, none begun once `go_on` says no.
pub fn time_hits(hit: impl Fn(), go_on: impl Fn() -> bool) -> Vec<u64> {
    let mut times = Vec::with_capacity(SAMPLES);
    while times.len() < SAMPLES && (times.len() % 64 != 0 || go_on()) {
        let start = Instant::now();
        hit();
        times.push(start.elapsed().as_nanos() as u64);
    }
    times
}

/// The value that one in a thousand is above. Of few samples it is the largest.
pub fn tail(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times[times.len() - 1 - times.len() / 1000]
}
