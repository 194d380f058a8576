//! The process-wide GPU state of a ROCm/HIP inference server, safe from every thread: devices built
//! on first use, command encoders, events and run-time compiled modules.
//!
//! The state itself is a C library behind a C ABI (`csrc/include/rocm_device_map.h`); this crate
//! compiles it in. There is one such state for each process, so nothing here has to be set up or
//! passed around.
//!
//! - [`streams`]: streams for worker threads, in the vocabulary of `mlxcel-core`.
//! - [`Device`], [`Stream`], [`Encoder`], [`Event`], [`Graph`], [`Module`], [`Kernel`]: the objects themselves.
//!   Each lends its raw handle, for use with [`sys`] or from C.
//! - [`probe`]: the smallest lazily evaluated array, to see that a GPU computes what it should.
//! - [`cache`]: the cache of compiled kernels on disk.
//! - [`counters()`], [`set_log_handler`]: what the process has done and is doing.
//! - [`diagnosis`]: what is there and what was tried, for a program that says what is wrong.
//! - [`sim`]: the controls of the simulated driver, for tests.
//!
//! # Drivers
//!
//! `hip` (feature `rocm`, the default) and `cuda` (feature `cuda`) are found at run time; building
//! needs neither. `sim` simulates GPUs in the process and is never used unless it is asked for: with
//! `RDM_DRIVER=sim`, [`configure`] or [`choose_driver`].
//!
//! # Threads
//!
//! Every type may be used from any thread, also several at once, but for
//! [`DefaultStreamGuard`](streams::DefaultStreamGuard), which stays on its own. A drop never waits
//! and never panics.
//!
//! # Example
//!
//! ```
//! use rocm_device_map::probe::{add, arange_f32, array_to_raw_bytes, full_like, multiply_scalar};
//! use rocm_device_map::streams;
//!
//! println!("{}", rocm_device_map::choose_driver()?);
//! let stream = streams::new_thread_local_generation_stream();
//! streams::install_thread_local_default_stream(stream.as_ref())?;
//!
//! let x = arange_f32(0.0, 4.0, 1.0);
//! let y = add(&multiply_scalar(&x, 2.0), &full_like(&x, 1.0));
//! let bytes = array_to_raw_bytes(&y)?;
//! let values: Vec<f32> = bytes
//!     .chunks_exact(4)
//!     .map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()))
//!     .collect();
//! assert_eq!(values, [1.0, 3.0, 5.0, 7.0]);
//! # Ok::<(), rocm_device_map::Error>(())
//! ```

/// The README's example, run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod cache;
mod callback;
mod counters;
mod device;
pub mod diagnosis;
mod driver_choice;
mod encoder;
mod error;
mod event;
mod graph;
pub mod hardware;
mod log;
mod memory;
mod module;
pub mod probe;
mod runtime;
pub mod sim;
mod span;
mod stream;
pub mod streams;
pub mod sys;

use std::time::Duration;

pub use counters::{CounterEntry, CounterKind, Counters, counters};
pub use device::{Device, DeviceInfo};
pub use driver_choice::{DriverChoice, choose_driver};
pub use encoder::{CopyKind, Encoder, KernelArgument, KernelParameter, LaunchConfig};
pub use error::{Error, Result, Status};
pub use event::Event;
pub use graph::Graph;
#[cfg(feature = "tracing")]
pub use log::forward_log_to_tracing;
pub use log::{LogLevel, default_log_level, reset_log_handler, set_log_handler};
pub use memory::{DeviceMemory, HostMemory};
pub use module::{Kernel, Module, ModuleSource};
pub use runtime::{Config, DriverInfo, configure, driver_info, probe_driver, version};
pub use stream::{Stream, clear_encoders, take_unattributed_error};

/// A timeout for the C ABI: none is a deadline that never comes.
fn timeout_ns(timeout: Option<Duration>) -> u64 {
    // One less than for ever, since a very long timeout is still one.
    timeout.map_or(u64::MAX, |timeout| {
        u64::try_from(timeout.as_nanos()).map_or(u64::MAX - 1, |ns| ns.min(u64::MAX - 1))
    })
}
