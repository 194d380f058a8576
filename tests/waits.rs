//! Waits that end: at their deadline, and on a fault. On `sim`, which can be held and faulted.

mod common;

use std::time::{Duration, Instant};

use common::{is_child, run_child, use_sim};
use rocm_device_map::probe::{Array, arange_f32, array_to_raw_bytes, multiply_scalar, try_eval};
use rocm_device_map::{Device, Event, ModuleSource, Status, Stream, clear_encoders, sim};

const DONE: &str = "WAITS done";
const ILLEGAL_ADDRESS: i32 = 700;

/// A stream of device 0 with work that can not start, and an event behind that work.
fn held_work() -> (Stream, Event) {
    sim::hold(0, true).unwrap();
    let stream = Stream::new(0).unwrap();
    let encoder = stream.encoder().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    drop(receiver);
    encoder
        .add_completion_handler(move |_| drop(sender))
        .unwrap();
    encoder.commit().unwrap();
    let event = Event::new(Device::get(0).unwrap()).unwrap();
    encoder.record_event(&event).unwrap();
    (stream, event)
}

#[test]
fn a_deadline_ends_a_wait_and_spoils_nothing() {
    run_child("child_deadline", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child"]
fn child_deadline() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let (stream, event) = held_work();
    assert!(!event.query().unwrap());
    let start = Instant::now();
    let timeout = Duration::from_millis(300);
    let error = stream.synchronize(Some(timeout)).unwrap_err();
    assert_eq!(error.status(), Status::Timeout, "{error}");
    let error = event.wait(Some(timeout)).unwrap_err();
    assert_eq!(error.status(), Status::Timeout, "{error}");
    let elapsed = start.elapsed();
    assert!(
        (2 * timeout..10 * timeout).contains(&elapsed),
        "two waits of {timeout:?} took {elapsed:?}"
    );
    assert!(!Device::get(0).unwrap().info().unwrap().faulted);
    // The other device goes on meanwhile.
    Stream::set_default(Some(&Stream::new(1).unwrap())).unwrap();
    try_eval(&arange_f32(0.0, 8.0, 1.0)).unwrap();

    sim::hold(0, false).unwrap();
    stream.synchronize(Some(Duration::from_secs(30))).unwrap();
    event.wait(Some(Duration::from_secs(30))).unwrap();
    assert!(event.query().unwrap());
    println!("{DONE}");
}

#[test]
fn a_stream_keeps_its_order_when_encoders_are_cleared() {
    run_child("child_order_across_a_clear", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child"]
fn child_order_across_a_clear() {
    const LEN: usize = 1 << 20;
    if !is_child() {
        return;
    }
    use_sim(2);
    let stream = Stream::new(0).unwrap();
    let on_stream = |array: &Array| {
        Stream::set_default(Some(&stream)).unwrap();
        common::values(&array_to_raw_bytes(array).unwrap())
    };
    // Nothing is left to compile once the device is held.
    on_stream(&multiply_scalar(&arange_f32(0.0, 1.0, 1.0), 1.0));
    for _ in 0..5 {
        sim::hold(0, true).unwrap();
        let range = arange_f32(0.0, LEN as f32, 1.0);
        let doubled = multiply_scalar(&range, 2.0);
        std::thread::scope(|scope| {
            // The first half is submitted and can not start; the second goes through a fresh encoder.
            let before = scope.spawn(|| on_stream(&range));
            while !range.is_evaluated() {
                std::thread::yield_now();
            }
            clear_encoders().unwrap();
            let after = scope.spawn(|| on_stream(&doubled));
            while !doubled.is_evaluated() {
                std::thread::yield_now();
            }
            sim::hold(0, false).unwrap();
            let (before, after) = (before.join().unwrap(), after.join().unwrap());
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                assert_eq!((*before, after), (index as f32, index as f32 * 2.0));
            }
        });
    }
    println!("{DONE}");
}

#[test]
fn a_fault_ends_waits_without_a_deadline() {
    run_child("child_fault_while_waiting", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child"]
fn child_fault_while_waiting() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let (stream, event) = held_work();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let on_stream = scope.spawn(|| stream.synchronize(None));
        let on_event = scope.spawn(|| event.wait(None));
        std::thread::sleep(Duration::from_millis(100));
        sim::fault(0, ILLEGAL_ADDRESS).unwrap();
        for waiter in [on_stream, on_event] {
            let error = waiter.join().unwrap().unwrap_err();
            assert_eq!(error.status(), Status::DeviceFault, "{error}");
            assert_eq!(error.driver_code(), Some(ILLEGAL_ADDRESS), "{error}");
        }
    });
    assert!(start.elapsed() < Duration::from_secs(10));
    // Every later call on that device fails at once, with the same cause.
    let start = Instant::now();
    for _ in 0..100 {
        let error = Stream::new(0)
            .and_then(|stream| stream.encoder())
            .unwrap_err();
        assert_eq!(error.status(), Status::DeviceFault, "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(1));
    // The other device is as it was.
    Stream::set_default(Some(&Stream::new(1).unwrap())).unwrap();
    let bytes = array_to_raw_bytes(&arange_f32(0.0, 2.0, 1.0)).unwrap();
    assert_eq!(common::values(&bytes), [0.0, 1.0]);
    println!("{DONE}");
}

#[test]
fn what_another_thread_builds_is_waited_for_with_a_deadline() {
    run_child("child_builds_of_others", &[]).expect_done(DONE);
}

/// Waits until a thread is inside a call to the entry point.
fn wait_until_inside(entry_point: &str) {
    let begin = Instant::now();
    let inside = |call: &sim::Call| call.entry_point == entry_point && call.result.is_none();
    while !sim::calls().unwrap().iter().any(inside) {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[ignore = "a child"]
fn child_builds_of_others() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let stall = Duration::from_secs(1);
    let short = Some(Duration::from_millis(50));
    sim::inject(Some("hipGetDeviceProperties"), 1, 1, 0, stall).unwrap();
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| Device::get(1));
        wait_until_inside("hipGetDeviceProperties");
        let error = Device::get_within(1, short).unwrap_err();
        assert_eq!(error.status(), Status::Timeout, "{error}");
        let device = Device::get_within(1, None).unwrap();
        assert_eq!(builder.join().unwrap().unwrap(), device);
        assert_eq!(Device::get_within(1, Some(Duration::ZERO)).unwrap(), device);
    });

    let text = "extern \"C\" __global__ void slow(int *out) { *out = 1; }";
    let source = ModuleSource::new("slow", text).unwrap();
    sim::inject(Some("hiprtcCompileProgram"), 1, 1, 0, stall).unwrap();
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| source.code_for("sim"));
        wait_until_inside("hiprtcCompileProgram");
        let error = source.code_for_within("sim", short).unwrap_err();
        assert_eq!(error.status(), Status::Timeout, "{error}");
        let code = source.code_for_within("sim", None).unwrap();
        assert!(std::ptr::eq(builder.join().unwrap().unwrap(), code));
    });
    println!("{DONE}");
}
