//! What ends when: streams with their threads, and everything with the process. On `sim`.

mod common;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use common::{is_child, run_child, use_sim, values};
use rocm_device_map::probe::{arange_f32, array_to_raw_bytes, multiply_scalar};
use rocm_device_map::streams::{
    install_thread_local_default_stream, new_thread_local_generation_stream,
};
use rocm_device_map::{Device, Error, Event, Status, Stream, sim};

const DONE: &str = "LIFETIMES done";
const RUNS: usize = 10;
const WORKERS: usize = 8;

fn evaluate() -> Result<Vec<f32>, Error> {
    let array = multiply_scalar(&arange_f32(0.0, 4.0, 1.0), 2.0);
    Ok(values(&array_to_raw_bytes(&array)?))
}

fn on_a_stream_of_its_own() {
    let stream = new_thread_local_generation_stream().expect("there is a GPU");
    install_thread_local_default_stream(Some(&stream)).unwrap();
    assert_eq!(evaluate().unwrap(), [0.0, 2.0, 4.0, 6.0]);
}

#[test]
fn short_threads_do_not_pile_up() {
    run_child("child_short_threads", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child, since it counts the process's objects"]
fn child_short_threads() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let round = |threads: usize| {
        for _ in 0..threads {
            thread::spawn(on_a_stream_of_its_own).join().unwrap();
        }
        sim::count_objects().unwrap()
    };
    let before = round(20);
    let after = round(1000);
    // A queue whose last work the driver has not yet called done is passed over, up to eight times; with
    // as many queues as before everything else is as it was, too.
    assert!(after.streams <= 1 + 8, "{before:?}, then {after:?}");
    if after.streams == before.streams {
        assert_eq!(after, before);
    } else {
        assert!(
            after.device_allocations <= 8 * (1 + 8),
            "{before:?}, then {after:?}"
        );
    }

    // And many at once, one crowd after the other, are as many as one crowd.
    let crowd = || {
        let barrier = &Barrier::new(32);
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(move || {
                    barrier.wait();
                    on_a_stream_of_its_own();
                });
            }
        });
        sim::count_objects().unwrap()
    };
    let bound = 32 + before.streams;
    for _ in 0..20 {
        let objects = crowd();
        assert!(objects.streams <= 2 * bound, "{objects:?}");
        assert!(objects.device_allocations <= 8 * bound, "{objects:?}");
    }
    println!("{DONE}");
}

/// Threads that nobody joins, in the midst of work, each with a stream, an event and memory.
fn start_detached_workers() {
    let started = std::sync::Arc::new(Barrier::new(WORKERS + 1));
    for worker in 0..WORKERS {
        let started = std::sync::Arc::clone(&started);
        thread::spawn(move || {
            let device = (worker % 2) as i32;
            let stream = Stream::new(device).unwrap();
            Stream::set_default(Some(&stream)).unwrap();
            let _event = Event::new(Device::get(device).unwrap()).unwrap();
            evaluate().unwrap();
            started.wait();
            loop {
                if let Err(error) = evaluate() {
                    assert_eq!(error.status(), Status::ShuttingDown, "{error}");
                    // A thread that the end of the process finds here.
                    thread::sleep(Duration::from_secs(60));
                }
            }
        });
    }
    started.wait();
}

#[test]
fn a_process_ends_while_its_threads_work() {
    for _ in 0..RUNS {
        let outcome = run_child("child_ends_while_threads_work", &[]);
        outcome.expect_done(DONE);
        assert!(outcome.elapsed < Duration::from_secs(20));
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
}

#[test]
#[ignore = "a child"]
fn child_ends_while_threads_work() {
    if !is_child() {
        return;
    }
    use_sim(2);
    start_detached_workers();
    println!("{DONE}");
}

#[test]
fn an_exit_code_is_kept() {
    for _ in 0..RUNS {
        let outcome = run_child("child_exits_with_3", &[]);
        assert_eq!(
            outcome.status.code(),
            Some(3),
            "{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
}

#[test]
#[ignore = "a child"]
fn child_exits_with_3() {
    if !is_child() {
        return;
    }
    use_sim(2);
    start_detached_workers();
    std::process::exit(3);
}
