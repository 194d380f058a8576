//! First uses of devices, streams and kernels, with every thread at once.
//!
//! Each parent test runs its body in 10 fresh child processes, one after the other. In each child all
//! threads leave a barrier together, so the process's first device, first stream, first event and
//! first compile happen while other threads are after the same ones. A child has to end on its own
//! with exit code 0, print its done marker within 120 seconds, and show exactly one
//! `bound HIP device N` line for each device that it used and none for any other. Every other child
//! has a cache on disk.
//!
//! What can race where:
//!
//! - The insert of one device against lookups of the same device races with any number of GPUs:
//!   `streams_created_while_others_evaluate`. So do the insert of an encoder, the first events of the
//!   pool and the first compile of a kernel.
//! - The insert of a second device against lookups of the first needs two GPUs:
//!   `second_gpu_first_stream_while_first_gpu_evaluates`. On a host with one GPU it skips and says so.
//! - Inserts of several devices against each other need as many GPUs:
//!   `every_gpu_first_used_by_every_thread_at_once`. `sim` simulates 8; on real GPUs it takes all
//!   there are, and skips below two.
//!
//! The driver is `RDM_DRIVER` where it is set: asked for by name and no device there, the tests skip
//! with a message that names it. Else it is AMD's where it has a GPU, else `sim`; a line of the
//! output says which. What was run on which hardware is in `docs/verification.md`.

#![cfg(feature = "rocm")]

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use common::{driver_with_device, is_child, run_child, tell, values};
use rocm_device_map::probe::{add, arange_f32, array_to_raw_bytes, multiply_scalar, ones};
use rocm_device_map::streams::{
    gpu_device_count, install_thread_local_default_stream, new_thread_local_generation_stream,
    new_thread_local_stream_on_gpu,
};
use rocm_device_map::{Device, choose_driver};

const CHILD_RUNS: usize = 10;
const DONE: &str = "ROCM_DEVICE_MAP done";
const ELEMENTS: u16 = 256;

fn evaluate_and_check(what: &str) {
    let range = arange_f32(0.0, f32::from(ELEMENTS), 1.0);
    let result = add(&multiply_scalar(&range, 2.0), &ones(ELEMENTS.into()));
    let bytes = array_to_raw_bytes(&result).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = values(&bytes);
    assert_eq!(found.len(), usize::from(ELEMENTS), "{what}");
    for (index, found) in (0..ELEMENTS).zip(found) {
        assert_eq!(
            found,
            f32::from(index) * 2.0 + 1.0,
            "{what}: element {index}"
        );
    }
}

/// Runs the child in fresh processes and checks how each ended and what it bound. Every other one has
/// a cache on disk, which the first of them fills: then the threads race to load and not to compile.
fn check_children(child: &str, environment: &[(&str, &str)], devices: i32) {
    let cache = std::env::temp_dir().join(format!("{child}-{}", std::process::id()));
    for run in 1..=CHILD_RUNS {
        let cache_of_run = if run % 2 == 0 { cache.to_str() } else { None };
        let mut environment = environment.to_vec();
        environment.push(("RDM_CACHE_DIR", cache_of_run.unwrap_or_default()));
        let outcome = run_child(child, &environment);
        outcome.expect_done(DONE);
        let mut bound = outcome.bound_indices();
        bound.sort_unstable();
        let expected: Vec<i32> = (0..devices).collect();
        assert_eq!(
            bound, expected,
            "run {run} of {child} bound other devices than once each of those it used\n{}",
            outcome.stderr
        );
    }
    let _ = std::fs::remove_dir_all(cache);
}

#[test]
fn streams_created_while_others_evaluate() {
    if driver_with_device("streams_created_while_others_evaluate").is_some() {
        check_children("child_streams_created_while_others_evaluate", &[], 1);
    }
}

#[test]
#[ignore = "the child of streams_created_while_others_evaluate"]
fn child_streams_created_while_others_evaluate() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 16;
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found a device");
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for round in 0..ROUNDS {
                    let stream = new_thread_local_generation_stream();
                    assert!(stream.is_some(), "there is a GPU");
                    install_thread_local_default_stream(stream.as_ref())
                        .unwrap_or_else(|error| panic!("thread {thread}: {error}"));
                    for _ in 0..4 {
                        evaluate_and_check(&format!("thread {thread}, round {round}"));
                    }
                }
            });
        }
    });
    assert_eq!(Device::construction_count(0).unwrap(), 1);
    println!("{DONE}");
}

#[test]
fn second_gpu_first_stream_while_first_gpu_evaluates() {
    const NAME: &str = "second_gpu_first_stream_while_first_gpu_evaluates";
    let Some(choice) = driver_with_device(NAME) else {
        return;
    };
    if choice.device_count < 2 {
        tell(&format!("{NAME} is skipped: it needs two GPUs; {choice}"));
        return;
    }
    check_children(
        "child_second_gpu_first_stream_while_first_gpu_evaluates",
        &[],
        2,
    );
}

#[test]
#[ignore = "the child of second_gpu_first_stream_while_first_gpu_evaluates"]
fn child_second_gpu_first_stream_while_first_gpu_evaluates() {
    const THREADS: usize = 8;
    const EVALUATIONS_ON_SECOND: usize = 32;
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found devices");
    let barrier = Barrier::new(THREADS + 1);
    let second_is_done = AtomicBool::new(false);
    let on_first = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, second_is_done, on_first) = (&barrier, &second_is_done, &on_first);
            scope.spawn(move || {
                let stream = new_thread_local_stream_on_gpu(0).expect("there is a GPU 0");
                barrier.wait();
                install_thread_local_default_stream(Some(&stream)).expect("GPU 0 works");
                loop {
                    evaluate_and_check(&format!("thread {thread} on GPU 0"));
                    on_first.fetch_add(1, Ordering::Relaxed);
                    if second_is_done.load(Ordering::Acquire) {
                        break;
                    }
                }
            });
        }
        let (barrier, second_is_done) = (&barrier, &second_is_done);
        scope.spawn(move || {
            // Also when this thread fails, the others end, and the child says what was wrong.
            let _end_the_others = SetOnDrop(second_is_done);
            barrier.wait();
            let stream = new_thread_local_stream_on_gpu(1).expect("there is a GPU 1");
            install_thread_local_default_stream(Some(&stream)).expect("GPU 1 works");
            for _ in 0..EVALUATIONS_ON_SECOND {
                evaluate_and_check("the thread on GPU 1");
            }
        });
    });
    assert!(on_first.load(Ordering::Relaxed) >= THREADS as u32);
    for index in 0..2 {
        assert_eq!(Device::construction_count(index).unwrap(), 1);
    }
    println!("{DONE}");
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn every_gpu_first_used_by_every_thread_at_once() {
    const NAME: &str = "every_gpu_first_used_by_every_thread_at_once";
    const CHILD: &str = "child_every_gpu_first_used_by_every_thread_at_once";
    let Some(choice) = driver_with_device(NAME) else {
        return;
    };
    if choice.driver == "sim" {
        check_children(CHILD, &[("RDM_SIM_DEVICES", "8")], 8);
    } else if choice.device_count < 2 {
        tell(&format!("{NAME} is skipped: it needs two GPUs; {choice}"));
    } else {
        check_children(CHILD, &[], choice.device_count);
    }
}

#[test]
#[ignore = "the child of every_gpu_first_used_by_every_thread_at_once"]
fn child_every_gpu_first_used_by_every_thread_at_once() {
    const THREADS: usize = 16;
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found devices");
    let devices = gpu_device_count();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                let order = shuffled(devices, thread as u64);
                barrier.wait();
                for index in order {
                    let device = Device::get(index)
                        .unwrap_or_else(|error| panic!("thread {thread}: {error}"));
                    assert_eq!(device.info().expect("it was built").index, index);
                    let stream = new_thread_local_stream_on_gpu(index).expect("it is there");
                    install_thread_local_default_stream(Some(&stream))
                        .unwrap_or_else(|error| panic!("thread {thread}: {error}"));
                    evaluate_and_check(&format!("thread {thread} on GPU {index}"));
                }
            });
        }
    });
    for index in 0..devices {
        assert_eq!(Device::construction_count(index).unwrap(), 1);
    }
    println!("{DONE}");
}

/// The device indices in an order that the seed decides.
fn shuffled(devices: i32, seed: u64) -> Vec<i32> {
    let mut order: Vec<i32> = (0..devices).collect();
    let mut state = seed;
    for last in (1..order.len()).rev() {
        // A linear congruential generator; its high bits are good enough.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}
