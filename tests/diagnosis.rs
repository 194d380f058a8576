//! The facts that `rdm doctor` is made of, on simulated GPUs: they build nothing, touch nothing and
//! choose no driver. What there is to see with real and broken libraries is in `cli/tests/doctor.rs`.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::time::Duration;

#[cfg(feature = "rocm")]
use rocm_device_map::probe_driver;
use rocm_device_map::{Config, Device, Status, configure, diagnosis, driver_info, sim, sys};

#[test]
fn attempts_are_those_of_a_driver_of_this_build() {
    for driver in diagnosis::BUILT_IN_DRIVERS {
        diagnosis::attempts(driver).expect("a driver");
    }
    assert_eq!(diagnosis::BUILT_IN_DRIVERS.last(), Some(&"sim"));
    let error = diagnosis::attempts("vulkan").expect_err("there is no such driver");
    assert_eq!(error.status(), Status::UnknownDriver);
    assert!(error.message().contains("vulkan") && error.message().contains("sim"));
    let error = diagnosis::attempts("si\0m").expect_err("no name holds a NUL");
    assert_eq!(error.status(), Status::InvalidArgument);
}

/// Whatever this machine has: what was tried is told, and a device is there or is not.
#[test]
#[cfg(feature = "rocm")]
fn a_real_driver_is_opened_for_a_look() {
    let count = probe_driver("hip");
    assert!(!diagnosis::attempts("hip").expect("a driver").is_empty());
    assert_eq!(diagnosis::attempts("sim").expect("a driver"), []);
    let found = diagnosis::probe_device("hip", 0);
    match count {
        Ok(0) => assert_eq!(found.map_err(|error| error.status()), Err(Status::NoDevice)),
        Ok(_) => assert!(!found.expect("there is one").architecture.is_empty()),
        Err(error) => assert_eq!(found, Err(error)),
    }
}

/// One test, since it is about the order of what the whole process does.
#[test]
fn a_simulated_device_is_described_and_not_built() {
    let error = diagnosis::probe_device("sim", 0).expect_err("nothing uses it yet");
    assert_eq!(error.status(), Status::Unsupported);
    // To look fixes nothing: the process can still choose.
    configure(&Config::new().driver("sim").sim_device_count(3)).expect("no driver is chosen yet");
    driver_info().expect("the simulated driver opens");

    let before = sim::calls().expect("sim is in use").len();
    let found = diagnosis::probe_device("sim", 2).expect("there are three");
    let calls = sim::calls().expect("sim is in use").split_off(before);
    let names: Vec<&str> = calls.iter().map(|call| call.entry_point).collect();
    assert_eq!(names, ["hipGetDeviceProperties"]);
    assert_eq!(calls[0].named_device, Some(2));
    for index in 0..3 {
        assert_eq!(Device::construction_count(index).expect("an index"), 0);
    }

    for index in [-1, 3, i32::MAX] {
        let error = diagnosis::probe_device("sim", index).expect_err("there are three");
        assert_eq!(error.status(), Status::InvalidDevice, "{index}");
        assert!(
            error.message().contains(&index.to_string()) && error.message().contains("3 devices")
        );
    }
    sim::inject(Some("hipGetDeviceProperties"), 1, 1, 999, Duration::ZERO).expect("sim is in use");
    let error = diagnosis::probe_device("sim", 0).expect_err("the call fails");
    assert_eq!(error.status(), Status::Driver);
    assert_eq!(
        (error.driver_code(), error.device_index()),
        (Some(999), Some(0))
    );
    assert_eq!(error.call(), Some("hipGetDeviceProperties"));

    // SAFETY: the struct has no size to say, and a null pointer is what the call is to refuse.
    let refused = unsafe { sys::rdm_probe_device(c"sim".as_ptr(), 0, null_mut()) };
    assert_eq!(refused, sys::RDM_ERROR_INVALID_ARGUMENT as i32);

    // It says what a device says of itself.
    let device = Device::get(2).expect("it can be built");
    assert_eq!(device.info().expect("a device"), found);
}

#[test]
fn device_nodes_are_those_of_the_drivers_of_this_build() {
    let nodes = diagnosis::device_nodes().expect("they can be looked at");
    for (driver, path, built_in) in [
        ("hip", "/dev/kfd", cfg!(feature = "rocm")),
        ("cuda", "/dev/nvidiactl", cfg!(feature = "cuda")),
        ("cuda", "/dev/nvidia-uvm", cfg!(feature = "cuda")),
    ] {
        let node = nodes.iter().find(|node| node.path.as_os_str() == path);
        assert_eq!(node.is_some(), built_in, "{path}");
        if let Some(node) = node {
            assert_eq!(node.driver, driver);
            assert_eq!(node.found.is_some(), node.path.exists());
        }
    }
    assert!(nodes.iter().all(|node| node.driver != "sim"));
}

unsafe extern "C" fn ignore_attempt(_: *const c_char, _: *const c_char, _: i32, _: *mut c_void) {}

#[test]
fn null_pointers_are_named() {
    let last = || {
        // SAFETY: the message is a text until this thread's next failing call.
        unsafe { CStr::from_ptr(sys::rdm_last_error_message()) }
            .to_string_lossy()
            .into_owned()
    };
    let invalid = sys::RDM_ERROR_INVALID_ARGUMENT as i32;
    let sim = c"sim".as_ptr();
    let null = std::ptr::null();
    // SAFETY: null pointers are what these calls are to refuse, and the others are good.
    unsafe {
        assert_eq!(
            sys::rdm_driver_attempts(null, Some(ignore_attempt), null_mut()),
            invalid
        );
        assert!(last().contains("driver is null"));
        assert_eq!(sys::rdm_driver_attempts(sim, None, null_mut()), invalid);
        assert!(last().contains("handler is null"));
        assert_eq!(sys::rdm_device_nodes(None, null_mut()), invalid);
        assert!(last().contains("handler is null"));
        assert_eq!(sys::rdm_probe_device(null, 0, null_mut()), invalid);
        assert!(last().contains("driver is null"));
    }
}
