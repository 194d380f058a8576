//! Bad input: each kind gives its own clear error and changes nothing.

mod common;

use std::time::Duration;

use common::{is_child, run_child, use_sim};
use rocm_device_map::probe::{add, arange_f32, ones, try_eval};
use rocm_device_map::streams::{
    InvalidGpuIndex, gpu_device_count, new_stream_on_gpu, new_thread_local_generation_stream,
    new_thread_local_stream_on_gpu, shared_thread_local_generation_stream,
};
use rocm_device_map::{
    Config, Device, Encoder, Error, Event, Kernel, LaunchConfig, Module, ModuleSource, Status,
    Stream, configure, driver_info, hardware, sim, sys,
};

const DONE: &str = "BAD_INPUT done";
/// Not a handle of any process: a kind that does not exist.
const NEVER_A_HANDLE: u64 = u64::MAX;

fn failure<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error,
    }
}

/// The error of a call that must make no driver call.
fn failure_without_a_driver_call<T>(call: impl FnOnce() -> Result<T, Error>) -> Error {
    let before = sim::call_count(None).unwrap();
    let error = failure(call());
    assert_eq!(sim::call_count(None).unwrap(), before, "for: {error}");
    error
}

fn in_child(test: &str, environment: &[(&str, &str)]) {
    run_child(test, environment).expect_done(DONE);
}

#[test]
fn an_index_out_of_range_names_itself_and_the_count() {
    in_child("child_index_out_of_range", &[]);
}

#[test]
#[ignore = "a child"]
fn child_index_out_of_range() {
    if !is_child() {
        return;
    }
    use_sim(2);
    assert_eq!(Device::count().unwrap(), 2);
    for index in [-1, 2, i32::MAX, i32::MIN] {
        for error in [
            failure_without_a_driver_call(|| Device::get(index)),
            failure_without_a_driver_call(|| Stream::new(index)),
            failure_without_a_driver_call(|| Stream::get(index, 0)),
        ] {
            assert_eq!(error.status(), Status::InvalidDevice, "{error}");
            let message = error.to_string();
            assert!(message.contains(&index.to_string()), "{message}");
            assert!(message.contains('2'), "{message}");
        }
        let expected = InvalidGpuIndex {
            requested: index,
            device_count: 2,
        };
        assert_eq!(new_stream_on_gpu(index).unwrap_err(), expected);
        assert_eq!(new_thread_local_stream_on_gpu(index).unwrap_err(), expected);
        let message = expected.to_string();
        assert!(
            message.contains(&index.to_string()) && message.contains("2 GPUs"),
            "{message}"
        );
    }
    for index in 0..2 {
        assert_eq!(Device::construction_count(index).unwrap(), 0);
    }
    Device::get(1).expect("what is in range works all the same");
    println!("{DONE}");
}

#[test]
fn a_process_without_a_device_says_so() {
    in_child(
        "child_zero_devices",
        &[("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", "0")],
    );
}

#[test]
#[ignore = "a child"]
fn child_zero_devices() {
    if !is_child() {
        return;
    }
    assert_eq!(driver_info().unwrap().name, "sim");
    assert_eq!(Device::count().unwrap(), 0);
    assert_eq!(gpu_device_count(), 0);
    assert_eq!(hardware::gpu_backend_kind(), hardware::GpuBackendKind::None);
    assert!(new_thread_local_generation_stream().is_none());
    assert!(shared_thread_local_generation_stream().is_none());
    assert_eq!(
        new_stream_on_gpu(0).unwrap_err().to_string(),
        "there is no GPU 0: this process has 0 GPUs"
    );
    for error in [
        failure_without_a_driver_call(|| Device::get(0)),
        failure_without_a_driver_call(|| try_eval(&ones(4))),
    ] {
        assert_eq!(error.status(), Status::NoDevice, "{error}");
    }
    println!("{DONE}");
}

#[test]
fn an_unknown_driver_is_named_with_those_there_are() {
    in_child("child_unknown_driver", &[("RDM_DRIVER", "vulkan")]);
}

#[test]
#[ignore = "a child"]
fn child_unknown_driver() {
    if !is_child() {
        return;
    }
    for error in [
        failure(driver_info()),
        failure(Device::get(0)),
        failure(Device::count().map(|_| ())),
        failure(rocm_device_map::choose_driver()),
        failure(configure(&Config::new().driver("vulkan"))),
    ] {
        assert_eq!(error.status(), Status::UnknownDriver, "{error}");
        let message = error.to_string();
        assert!(
            message.contains("vulkan") && message.contains("sim"),
            "{message}"
        );
    }
    assert_eq!(gpu_device_count(), 0);
    // Nothing was settled by that: the process can still be told what to use.
    configure(&Config::new().driver("sim")).expect("no driver was chosen");
    assert_eq!(Device::count().unwrap(), 2);
    println!("{DONE}");
}

#[test]
fn settings_that_are_not_numbers_are_named() {
    for value in ["two", "-1", "65", "2 "] {
        in_child(
            "child_bad_sim_devices",
            &[("RDM_DRIVER", "sim"), ("RDM_SIM_DEVICES", value)],
        );
    }
}

#[test]
#[ignore = "a child"]
fn child_bad_sim_devices() {
    if !is_child() {
        return;
    }
    let error = failure(Device::count());
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    let message = error.to_string();
    let value = std::env::var("RDM_SIM_DEVICES").unwrap();
    assert!(
        message.contains("RDM_SIM_DEVICES") && message.contains(&value),
        "{message}"
    );
    println!("{DONE}");
}

#[test]
fn configuring_after_the_driver_was_chosen_is_refused() {
    use_sim(2);
    driver_info().unwrap();
    let error = failure(configure(&Config::new().driver("sim").sim_device_count(4)));
    assert_eq!(error.status(), Status::AlreadyConfigured, "{error}");
    assert_eq!(Device::count().unwrap(), 2);
}

#[test]
fn texts_with_a_nul_character_are_refused() {
    for error in [
        failure(configure(&Config::new().driver("s\0im"))),
        failure(ModuleSource::new("a\0b", "")),
        failure(ModuleSource::new("ab", "\0")),
        failure(ModuleSource::new("ab", "").and_then(|source| source.option("\0"))),
    ] {
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        assert!(error.to_string().contains("NUL"), "{error}");
    }
}

/// One call on each kind of handle, with handles that all have these bits.
fn calls_with_handle(bits: u64) -> Vec<(&'static str, Error)> {
    use_sim(2);
    let device = Device::from_raw(sys::rdm_device { bits });
    let encoder = Encoder::from_raw(sys::rdm_encoder { bits });
    let event = Event::from_raw(sys::rdm_event { bits });
    let module = Module::from_raw(sys::rdm_module { bits });
    let kernel = Kernel::from_raw(sys::rdm_kernel { bits });
    let good = Stream::get(0, 1000).unwrap().encoder().unwrap();
    // SAFETY: the calls fail before they look at the kernel's arguments.
    let launch =
        |encoder: Encoder| unsafe { encoder.launch(kernel, &LaunchConfig::linear(1, 1), &[]) };
    vec![
        ("device", failure(device.info())),
        ("device", failure(device.make_current())),
        ("device", failure(device.synchronize(None))),
        ("device", failure(Event::new(device))),
        (
            "stream",
            failure(Stream::from_raw(sys::rdm_stream { bits })),
        ),
        ("encoder", failure(encoder.commit())),
        ("encoder", failure(encoder.native_stream())),
        (
            "encoder",
            failure(encoder.add_completion_handler(|_| panic!("it must not be called"))),
        ),
        ("event", failure(event.query())),
        ("event", failure(event.wait(Some(Duration::ZERO)))),
        ("event", failure(event.native_event())),
        ("event", failure(good.record_event(&event))),
        ("event", failure(good.wait_event(&event))),
        ("module", failure(module.kernel("k"))),
        ("kernel", failure(launch(good))),
    ]
}

#[test]
fn a_null_handle_is_told_from_a_foreign_one() {
    for (kind, error) in calls_with_handle(0) {
        assert_eq!(error.status(), Status::NullHandle, "{kind}: {error}");
    }
    for (kind, error) in calls_with_handle(NEVER_A_HANDLE) {
        assert_eq!(error.status(), Status::ForeignHandle, "{kind}: {error}");
    }
    // A handle of another kind is foreign as well.
    let device = Device::get(0).unwrap().as_raw();
    let error = failure(Stream::from_raw(sys::rdm_stream { bits: device.bits }));
    assert_eq!(error.status(), Status::ForeignHandle, "{error}");
    // The null stream is no error as a default: it stands for none.
    Stream::set_default(None).unwrap();
    assert!(Stream::current_default().unwrap().is_none());
}

#[test]
fn a_released_handle_is_stale_from_any_thread() {
    use_sim(2);
    let stream = Stream::new(0).unwrap();
    let encoder = stream.encoder().unwrap();
    let event = Event::new(Device::get(0).unwrap()).unwrap();
    let (raw_stream, raw_event) = (stream.as_raw().unwrap(), event.as_raw());
    drop(stream);
    drop(event);
    let check = move || {
        let event = std::mem::ManuallyDrop::new(Event::from_raw(raw_event));
        for error in [
            failure(Stream::from_raw(raw_stream)),
            failure(Stream::from_borrowed_raw(raw_stream)),
            failure(encoder.commit()),
            failure(encoder.record_event(&event)),
            failure(event.query()),
            failure(event.wait(None)),
        ] {
            assert_eq!(error.status(), Status::StaleHandle, "{error}");
        }
        // SAFETY: the functions take any handle.
        unsafe {
            assert_eq!(
                sys::rdm_stream_release(raw_stream),
                sys::RDM_ERROR_STALE_HANDLE as i32
            );
            assert_eq!(
                sys::rdm_event_release(raw_event),
                sys::RDM_ERROR_STALE_HANDLE as i32
            );
        }
    };
    check();
    std::thread::spawn(check).join().unwrap();
}

#[test]
fn a_cleared_encoder_is_stale_and_its_stream_goes_on() {
    in_child("child_cleared_encoder", &[]);
}

#[test]
#[ignore = "a child, since it clears the encoders of everyone in the process"]
fn child_cleared_encoder() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let stream = Stream::new(0).unwrap();
    let before = stream.encoder().unwrap();
    rocm_device_map::clear_encoders().unwrap();
    let error = failure(before.commit());
    assert_eq!(error.status(), Status::StaleHandle, "{error}");
    stream.encoder().unwrap().commit().unwrap();
    println!("{DONE}");
}

#[test]
fn an_event_waited_for_before_it_was_recorded_says_so() {
    use_sim(2);
    let device = Device::get(0).unwrap();
    let stream = Stream::new(0).unwrap();
    let encoder = stream.encoder().unwrap();
    let event = Event::new(device).unwrap();
    let error = failure(event.wait(Some(Duration::from_secs(5))));
    assert_eq!(error.status(), Status::NotRecorded, "{error}");
    let error = failure(encoder.wait_event(&event));
    assert_eq!(error.status(), Status::NotRecorded, "{error}");
    // That spoiled nothing, but for the stream's own record of it.
    stream.take_error().unwrap();
    encoder.record_event(&event).unwrap();
    encoder.wait_event(&event).unwrap();
    event.wait(None).unwrap();
    assert!(event.query().unwrap());
    stream.synchronize(None).unwrap();
}

#[test]
fn an_event_of_another_device_is_refused_by_record() {
    use_sim(2);
    let event = Event::new(Device::get(1).unwrap()).unwrap();
    let stream = Stream::new(0).unwrap();
    let error = failure(stream.encoder().unwrap().record_event(&event));
    assert_eq!(error.status(), Status::WrongDevice, "{error}");
    stream.take_error().unwrap();
    stream.synchronize(None).unwrap();
}

#[test]
fn impossible_arrays_fail_when_they_are_evaluated() {
    use_sim(2);
    for array in [
        arange_f32(0.0, 1.0, 0.0),
        arange_f32(0.0, f32::INFINITY, 1.0),
        arange_f32(f32::NAN, 1.0, 1.0),
        add(&ones(3), &ones(4)),
        ones(usize::MAX),
    ] {
        let error = failure(try_eval(&array));
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        assert!(!array.is_evaluated());
    }
}

#[test]
fn sources_that_do_not_compile_show_the_compilers_words() {
    use_sim(2);
    let device = Device::get(0).unwrap();
    let source = ModuleSource::new(
        "broken",
        "extern \"C\" __global__ void k() { no_such_thing(1); }",
    )
    .unwrap();
    let error = failure(Module::get(device, &source));
    assert_eq!(error.status(), Status::Compile, "{error}");
    assert!(error.to_string().contains("no_such_thing"), "{error}");

    let source = ModuleSource::new("fine", "extern \"C\" __global__ void k() {}").unwrap();
    let module = Module::get(device, &source).unwrap();
    let error = failure(module.kernel("other"));
    assert_eq!(error.status(), Status::KernelNotFound, "{error}");
    assert!(error.to_string().contains("other"), "{error}");
    module.kernel("k").unwrap();
}
