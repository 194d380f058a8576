//! Streams and threads, on whatever driver there is.

mod common;

use std::sync::mpsc;
use std::thread;

use common::{driver_with_device, values};
use rocm_device_map::probe::{Array, arange_f32, array_to_raw_bytes, multiply_scalar};
use rocm_device_map::streams::{
    DefaultStreamGuard, gpu_device_count, install_thread_local_default_stream, new_stream_on_gpu,
    new_thread_local_generation_stream, new_thread_local_stream_on_gpu,
    shared_thread_local_generation_stream, stream_from_thread_local_stream,
    synchronize_thread_local_stream,
};
use rocm_device_map::{Device, Status, Stream, hardware};

fn evens() -> Array {
    multiply_scalar(&arange_f32(0.0, 4.0, 1.0), 2.0)
}

fn check_evens(array: &Array) {
    assert_eq!(
        values(&array_to_raw_bytes(array).unwrap()),
        [0.0, 2.0, 4.0, 6.0]
    );
}

#[test]
fn the_count_and_the_kind_say_what_there_is() {
    let Some(choice) = driver_with_device("the_count_and_the_kind_say_what_there_is") else {
        return;
    };
    assert_eq!(gpu_device_count(), choice.device_count);
    assert_eq!(Device::count().unwrap(), choice.device_count);
    let expected = match choice.driver.as_str() {
        "hip" => hardware::GpuBackendKind::Rocm,
        "cuda" => hardware::GpuBackendKind::Cuda,
        _ => hardware::GpuBackendKind::Sim,
    };
    assert_eq!(hardware::gpu_backend_kind(), expected);
}

#[test]
fn each_thread_resolves_to_a_stream_of_its_own() {
    if driver_with_device("each_thread_resolves_to_a_stream_of_its_own").is_none() {
        return;
    }
    let handle = new_thread_local_generation_stream().expect("there is a GPU");
    let here = stream_from_thread_local_stream(&handle).unwrap();
    assert_eq!(here, stream_from_thread_local_stream(&handle).unwrap());
    let there = thread::scope(|scope| {
        scope
            .spawn(|| {
                let there = stream_from_thread_local_stream(&handle).unwrap();
                assert_eq!(there, stream_from_thread_local_stream(&handle).unwrap());
                there
            })
            .join()
            .unwrap()
    });
    assert_ne!(here, there);
    // The thread has ended, and its stream, which is held here, can still be used.
    there.synchronize(None).unwrap();
}

#[test]
fn the_shared_handle_is_one_stream_for_each_thread() {
    if driver_with_device("the_shared_handle_is_one_stream_for_each_thread").is_none() {
        return;
    }
    let resolve = || {
        let handle = shared_thread_local_generation_stream().expect("there is a GPU");
        stream_from_thread_local_stream(&handle).unwrap()
    };
    assert_eq!(resolve(), resolve());
    assert_ne!(resolve(), thread::spawn(resolve).join().unwrap());
}

#[test]
fn installing_none_changes_nothing() {
    if driver_with_device("installing_none_changes_nothing").is_none() {
        return;
    }
    let _guard = DefaultStreamGuard::capture();
    let stream = Stream::new(0).unwrap();
    Stream::set_default(Some(&stream)).unwrap();
    install_thread_local_default_stream(None).unwrap();
    synchronize_thread_local_stream(None).unwrap();
    assert_eq!(Stream::current_default().unwrap(), Some(stream));
}

#[test]
fn the_default_outlives_its_handle() {
    if driver_with_device("the_default_outlives_its_handle").is_none() {
        return;
    }
    let _guard = DefaultStreamGuard::capture();
    let handle = new_thread_local_generation_stream().expect("there is a GPU");
    let stream = stream_from_thread_local_stream(&handle).unwrap();
    install_thread_local_default_stream(Some(&handle)).unwrap();
    drop(handle);
    // Another resolution is when what was resolved from ended handles is let go.
    let other = new_thread_local_generation_stream().expect("there is a GPU");
    stream_from_thread_local_stream(&other).unwrap();
    assert_eq!(Stream::current_default().unwrap(), Some(stream));
    check_evens(&evens());
}

#[test]
fn a_guard_restores_a_stream_and_none() {
    if driver_with_device("a_guard_restores_a_stream_and_none").is_none() {
        return;
    }
    assert!(Stream::current_default().unwrap().is_none());
    let outer = DefaultStreamGuard::capture();
    let first = Stream::new(0).unwrap();
    Stream::set_default(Some(&first)).unwrap();
    let unwound = std::panic::catch_unwind(|| {
        let _inner = DefaultStreamGuard::capture();
        Stream::set_default(Some(&Stream::new(0).unwrap())).unwrap();
        assert_ne!(Stream::current_default().unwrap(), None);
        panic!("on purpose: the guard restores while unwinding too");
    });
    assert!(unwound.is_err());
    assert_eq!(Stream::current_default().unwrap(), Some(first));
    drop(outer);
    assert!(Stream::current_default().unwrap().is_none());
}

#[test]
fn a_thread_without_a_default_evaluates_on_its_shared_stream() {
    if driver_with_device("a_thread_without_a_default_evaluates_on_its_shared_stream").is_none() {
        return;
    }
    thread::spawn(|| {
        assert!(Stream::current_default().unwrap().is_none());
        check_evens(&evens());
        assert!(Stream::current_default().unwrap().is_none());
    })
    .join()
    .unwrap();
}

#[test]
fn streams_go_to_the_gpu_that_they_are_for() {
    if driver_with_device("streams_go_to_the_gpu_that_they_are_for").is_none() {
        return;
    }
    for index in 0..gpu_device_count() {
        let _guard = DefaultStreamGuard::capture();
        let handle = new_thread_local_stream_on_gpu(index).unwrap();
        assert_eq!(handle.device_index(), index);
        install_thread_local_default_stream(Some(&handle)).unwrap();
        let default = Stream::current_default().unwrap().expect("it is set");
        assert_eq!(default.device_index(), index);
        check_evens(&evens());
        synchronize_thread_local_stream(Some(&handle)).unwrap();

        let stream = new_stream_on_gpu(index).unwrap();
        assert_eq!(stream.device_index(), index);
        Stream::set_default(Some(&stream)).unwrap();
        check_evens(&evens());
    }
}

#[test]
fn a_new_stream_that_threads_first_use_at_once_is_one() {
    if driver_with_device("a_new_stream_that_threads_first_use_at_once_is_one").is_none() {
        return;
    }
    let stream = new_stream_on_gpu(0).unwrap();
    let barrier = std::sync::Barrier::new(8);
    let indices: Vec<i32> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    stream.stream_index().unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        indices.iter().all(|index| *index == indices[0]),
        "{indices:?}"
    );
}

#[test]
fn numbered_streams_are_the_same_stream_each_time() {
    if driver_with_device("numbered_streams_are_the_same_stream_each_time").is_none() {
        return;
    }
    let stream = Stream::get(0, 77_000).unwrap();
    assert_eq!(stream, Stream::get(0, 77_000).unwrap());
    assert_eq!(stream.stream_index().unwrap(), 77_000);
    let _guard = DefaultStreamGuard::capture();
    Stream::set_default(Some(&stream)).unwrap();
    assert_eq!(Stream::current_default().unwrap(), Some(stream.clone()));
    check_evens(&evens());
    let error = Stream::get(0, -1).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
}

#[test]
fn raw_handles_can_be_taken_and_lent() {
    if driver_with_device("raw_handles_can_be_taken_and_lent").is_none() {
        return;
    }
    let stream = Stream::new(0).unwrap();
    assert!(!stream.native_stream().unwrap().is_null());
    let clone = stream.clone();
    let raw = stream.into_raw().unwrap();
    drop(clone);
    // The raw handle's own reference keeps the stream.
    let stream = Stream::from_raw(raw).unwrap();
    stream.synchronize(None).unwrap();
    drop(stream);
    let error = Stream::from_raw(raw).unwrap_err();
    assert_eq!(error.status(), Status::StaleHandle, "{error}");
}

#[test]
fn completion_handlers_run_once_each_in_order() {
    if driver_with_device("completion_handlers_run_once_each_in_order").is_none() {
        return;
    }
    let stream = Stream::new(0).unwrap();
    let (sender, receiver) = mpsc::channel();
    for number in 0..100 {
        let sender = sender.clone();
        let encoder = stream.encoder().unwrap();
        encoder
            .add_completion_handler(move |result| sender.send((number, result)).unwrap())
            .unwrap();
        if number % 3 == 0 {
            encoder.commit().unwrap();
        }
    }
    drop(sender);
    stream.synchronize(None).unwrap();
    let seen: Vec<_> = receiver.try_iter().collect();
    let expected: Vec<_> = (0..100).map(|number| (number, Ok(()))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_handler_may_panic_and_may_not_wait() {
    if driver_with_device("a_handler_may_panic_and_may_not_wait").is_none() {
        return;
    }
    let stream = Stream::new(0).unwrap();
    let encoder = stream.encoder().unwrap();
    let (sender, receiver) = mpsc::channel();
    let waited_for = stream.clone();
    encoder
        .add_completion_handler(|_| panic!("on purpose: it ends at the handler's boundary"))
        .unwrap();
    encoder
        .add_completion_handler(move |_| sender.send(waited_for.synchronize(None)).unwrap())
        .unwrap();
    stream.synchronize(None).unwrap();
    let error = receiver.try_recv().unwrap().unwrap_err();
    assert_eq!(error.status(), Status::InCallback, "{error}");
}

#[test]
fn the_first_recorded_error_is_kept_until_taken() {
    if driver_with_device("the_first_recorded_error_is_kept_until_taken").is_none() {
        return;
    }
    let stream = Stream::new(0).unwrap();
    assert_eq!(stream.take_error().unwrap(), None);
    stream.record_error(Status::Driver, "the first").unwrap();
    stream.record_error(Status::Driver, "the second").unwrap();
    let error = stream.synchronize(None).unwrap_err();
    assert_eq!(error.message(), "the first");
    let taken = stream.take_error().unwrap().expect("it was recorded");
    assert_eq!(taken.status(), Status::Driver);
    assert_eq!(taken.message(), "the first");
    assert_eq!(stream.take_error().unwrap(), None);
    stream.synchronize(None).unwrap();
    let error = stream.record_error(Status::Ok, "no error").unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument, "{error}");
}
