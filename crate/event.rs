//! Points in a stream that a host thread or another stream can wait for.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::time::Duration;

use crate::device::Device;
use crate::error::{Result, check};
use crate::span::span;
use crate::{sys, timeout_ns};

/// An event of one device, from the process's pool; dropping it gives it back.
///
/// Any thread may use it, also several at once. A new event is not recorded, whatever it was used
/// for before.
#[derive(Debug)]
pub struct Event {
    raw: sys::rdm_event,
}

impl Event {
    /// An event without timing, which costs less to record.
    ///
    /// # Errors
    ///
    /// The handle errors and the driver's.
    pub fn new(device: Device) -> Result<Self> {
        Self::create(device, sys::RDM_EVENT_DEFAULT)
    }

    /// An event that can be timed with [`elapsed_since`](Self::elapsed_since).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_timing(device: Device) -> Result<Self> {
        Self::create(device, sys::RDM_EVENT_TIMING)
    }

    fn create(device: Device, flags: u32) -> Result<Self> {
        let mut raw = sys::rdm_event::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_event_create(device.as_raw(), flags, &mut raw) })?;
        Ok(Self { raw })
    }

    /// An event from its raw handle, which it now owns. Any value is safe: a wrong one gets an error
    /// when it is used.
    pub fn from_raw(raw: sys::rdm_event) -> Self {
        Self { raw }
    }

    /// The raw handle, lent until the event is dropped.
    pub fn as_raw(&self) -> sys::rdm_event {
        self.raw
    }

    /// The raw handle, to be given back with `rdm_event_release`.
    pub fn into_raw(self) -> sys::rdm_event {
        ManuallyDrop::new(self).raw
    }

    /// Whether all before the event's latest record has completed.
    ///
    /// # Errors
    ///
    /// [`Status::NotRecorded`](crate::Status::NotRecorded) for an event that was never recorded, or
    /// whose last record failed; [`Status::DeviceFault`](crate::Status::DeviceFault).
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the function takes any handle.
        let status = unsafe { sys::rdm_event_query(self.raw) };
        if status == sys::RDM_NOT_READY as i32 {
            return Ok(false);
        }
        check(status).map(|()| true)
    }

    /// Waits until the event's latest record has completed, at most `timeout`; none: without end.
    ///
    /// # Errors
    ///
    /// [`Status::NotRecorded`](crate::Status::NotRecorded) for an event that was never recorded, and
    /// those of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        span!("event_wait");
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_event_wait(self.raw, timeout_ns(timeout)) })
    }

    /// The time from `start` to this event on the device. Both are completed and were made with
    /// [`with_timing`](Self::with_timing) on one device.
    pub fn elapsed_since(&self, start: &Event) -> Result<Duration> {
        let mut milliseconds = 0.0f32;
        // SAFETY: the time is a place to write to.
        check(unsafe { sys::rdm_event_elapsed(start.raw, self.raw, &mut milliseconds) })?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    /// The driver's own event (`hipEvent_t`), lent until this event is dropped; not to be destroyed.
    pub fn native_event(&self) -> Result<*mut c_void> {
        let mut native = std::ptr::null_mut();
        // SAFETY: the pointer is a place to write to.
        check(unsafe { sys::rdm_event_get_native(self.raw, &mut native) })?;
        Ok(native)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the function takes any handle. A failure is kept by the library, for
        // `take_unattributed_error`.
        unsafe { sys::rdm_event_release(self.raw) };
    }
}
