//! AMD's real run-time compiler with every thread at once, which needs no GPU: the compile half of
//! `tests/rocm_jit_module_concurrency.rs`. It does one thing at a time in a process, so here it is
//! seen that the library keeps to that, that each source is compiled once, and that lookups wait for
//! none of it.
//!
//! Each body runs in a fresh child process without a cache on disk. The tests skip with a message where
//! AMD's library is not installed, or `RDM_DRIVER` asks for another driver than it and `sim`.

#![cfg(feature = "rocm")]

mod common;
#[path = "common/jit.rs"]
mod jit;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use common::{is_child, tell};
use jit::{CountDownOnDrop, DONE, THREADS, WARM, run_children, source, tail, time_hits};
use rocm_device_map::{Module, ModuleSource, Status, probe_driver};

/// Runs the child with AMD's driver where its library is there, whether or not it has a GPU.
fn run_with_hiprtc(test: &str, environment: &[(&str, &str)]) {
    if std::env::var_os("RDM_DRIVER").is_some_and(|named| named != "hip" && named != "sim") {
        tell(&format!(
            "{test} is skipped: RDM_DRIVER asks for another driver"
        ));
        return;
    }
    if let Err(error) = probe_driver("hip") {
        tell(&format!("{test} is skipped: {error}"));
        return;
    }
    let mut environment = environment.to_vec();
    environment.push(("RDM_DRIVER", "hip"));
    run_children(&format!("child_{test}"), &environment, 1);
}

#[test]
fn same_source_from_many_threads_is_one_compile() {
    run_with_hiprtc("same_source_from_many_threads_is_one_compile", &[]);
}

#[test]
#[ignore = "the child of same_source_from_many_threads_is_one_compile"]
fn child_same_source_from_many_threads_is_one_compile() {
    const HIPRTC_ROUNDS: usize = 4;
    if !is_child() {
        return;
    }
    let barrier = Barrier::new(THREADS);
    let addresses = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..HIPRTC_ROUNDS {
                    barrier.wait();
                    let code = source(round).code_for("gfx90a").expect("it compiles");
                    assert!(code.starts_with(b"\x7fELF") || code.starts_with(b"__CLANG_OFFLOAD"));
                    addresses.lock().unwrap().insert(code.as_ptr() as usize);
                    barrier.wait();
                    assert_eq!(Module::compile_count().unwrap(), round as u64 + 1);
                    barrier.wait();
                }
            });
        }
    });
    assert_eq!(addresses.into_inner().unwrap().len(), HIPRTC_ROUNDS);
    println!("{DONE}");
}

#[test]
fn distinct_sources_while_others_hit_cache() {
    run_with_hiprtc("distinct_sources_while_others_hit_cache", &[]);
}

#[test]
#[ignore = "the child of distinct_sources_while_others_hit_cache"]
fn child_distinct_sources_while_others_hit_cache() {
    if !is_child() {
        return;
    }
    let warm = source(WARM);
    let code = warm.code_for("gfx90a").expect("it compiles");
    let hit = || assert!(std::ptr::eq(warm.code_for("gfx90a").unwrap(), code));
    let idle = tail(&mut time_hits(hit, || true));
    let running = AtomicUsize::new(THREADS);
    let mut times = thread::scope(|scope| {
        for thread in 0..THREADS {
            let running = &running;
            scope.spawn(move || {
                let _count_out = CountDownOnDrop(running);
                // Two GPUs' codes of one source are two compiles.
                let architecture = if thread % 2 == 0 { "gfx90a" } else { "gfx1030" };
                let code = source(100 + thread / 2).code_for(architecture);
                assert!(!code.expect("it compiles").is_empty());
            });
        }
        // More than once over: the first samples may be through before the first compile begins.
        let mut times = Vec::new();
        while running.load(Ordering::Acquire) > 0 {
            times = time_hits(hit, || running.load(Ordering::Acquire) > 0);
        }
        times
    });
    assert_eq!(Module::compile_count().unwrap(), 1 + THREADS as u64);
    let busy = tail(&mut times);
    tell(&format!(
        "hiprtc: a hit: 99.9 % took at most {idle} ns when idle and {busy} ns while others compiled \
         ({} hits then)",
        times.len()
    ));
    // The compiler takes the processors as well, so the tail may move; by a compile's length it may not.
    assert!(busy < 5_000_000, "hits waited {busy} ns");
    println!("{DONE}");
}

#[test]
fn failed_compile_tells_each_waiter_and_is_retried() {
    run_with_hiprtc("failed_compile_tells_each_waiter_and_is_retried", &[]);
}

#[test]
#[ignore = "the child of failed_compile_tells_each_waiter_and_is_retried"]
fn child_failed_compile_tells_each_waiter_and_is_retried() {
    if !is_child() {
        return;
    }
    let text = "extern \"C\" __global__ void broken(int *out) {\n  *out = 1;\n  *out = undeclared_thing;\n}\n";
    let broken = ModuleSource::new("broken_kernel.hip", text).unwrap();
    let barrier = Barrier::new(THREADS);
    let expect_failure = || {
        let error = broken.code_for("gfx90a").expect_err("it does not compile");
        assert_eq!(error.status(), Status::Compile);
        let message = error.to_string();
        // Some versions show a name of their own beside the line; ours stands before it.
        for part in ["broken_kernel.hip", ":3:", "undeclared_thing"] {
            assert!(message.contains(part), "no {part} in: {message}");
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                expect_failure();
            });
        }
    });
    // All that waited for one compile got its message; who came after it made another one.
    let compiles = Module::compile_count().unwrap();
    assert!((1..=2).contains(&compiles), "{compiles} compiles");
    expect_failure();
    assert_eq!(Module::compile_count().unwrap(), compiles + 1);
    // The compiler is as good as before.
    assert!(source(1).code_for("gfx1030").is_ok());
    println!("{DONE}");
}
