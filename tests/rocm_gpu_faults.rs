//! What a GPU refuses, and what faults it: every wait ends with the right error, and nothing hangs.
//!
//! Each test runs its body in a fresh child process, since a fault loses the device for the rest of a process. A child
//! has to end by itself with exit code 0, also after a fault, when a runtime may hang in its own teardown.
//!
//! The driver is chosen as in `rocm_device_map_concurrency`: `RDM_DRIVER` where it is set, else AMD's where it has a
//! GPU, else `sim`; a line of the output says which. What was run on which hardware is in `docs/verification.md`.

#![cfg(feature = "rocm")]

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{driver_with_device, is_child, run_child, tell, values};
use rocm_device_map::probe::{
    add, arange_f32, array_to_raw_bytes, multiply_scalar, ones, out_of_bounds_write,
    oversized_block,
};
use rocm_device_map::{Device, Error, Event, Status, Stream, choose_driver, driver_info};

const DONE: &str = "ROCM_GPU_FAULTS done";
const ILLEGAL_ADDRESS: i32 = 700;

/// How long the wait for a kernel that faults may take.
fn fault_bound() -> Duration {
    Duration::from_secs(if is_simulated() { 1 } else { 30 })
}

fn is_simulated() -> bool {
    driver_info().expect("the parent found a driver").name == "sim"
}

fn use_device(index: i32) -> Stream {
    let stream = Stream::new(index).expect("there is a device");
    Stream::set_default(Some(&stream)).expect("it can be the default");
    stream
}

fn try_evaluate() -> Result<(), Error> {
    let result = add(
        &multiply_scalar(&arange_f32(0.0, 64.0, 1.0), 2.0),
        &ones(64),
    );
    let found = values(&array_to_raw_bytes(&result)?);
    for (index, found) in found.iter().enumerate() {
        assert_eq!(*found, index as f32 * 2.0 + 1.0, "element {index}");
    }
    Ok(())
}

/// The error is the fault, names its first cause, and says so in its number.
fn assert_is_fault(error: &Error) {
    assert_eq!(error.status(), Status::DeviceFault, "{error}");
    assert_eq!(error.driver_code(), Some(ILLEGAL_ADDRESS), "{error}");
    assert!(error.message().contains("IllegalAddress"), "{error}");
}

/// Everything on the default stream's device fails, each within a bound that a caller does not notice.
fn assert_fails_fast(device: i32) {
    let start = Instant::now();
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let one = Instant::now();
        assert_is_fault(&try_evaluate().expect_err("the device is lost"));
        slowest = slowest.max(one.elapsed());
    }
    assert_is_fault(&oversized_block().expect_err("the device is lost"));
    assert_is_fault(&out_of_bounds_write().expect_err("the device is lost"));
    let device = Device::get(device).expect("a device is kept");
    assert!(device.info().expect("it was read before").faulted);
    assert_is_fault(&device.synchronize(None).expect_err("the device is lost"));
    assert_is_fault(&Event::new(device).expect_err("the device is lost"));
    println!(
        "100 evaluations on the lost device failed in {:?}, the slowest in {slowest:?}",
        start.elapsed()
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

fn run(name: &str, child: &str) {
    if driver_with_device(name).is_some() {
        let outcome = run_child(child, &[]);
        outcome.expect_done(DONE);
        tell(&format!("{name}: the child took {:?}", outcome.elapsed));
        for line in outcome
            .stdout
            .lines()
            .filter(|line| line.contains(" in ") && !line.contains("test result"))
        {
            tell(&format!("{name}: {line}"));
        }
    }
}

#[test]
fn an_oversized_block_fails_its_evaluation_and_the_device_stays_usable() {
    run(
        "an_oversized_block_fails_its_evaluation_and_the_device_stays_usable",
        "child_oversized_block",
    );
}

#[test]
#[ignore = "a child"]
fn child_oversized_block() {
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found a device");
    let _stream = use_device(0);
    for _ in 0..5 {
        let error = oversized_block().expect_err("no GPU takes 2048 threads in a block");
        assert_eq!(error.status(), Status::Launch, "{error}");
        assert!(
            error.message().contains("probe_full") && error.message().contains("2048"),
            "the message names neither the kernel nor the block: {error}"
        );
        try_evaluate().expect("the device is as it was");
    }
    assert!(!Device::get(0).unwrap().info().unwrap().faulted);
    println!("{DONE}");
}

#[test]
fn a_write_out_of_bounds_fails_its_wait_and_all_that_comes_later() {
    run(
        "a_write_out_of_bounds_fails_its_wait_and_all_that_comes_later",
        "child_out_of_bounds",
    );
}

#[test]
#[ignore = "a child"]
fn child_out_of_bounds() {
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found a device");
    let _stream = use_device(0);
    try_evaluate().expect("the device works");
    // Compiled before the clock starts.
    oversized_block().expect_err("no GPU takes 2048 threads in a block");
    let start = Instant::now();
    let error = out_of_bounds_write().expect_err("2^40 bytes past the buffer there is nothing");
    let elapsed = start.elapsed();
    assert_is_fault(&error);
    println!("the waiting evaluation failed in {elapsed:?}: {error}");
    assert!(elapsed < fault_bound(), "{elapsed:?}");
    assert_fails_fast(0);
    println!("{DONE}");
}

#[test]
fn sixteen_threads_in_the_middle_of_work_all_get_the_error() {
    run(
        "sixteen_threads_in_the_middle_of_work_all_get_the_error",
        "child_sixteen_threads",
    );
}

#[test]
#[ignore = "a child"]
fn child_sixteen_threads() {
    const THREADS: usize = 16;
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found a device");
    let _stream = use_device(0);
    oversized_block().expect_err("no GPU takes 2048 threads in a block");
    let barrier = Barrier::new(THREADS + 1);
    let in_work = AtomicU32::new(0);
    let start = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (barrier, in_work) = (&barrier, &in_work);
                scope.spawn(move || {
                    let _stream = use_device(0);
                    barrier.wait();
                    let mut evaluations = 0u64;
                    loop {
                        if let Err(error) = try_evaluate() {
                            return (error, evaluations);
                        }
                        evaluations += 1;
                        if evaluations == 3 {
                            in_work.fetch_add(1, Ordering::AcqRel);
                        }
                    }
                })
            })
            .collect();
        barrier.wait();
        while in_work.load(Ordering::Acquire) < THREADS as u32 {
            thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        assert_is_fault(&out_of_bounds_write().expect_err("there is nothing to write to"));
        for worker in workers {
            let (error, evaluations) = worker.join().expect("no evaluation is wrong");
            assert_is_fault(&error);
            assert!(evaluations >= 3);
        }
        start
    });
    let elapsed = start.elapsed();
    println!("16 threads had the error in {elapsed:?}");
    assert!(elapsed < fault_bound(), "{elapsed:?}");
    assert_fails_fast(0);
    println!("{DONE}");
}

#[test]
fn another_devices_streams_go_on() {
    const NAME: &str = "another_devices_streams_go_on";
    let Some(choice) = driver_with_device(NAME) else {
        return;
    };
    if choice.driver == "hip" {
        tell(&format!(
            "{NAME} is skipped: a fault takes every device with it; {choice}"
        ));
    } else if choice.device_count < 2 {
        tell(&format!("{NAME} is skipped: it needs two GPUs; {choice}"));
    } else {
        run(NAME, "child_other_device");
    }
}

#[test]
#[ignore = "a child"]
fn child_other_device() {
    if !is_child() {
        return;
    }
    choose_driver().expect("the parent found devices");
    let is_over = AtomicBool::new(false);
    let on_second = AtomicU32::new(0);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _stream = use_device(1);
            while !is_over.load(Ordering::Acquire) {
                try_evaluate().expect("the second device has not faulted");
                on_second.fetch_add(1, Ordering::AcqRel);
            }
        });
        let _stream = use_device(0);
        try_evaluate().expect("the device works");
        while on_second.load(Ordering::Acquire) < 3 && !other.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_is_fault(&out_of_bounds_write().expect_err("there is nothing to write to"));
        let at_fault = on_second.load(Ordering::Acquire);
        while on_second.load(Ordering::Acquire) < at_fault + 20 && !other.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_fails_fast(0);
        is_over.store(true, Ordering::Release);
        other.join().expect("the second device went on");
    });
    assert!(!Device::get(1).unwrap().info().unwrap().faulted);
    println!("{DONE}");
}
