//! One GPU's state.

use std::time::Duration;

use crate::error::{Result, check, field_text};
use crate::span::span;
use crate::sys;
use crate::timeout_ns;

/// One GPU, built on first use and kept for the life of the process.
///
/// A device is a checked handle: copies are the same device, and any thread may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    raw: sys::rdm_device,
}

/// What a device is, as read when it was built.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The index that the driver gives the device in this process.
    pub index: i32,
    /// The name, as the driver gives it.
    pub name: String,
    /// The compiler's name for the architecture, with its feature suffixes, such as
    /// `gfx90a:sramecc+:xnack-`.
    pub architecture: String,
    /// How much memory it has in all.
    pub total_memory_bytes: u64,
    /// How many multiprocessors (compute units).
    pub multiprocessor_count: i32,
    /// How many threads run in step.
    pub warp_size: i32,
    /// The greatest number of threads in a block.
    pub max_threads_per_block: i32,
    /// Whether the device has faulted; then every call on it fails.
    pub faulted: bool,
}

impl Device {
    /// How many devices the driver has, read once for each process. Touches none.
    ///
    /// # Errors
    ///
    /// Those of [`driver_info`](crate::driver_info). No device at all is `Ok(0)`.
    pub fn count() -> Result<i32> {
        let mut count = 0;
        // SAFETY: the count is a place to write to.
        check(unsafe { sys::rdm_device_count(&mut count) })?;
        Ok(count)
    }

    /// The device with this index, built if this is its first use: no other device is touched.
    /// Threads that ask for one index at once get one device.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidDevice`](crate::Status::InvalidDevice) names the index and the count;
    /// [`Status::NoDevice`](crate::Status::NoDevice); those of
    /// [`driver_info`](crate::driver_info) and the driver's own. A failed construction leaves
    /// nothing, and the next call tries again.
    pub fn get(index: i32) -> Result<Self> {
        let mut raw = sys::rdm_device::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_device_get(index, &mut raw) })?;
        Ok(Self { raw })
    }

    /// The same, with another thread's construction of that device waited for at most `timeout`;
    /// none: without end. What no other thread is constructing the call constructs itself, which
    /// takes as long as it takes.
    ///
    /// # Errors
    ///
    /// As [`Device::get`], and [`Status::Timeout`](crate::Status::Timeout) or
    /// [`Status::Watchdog`](crate::Status::Watchdog), with the construction going on.
    pub fn get_within(index: i32, timeout: Option<Duration>) -> Result<Self> {
        let mut raw = sys::rdm_device::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_device_get_within(index, timeout_ns(timeout), &mut raw) })?;
        Ok(Self { raw })
    }

    /// How many times the device with this index was constructed: 0 or 1. Builds nothing.
    pub fn construction_count(index: i32) -> Result<u64> {
        let mut count = 0;
        // SAFETY: the count is a place to write to.
        check(unsafe { sys::rdm_device_construction_count(index, &mut count) })?;
        Ok(count)
    }

    /// A device from its raw handle. Any value is safe: a wrong one gets an error when it is used.
    pub fn from_raw(raw: sys::rdm_device) -> Self {
        Self { raw }
    }

    /// The raw handle, lent; it is valid for the life of the process.
    pub fn as_raw(&self) -> sys::rdm_device {
        self.raw
    }

    /// Describes the device. Makes no driver call.
    pub fn info(&self) -> Result<DeviceInfo> {
        let mut raw = sys::rdm_device_info {
            struct_size: size_of::<sys::rdm_device_info>() as u32,
            ..Default::default()
        };
        // SAFETY: the struct says its size.
        check(unsafe { sys::rdm_device_get_info(self.raw, &mut raw) })?;
        Ok(DeviceInfo {
            index: raw.device_index,
            name: field_text(&raw.name),
            architecture: field_text(&raw.architecture),
            total_memory_bytes: raw.total_memory_bytes,
            multiprocessor_count: raw.multiprocessor_count,
            warp_size: raw.warp_size,
            max_threads_per_block: raw.max_threads_per_block,
            faulted: raw.faulted != 0,
        })
    }

    /// Makes the device the calling thread's current one, for code that is about to call the driver
    /// itself. The functions of this crate do what they need.
    pub fn make_current(&self) -> Result<()> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_device_make_current(self.raw) })
    }

    /// Commits and waits for every stream of the device that has work, for at most `timeout` in all;
    /// none: without end.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn synchronize(&self, timeout: Option<Duration>) -> Result<()> {
        span!("device_synchronize");
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_device_synchronize(self.raw, timeout_ns(timeout)) })
    }
}
