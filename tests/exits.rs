//! Rust code that still owns things of the library as the process ends: thread-locals, other threads, and a panic.
//!
//! Each case runs in fresh processes, 20 of each, or 200 with `RDM_TEST_LONG=1`: the exit code is the one asked for,
//! and nothing but the lines on bound devices is on standard error. That no driver call is made once exit handlers run
//! is counted by the C tests (`tests/c/exit_process.c`), which can read the call log from behind the closed library.

mod common;

use std::cell::RefCell;
use std::panic;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use common::{is_child, run_child, use_sim};
use rocm_device_map::probe::{Array, arange_f32, array_to_raw_bytes, multiply_scalar, try_eval};
use rocm_device_map::{Device, Event, Stream};

fn run_often(child: &str, code: i32) {
    let is_long = std::env::var("RDM_TEST_LONG").is_ok_and(|value| value == "1");
    let cache = std::env::temp_dir().join(format!("rdm-exits-{}-{child}", std::process::id()));
    let cache_text = cache
        .to_str()
        .expect("the temporary folder has a name in UTF-8");
    let times = if is_long { 200 } else { 20 };
    for run in 1..=times {
        let outcome = run_child(child, &[("RDM_CACHE_DIR", cache_text)]);
        assert_eq!(
            outcome.status.code(),
            Some(code),
            "run {run} of {times} of {child} ended with {}\n{}\n{}",
            outcome.status,
            outcome.stdout,
            outcome.stderr
        );
        let other = outcome
            .stderr
            .lines()
            .find(|line| !line.contains("bound HIP device"));
        assert_eq!(other, None, "run {run} of {child}");
        assert!(
            outcome.elapsed < Duration::from_secs(10),
            "{:?}",
            outcome.elapsed
        );
    }
    let _ = std::fs::remove_dir_all(cache);
}

/// An array that is evaluated, one that is not, an event, and a stream with work that nobody waits for.
struct Belongings {
    _arrays: [Array; 2],
    _event: Event,
    _stream: Stream,
}

impl Belongings {
    fn new() -> Self {
        let stream = Stream::new(0).expect("there is a device");
        Stream::set_default(Some(&stream)).expect("it can be the default");
        let evaluated = arange_f32(0.0, 64.0, 1.0);
        let not_evaluated = multiply_scalar(&evaluated, 2.0);
        try_eval(&evaluated).expect("the device works");
        let event = Event::new(Device::get(0).expect("it is there")).expect("there is room");
        let encoder = stream.encoder().expect("the device works");
        encoder.record_event(&event).expect("it is of this device");
        encoder
            .add_completion_handler(|_| {})
            .expect("a handler can be added");
        Self {
            _arrays: [evaluated, not_evaluated],
            _event: event,
            _stream: stream,
        }
    }
}

thread_local! {
    static OF_THE_THREAD: RefCell<Option<Belongings>> = const { RefCell::new(None) };
}

fn keep_in_the_thread() {
    OF_THE_THREAD.with_borrow_mut(|own| *own = Some(Belongings::new()));
}

#[test]
fn field_log_18_thread_locals_release_at_the_end_of_threads_and_of_the_process() {
    run_often("child_thread_locals", 0);
}

#[test]
#[ignore = "a child"]
fn child_thread_locals() {
    if !is_child() {
        return;
    }
    use_sim(1);
    keep_in_the_thread();
    thread::spawn(keep_in_the_thread).join().unwrap();
    // One that ends as the process does, and one that is still there.
    let barrier: &'static Barrier = Box::leak(Box::new(Barrier::new(3)));
    for stays in [false, true] {
        thread::spawn(move || {
            keep_in_the_thread();
            barrier.wait();
            if stays {
                loop {
                    thread::sleep(Duration::from_secs(60));
                }
            }
        });
    }
    barrier.wait();
}

#[test]
fn a_worker_calls_process_exit_while_others_work() {
    run_often("child_exit_from_a_worker", 5);
}

#[test]
#[ignore = "a child"]
fn child_exit_from_a_worker() {
    if !is_child() {
        return;
    }
    use_sim(1);
    keep_in_the_thread();
    let barrier: &'static Barrier = Box::leak(Box::new(Barrier::new(5)));
    for _ in 0..4 {
        thread::spawn(move || {
            keep_in_the_thread();
            barrier.wait();
            // Ends with the error of a process that is exiting; then the thread ends with what it owns.
            while array_to_raw_bytes(&arange_f32(0.0, 64.0, 1.0)).is_ok() {}
        });
    }
    thread::spawn(move || {
        keep_in_the_thread();
        barrier.wait();
        thread::sleep(Duration::from_millis(5));
        std::process::exit(5);
    });
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn what_a_panic_unwinds_is_released_and_the_library_goes_on() {
    run_often("child_panic", 0);
}

/// Uses the library as it is dropped, also while a panic unwinds.
struct EvaluatesOnDrop;

impl Drop for EvaluatesOnDrop {
    fn drop(&mut self) {
        assert!(thread::panicking());
        let _own = Belongings::new();
        array_to_raw_bytes(&arange_f32(0.0, 4.0, 1.0))
            .expect("the library works while a panic unwinds");
    }
}

#[test]
#[ignore = "a child"]
fn child_panic() {
    if !is_child() {
        return;
    }
    use_sim(1);
    // The panic is expected, so it has nothing to say on standard error.
    panic::set_hook(Box::new(|_| {}));
    for _ in 0..3 {
        let panicked = thread::spawn(|| {
            let _evaluates = EvaluatesOnDrop;
            let _own = Belongings::new();
            keep_in_the_thread();
            panic!("on purpose");
        })
        .join();
        assert!(panicked.is_err());
    }
    let caught = panic::catch_unwind(|| {
        let _own = Belongings::new();
        panic!("on purpose");
    });
    assert!(caught.is_err());
    array_to_raw_bytes(&arange_f32(0.0, 4.0, 1.0)).expect("nothing is poisoned");
    let _ = panic::take_hook();
}
