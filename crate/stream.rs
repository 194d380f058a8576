//! Ordered queues of GPU work.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::encoder::Encoder;
use crate::error::{Error, Result, Status, check, empty_error};
use crate::runtime::c_text;
use crate::span::span;
use crate::{sys, timeout_ns};

/// An ordered queue of GPU work: a (device, stream index) pair.
///
/// Clones are the same stream, which ends with the last of them: its work then completes, its
/// completion handlers run, and its driver stream goes back for reuse. Any thread may use it, and
/// drop it, at any time; a drop waits for nothing and never panics.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device_index: i32,
    /// Whether the handle carries a reference of ours to give back.
    owned: bool,
    /// Filled by the first use of a stream that was made without touching its device.
    raw: OnceLock<sys::rdm_stream>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let (true, Some(raw)) = (self.owned, self.raw.get()) {
            release(*raw);
        }
    }
}

fn create(device_index: i32) -> Result<sys::rdm_stream> {
    let mut raw = sys::rdm_stream::default();
    // SAFETY: the handle is a place to write to.
    check(unsafe { sys::rdm_stream_create(device_index, &mut raw) })?;
    Ok(raw)
}

fn release(raw: sys::rdm_stream) {
    // SAFETY: the function takes any handle, and there is nothing to do about a failure.
    unsafe { sys::rdm_stream_release(raw) };
}

fn info(raw: sys::rdm_stream) -> Result<sys::rdm_stream_info> {
    let mut info = sys::rdm_stream_info {
        struct_size: size_of::<sys::rdm_stream_info>() as u32,
        ..Default::default()
    };
    // SAFETY: the struct says its size.
    check(unsafe { sys::rdm_stream_get_info(raw, &mut info) })?;
    Ok(info)
}

impl Stream {
    fn with(raw: sys::rdm_stream, device_index: i32, owned: bool) -> Self {
        Self(Arc::new(Inner {
            device_index,
            owned,
            raw: OnceLock::from(raw),
        }))
    }

    /// A stream that comes to be when it is first used.
    pub(crate) fn lazy(device_index: i32) -> Self {
        Self(Arc::new(Inner {
            device_index,
            owned: true,
            raw: OnceLock::new(),
        }))
    }

    /// Creates a stream on a device, constructing the device if this is its first use.
    ///
    /// # Errors
    ///
    /// As [`Device::get`](crate::Device::get).
    pub fn new(device_index: i32) -> Result<Self> {
        Ok(Self::with(create(device_index)?, device_index, true))
    }

    /// The stream of a device with a stream index that the caller chose, for code that numbers its
    /// streams itself. It lasts for the life of the process. Constructs the device.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidArgument`] for a negative stream index, and those of
    /// [`Device::get`](crate::Device::get).
    pub fn get(device_index: i32, stream_index: i32) -> Result<Self> {
        let mut raw = sys::rdm_stream::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_stream_get(device_index, stream_index, &mut raw) })?;
        Ok(Self::with(raw, device_index, false))
    }

    /// A stream from a raw handle, taking over one reference to it.
    ///
    /// # Errors
    ///
    /// The handle errors; then the reference is not taken over.
    pub fn from_raw(raw: sys::rdm_stream) -> Result<Self> {
        let device_index = info(raw)?.device_index;
        Ok(Self::with(raw, device_index, true))
    }

    /// A stream from a raw handle that stays the caller's: takes one more reference to it.
    ///
    /// # Errors
    ///
    /// The handle errors.
    pub fn from_borrowed_raw(raw: sys::rdm_stream) -> Result<Self> {
        let device_index = info(raw)?.device_index;
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_stream_retain(raw) })?;
        Ok(Self::with(raw, device_index, true))
    }

    /// The raw handle, lent while the stream lives. The first use of a stream from
    /// [`new_stream_on_gpu`](crate::streams::new_stream_on_gpu) creates it.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), on that first use.
    pub fn as_raw(&self) -> Result<sys::rdm_stream> {
        if let Some(raw) = self.0.raw.get() {
            return Ok(*raw);
        }
        let made = create(self.0.device_index)?;
        let mut taken = false;
        let kept = *self.0.raw.get_or_init(|| {
            taken = true;
            made
        });
        if !taken {
            release(made);
        }
        Ok(kept)
    }

    /// The raw handle with one more reference, to be given back with `rdm_stream_release`.
    ///
    /// # Errors
    ///
    /// As [`as_raw`](Self::as_raw).
    pub fn into_raw(self) -> Result<sys::rdm_stream> {
        let raw = self.as_raw()?;
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_stream_retain(raw) })?;
        Ok(raw)
    }

    /// The index of the stream's device. Touches nothing.
    pub fn device_index(&self) -> i32 {
        self.0.device_index
    }

    /// The stream's index, which no other stream of the device has.
    ///
    /// # Errors
    ///
    /// As [`as_raw`](Self::as_raw), and the handle errors.
    pub fn stream_index(&self) -> Result<i32> {
        Ok(info(self.as_raw()?)?.stream_index)
    }

    /// The encoder of the stream, made by the first call.
    ///
    /// # Errors
    ///
    /// As [`as_raw`](Self::as_raw), the handle errors and the driver's.
    pub fn encoder(&self) -> Result<Encoder> {
        let mut raw = sys::rdm_encoder::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_encoder_get(self.as_raw()?, &mut raw) })?;
        Ok(Encoder::from_raw(raw))
    }

    /// The driver's own stream (`hipStream_t`); see [`Encoder::native_stream`].
    ///
    /// # Errors
    ///
    /// As [`encoder`](Self::encoder).
    pub fn native_stream(&self) -> Result<*mut c_void> {
        self.encoder()?.native_stream()
    }

    /// Commits the stream's open batch without waiting.
    pub fn finalize(&self) -> Result<()> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_stream_finalize(self.as_raw()?) })
    }

    /// Commits the stream's open batch and waits until all that was submitted before has completed,
    /// for at most `timeout`; none: without end. Completion handlers of that work have then run.
    ///
    /// # Errors
    ///
    /// [`Status::Timeout`], [`Status::Watchdog`], [`Status::DeviceFault`], [`Status::InCallback`];
    /// and where the stream has a recorded error that nobody has taken, that error.
    pub fn synchronize(&self, timeout: Option<Duration>) -> Result<()> {
        span!("stream_synchronize", device = self.0.device_index);
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_stream_synchronize(self.as_raw()?, timeout_ns(timeout)) })
    }

    /// Records an error for the stream. The first one is kept until it is taken. Makes no driver
    /// call.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidArgument`] where `status` is no error.
    pub fn record_error(&self, status: Status, message: &str) -> Result<()> {
        let message = c_text("the message", message)?;
        // SAFETY: the text lives until the call returns.
        check(unsafe {
            sys::rdm_stream_record_error(self.as_raw()?, status.code(), message.as_ptr())
        })
    }

    /// Takes the stream's recorded error, leaving none.
    pub fn take_error(&self) -> Result<Option<Error>> {
        let mut raw = empty_error();
        // SAFETY: the struct says its size.
        check(unsafe { sys::rdm_stream_take_error(self.as_raw()?, &mut raw) })?;
        Ok(recorded(&raw))
    }

    /// Makes a stream the calling thread's default until it is changed or the thread ends; none
    /// leaves the thread without one. The stream may be dropped after that: the default stays usable.
    pub fn set_default(stream: Option<&Stream>) -> Result<()> {
        let raw = stream.map_or(Ok(sys::rdm_stream::default()), Stream::as_raw)?;
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_default_stream_set(raw) })
    }

    /// The calling thread's default stream.
    pub fn current_default() -> Result<Option<Self>> {
        let mut raw = sys::rdm_stream::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_default_stream_get(&mut raw) })?;
        if raw.bits == 0 {
            return Ok(None);
        }
        Self::from_borrowed_raw(raw).map(Some)
    }
}

fn recorded(raw: &sys::rdm_error) -> Option<Error> {
    (raw.status != sys::RDM_OK as i32).then(|| Error::from_raw(raw))
}

/// Takes the first error that belongs to no live stream: one recorded for a stream that had ended, or
/// by a drop whose driver call failed.
pub fn take_unattributed_error() -> Result<Option<Error>> {
    let mut raw = empty_error();
    // SAFETY: the struct says its size.
    check(unsafe { sys::rdm_take_unattributed_error(&mut raw) })?;
    Ok(recorded(&raw))
}

/// Destroys every encoder of every device. The streams stay: their next use makes a fresh encoder,
/// and an [`Encoder`] taken before is stale. Work already submitted completes and its completion
/// handlers run. Waits for nothing.
pub fn clear_encoders() -> Result<()> {
    // SAFETY: the function takes nothing.
    check(unsafe { sys::rdm_clear_encoders() })
}

impl PartialEq for Stream {
    /// Whether both are the same stream.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.raw.get().is_some() && self.0.raw.get() == other.0.raw.get()
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("device_index", &self.0.device_index)
            .field("raw", &self.0.raw.get())
            .finish()
    }
}
