//! The probe array: values, sharing, streams, and what goes wrong on purpose.

mod common;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use common::{driver_with_device, is_child, run_child, tell, values};
use rocm_device_map::probe::{
    Array, add, arange_f32, array_to_raw_bytes, full_like, jit_probe, multiply_scalar, ones,
    ones_stream, out_of_bounds_write, oversized_block, try_eval,
};
use rocm_device_map::streams::{DefaultStreamGuard, new_stream_on_gpu};
use rocm_device_map::{Device, Module, Status, Stream, choose_driver, clear_encoders};

const DONE: &str = "PROBE done";

fn read(array: &Array) -> Vec<f32> {
    values(&array_to_raw_bytes(array).unwrap())
}

#[test]
fn each_operation_computes_what_it_says() {
    if driver_with_device("each_operation_computes_what_it_says").is_none() {
        return;
    }
    assert_eq!(read(&arange_f32(1.0, 3.0, 0.5)), [1.0, 1.5, 2.0, 2.5]);
    assert_eq!(read(&arange_f32(3.0, 0.0, -1.0)), [3.0, 2.0, 1.0]);
    assert_eq!(read(&arange_f32(0.0, 2.5, 1.0)), [0.0, 1.0, 2.0]);
    assert_eq!(read(&ones(3)), [1.0; 3]);
    assert_eq!(read(&full_like(&ones(2), -0.25)), [-0.25; 2]);
    let range = arange_f32(0.0, 3.0, 1.0);
    assert_eq!(read(&multiply_scalar(&range, 4.0)), [0.0, 4.0, 8.0]);
    assert_eq!(read(&add(&range, &range)), [0.0, 2.0, 4.0]);
}

#[test]
fn sizes_from_none_to_many_blocks_are_exact() {
    if driver_with_device("sizes_from_none_to_many_blocks_are_exact").is_none() {
        return;
    }
    for len in [0u32, 1, 255, 256, 257, 1000, 100_003] {
        let range = arange_f32(0.0, len as f32, 1.0);
        let result = add(&multiply_scalar(&range, 2.0), &full_like(&range, 1.0));
        try_eval(&result).unwrap();
        let found = read(&result);
        assert_eq!(found.len(), len as usize);
        assert!(
            (0..len)
                .zip(found)
                .all(|(index, found)| found == index as f32 * 2.0 + 1.0)
        );
    }
    assert!(arange_f32(1.0, 0.0, 1.0).is_empty());
}

#[test]
fn nothing_is_computed_before_it_is_asked_for() {
    if driver_with_device("nothing_is_computed_before_it_is_asked_for").is_none() {
        return;
    }
    let base = ones(4);
    let like = full_like(&base, 2.0);
    let result = multiply_scalar(&like, 2.0);
    assert!(!result.is_evaluated());
    try_eval(&result).unwrap();
    assert!(result.is_evaluated() && like.is_evaluated());
    assert!(!base.is_evaluated(), "only its length was needed");
}

#[test]
fn a_shared_array_is_evaluated_once_for_all_threads() {
    if driver_with_device("a_shared_array_is_evaluated_once_for_all_threads").is_none() {
        return;
    }
    const THREADS: usize = 8;
    for _ in 0..20 {
        let mut shared = arange_f32(0.0, 1000.0, 1.0);
        for _ in 0..5 {
            shared = add(&shared, &full_like(&shared, 1.0));
        }
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (shared, barrier) = (&shared, &barrier);
                scope.spawn(move || {
                    Stream::set_default(Some(&Stream::new(0).unwrap())).unwrap();
                    barrier.wait();
                    // Some read it, and some compute on from it on their own stream.
                    let found = if thread % 2 == 0 {
                        read(shared)
                    } else {
                        read(&multiply_scalar(shared, 1.0))
                    };
                    for (index, found) in found.iter().enumerate() {
                        assert_eq!(*found, index as f32 + 5.0, "thread {thread}");
                    }
                });
            }
        });
    }
}

#[test]
fn memory_that_others_still_read_is_not_reused() {
    if driver_with_device("memory_that_others_still_read_is_not_reused").is_none() {
        return;
    }
    let _guard = DefaultStreamGuard::capture();
    let (first, second) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
    let mut results = Vec::new();
    for round in 0..50u32 {
        // Made on one stream, read on the other, dropped, and its memory wanted again at once.
        Stream::set_default(Some(&first)).unwrap();
        let array = full_like(&ones(4096), round as f32);
        try_eval(&array).unwrap();
        Stream::set_default(Some(&second)).unwrap();
        let sum = add(&array, &ones_stream(4096, &first));
        try_eval(&multiply_scalar(&sum, 1.0)).unwrap();
        results.push(sum);
        drop(array);
    }
    for (round, sum) in results.iter().enumerate() {
        assert!(read(sum).iter().all(|value| *value == round as f32 + 1.0));
    }
}

#[test]
fn a_stream_given_by_name_is_where_it_runs() {
    if driver_with_device("a_stream_given_by_name_is_where_it_runs").is_none() {
        return;
    }
    let last = Device::count().unwrap() - 1;
    let stream = new_stream_on_gpu(last).unwrap();
    assert_eq!(read(&ones_stream(5, &stream)), [1.0; 5]);
}

#[test]
fn arrays_of_two_devices_do_not_mix() {
    let Some(choice) = driver_with_device("arrays_of_two_devices_do_not_mix") else {
        return;
    };
    if choice.device_count < 2 {
        tell(&format!(
            "arrays_of_two_devices_do_not_mix is skipped: it needs two GPUs; {choice}"
        ));
        return;
    }
    let _guard = DefaultStreamGuard::capture();
    Stream::set_default(Some(&Stream::new(0).unwrap())).unwrap();
    let other = ones_stream(4, &Stream::new(1).unwrap());
    let error = try_eval(&add(&ones(4), &other)).unwrap_err();
    assert_eq!(error.status(), Status::WrongDevice, "{error}");
    assert_eq!(read(&other), [1.0; 4]);
    assert_eq!(read(&ones(4)), [1.0; 4]);
}

#[test]
fn long_chains_take_no_stack() {
    if driver_with_device("long_chains_take_no_stack").is_none() {
        return;
    }
    let chain = |length: usize| {
        let mut array = ones(8);
        for _ in 0..length {
            array = multiply_scalar(&array, 1.0);
        }
        array
    };
    thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            assert_eq!(read(&chain(5_000)), [1.0; 8]);
            drop(chain(200_000));
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn clearing_encoders_under_evaluations_spoils_none() {
    let Some(_) = driver_with_device("clearing_encoders_under_evaluations_spoils_none") else {
        return;
    };
    run_child("child_clearing_encoders", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child, since it clears the encoders of everyone in the process"]
fn child_clearing_encoders() {
    if !is_child() {
        return;
    }
    choose_driver().unwrap();
    let end = Instant::now() + Duration::from_millis(1500);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let range = arange_f32(0.0, 256.0, 1.0);
                    let result = add(&multiply_scalar(&range, 2.0), &ones(256));
                    for (index, found) in read(&result).iter().enumerate() {
                        assert_eq!(*found, index as f32 * 2.0 + 1.0, "element {index}");
                    }
                }
            });
        }
        scope.spawn(|| {
            while Instant::now() < end {
                clear_encoders().unwrap();
                thread::sleep(Duration::from_micros(200));
            }
        });
    });
    println!("{DONE}");
}

#[test]
fn different_sources_are_different_kernels() {
    if driver_with_device("different_sources_are_different_kernels").is_none() {
        return;
    }
    const THREADS: u64 = 8;
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                // One that all want at once, and one of its own.
                for id in [u64::MAX, 1_000 + thread, u64::MAX] {
                    assert_eq!(jit_probe(id).unwrap(), id);
                }
            });
        }
    });
}

#[test]
fn one_source_is_compiled_once_however_many_want_it() {
    if driver_with_device("one_source_is_compiled_once_however_many_want_it").is_some() {
        run_child("child_compiled_once", &[]).expect_done(DONE);
    }
}

#[test]
#[ignore = "a child, since it counts the process's compiles"]
fn child_compiled_once() {
    if !is_child() {
        return;
    }
    choose_driver().unwrap();
    let before = Module::compile_count().unwrap();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(jit_probe(42).unwrap(), 42);
            });
        }
    });
    assert_eq!(Module::compile_count().unwrap() - before, 1);
    println!("{DONE}");
}

#[test]
fn an_oversized_block_is_refused_and_the_device_stays_usable() {
    if driver_with_device("an_oversized_block_is_refused_and_the_device_stays_usable").is_none() {
        return;
    }
    let _guard = DefaultStreamGuard::capture();
    Stream::set_default(Some(&Stream::new(0).unwrap())).unwrap();
    for _ in 0..10 {
        let error = oversized_block().unwrap_err();
        assert_eq!(error.status(), Status::Launch, "{error}");
        assert!(matches!(error.driver_code(), Some(1 | 9)), "{error:?}");
        assert!(
            error.call().is_some() && error.driver_name().is_some(),
            "{error:?}"
        );
        let message = error.to_string();
        assert!(
            message.contains("probe_full") && message.contains("2048"),
            "{message}"
        );
        assert_eq!(read(&ones(4)), [1.0; 4]);
    }
    assert!(!Device::get(0).unwrap().info().unwrap().faulted);
}

#[test]
fn a_wild_write_faults_the_device_and_every_call_ends() {
    if driver_with_device("a_wild_write_faults_the_device_and_every_call_ends").is_some() {
        run_child("child_wild_write", &[]).expect_done(DONE);
    }
}

#[test]
#[ignore = "a child, since it loses the device"]
fn child_wild_write() {
    if !is_child() {
        return;
    }
    choose_driver().unwrap();
    let kept = ones(4);
    try_eval(&kept).unwrap();
    let start = Instant::now();
    let first = out_of_bounds_write().unwrap_err();
    assert_eq!(first.status(), Status::DeviceFault, "{first}");
    assert!(Device::get(0).unwrap().info().unwrap().faulted);
    for array in [&ones(4), &kept] {
        let error = array_to_raw_bytes(array).unwrap_err();
        assert_eq!(error.status(), Status::DeviceFault, "{error}");
        assert_eq!(error.driver_code(), first.driver_code(), "{error}");
    }
    let error = thread::spawn(|| try_eval(&ones(4)))
        .join()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.status(), Status::DeviceFault, "{error}");
    drop(kept);
    assert!(start.elapsed() < Duration::from_secs(10));
    println!("{DONE}");
}
