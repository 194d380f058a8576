//! Who touches what: loading the library touches nothing, and a process that asks for one device
//! makes no driver call that names another. Read from the simulated driver's call log.

mod common;

use common::{is_child, run_child, values};
use rocm_device_map::probe::{arange_f32, array_to_raw_bytes, multiply_scalar, oversized_block};
use rocm_device_map::streams::{
    DefaultStreamGuard, install_thread_local_default_stream, new_thread_local_stream_on_gpu,
    stream_from_thread_local_stream,
};
use rocm_device_map::{Device, Event, sim};

const DONE: &str = "DEVICE_ISOLATION done";
const ENVIRONMENT: [(&str, &str); 2] = [("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "4")];

/// What may be called before any device was asked for.
const CALLS_OF_LOADING: [&str; 5] = [
    "hipInit",
    "hipGetDeviceCount",
    "hipDriverGetVersion",
    "hipRuntimeGetVersion",
    "hiprtcVersion",
];

#[test]
fn loading_the_library_calls_nothing() {
    let outcome = run_child("child_loading_the_library", &ENVIRONMENT);
    outcome.expect_done(DONE);
    assert_eq!(outcome.bound_indices(), []);
}

#[test]
#[ignore = "a child"]
fn child_loading_the_library() {
    if !is_child() {
        return;
    }
    // What needs no driver does not load it: it can still be configured after these.
    assert!(rocm_device_map::version().starts_with(char::is_numeric));
    assert!(rocm_device_map::take_unattributed_error().is_ok());
    let config = rocm_device_map::Config::new()
        .driver("sim")
        .sim_device_count(4);
    rocm_device_map::configure(&config).expect("nothing has loaded the driver");

    // Reading the log loads the driver, which makes the first calls there are.
    let calls = sim::calls().unwrap();
    for call in &calls {
        assert!(CALLS_OF_LOADING.contains(&call.entry_point), "{call:?}");
        assert_eq!(call.named_device, None, "{call:?}");
    }
    let after_loading = calls.len();
    assert_eq!(Device::count().unwrap(), 4);
    for index in 0..4 {
        assert_eq!(Device::construction_count(index).unwrap(), 0);
    }
    let _stream = new_thread_local_stream_on_gpu(3).unwrap();
    let _stream = rocm_device_map::streams::new_stream_on_gpu(3).unwrap();
    drop(DefaultStreamGuard::capture());
    assert_eq!(sim::calls().unwrap().len(), after_loading);
    println!("{DONE}");
}

#[test]
fn a_process_that_asks_for_one_device_names_no_other() {
    let outcome = run_child("child_asks_for_device_1_alone", &ENVIRONMENT);
    outcome.expect_done(DONE);
    assert_eq!(outcome.bound_indices(), [1]);
}

#[test]
#[ignore = "a child"]
fn child_asks_for_device_1_alone() {
    if !is_child() {
        return;
    }
    // Several threads, since each starts with device 0 as its current one.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(use_device_1);
        }
    });
    let (finished, wait) = std::sync::mpsc::channel();
    let stream = rocm_device_map::Stream::new(1).unwrap();
    let encoder = stream.encoder().unwrap();
    encoder
        .add_completion_handler(move |result| finished.send(result).unwrap())
        .unwrap();
    encoder.commit().unwrap();
    wait.recv().unwrap().unwrap();
    Device::get(1).unwrap().synchronize(None).unwrap();
    rocm_device_map::clear_encoders().unwrap();
    drop(stream);

    let calls = sim::calls().unwrap();
    assert!(calls.iter().any(|call| call.named_device == Some(1)));
    for call in &calls {
        assert!(
            matches!(call.named_device, None | Some(1)),
            "a call names another device: {call:?}"
        );
        if call.handle != 0 {
            assert_eq!(
                call.current_device, 1,
                "an object under the wrong device: {call:?}"
            );
        }
    }
    for index in [0, 2, 3] {
        assert_eq!(Device::construction_count(index).unwrap(), 0);
    }
    println!("{DONE}");
}

fn use_device_1() {
    let handle = new_thread_local_stream_on_gpu(1).unwrap();
    install_thread_local_default_stream(Some(&handle)).unwrap();
    let array = multiply_scalar(&arange_f32(0.0, 8.0, 1.0), 3.0);
    let found = values(&array_to_raw_bytes(&array).unwrap());
    assert_eq!(found, [0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0]);
    oversized_block().expect_err("a block of 2048 threads");

    let stream = stream_from_thread_local_stream(&handle).unwrap();
    let event = Event::new(Device::get(1).unwrap()).unwrap();
    stream.encoder().unwrap().record_event(&event).unwrap();
    event.wait(None).unwrap();
    stream.synchronize(None).unwrap();
}
