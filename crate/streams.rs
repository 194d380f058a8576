//! Streams for threads: each worker thread evaluates on a stream of its own.
//!
//! A [`ThreadLocalStream`] is made anywhere and resolved on the thread that uses it: each thread gets
//! its own stream. [`install_thread_local_default_stream`] makes it the thread's default, which is
//! what work without an explicit stream goes to; a [`DefaultStreamGuard`] restores the one before.
//! When a thread ends, its streams are drained and go back for reuse.
//!
//! The names and meanings are those of `mlxcel-core`'s module of the same name. They differ where
//! first use of a device can fail: such functions return a [`Result`].
//!
//! ```
//! use rocm_device_map::streams::{self, DefaultStreamGuard};
//! # rocm_device_map::choose_driver()?;
//!
//! let stream = streams::new_thread_local_generation_stream();
//! let guard = DefaultStreamGuard::capture();
//! streams::install_thread_local_default_stream(stream.as_ref())?;
//! // Work of this thread now goes to its own stream.
//! streams::synchronize_thread_local_stream(stream.as_ref())?;
//! drop(guard);
//! # Ok::<(), rocm_device_map::Error>(())
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::device::Device;
use crate::error::{Result, check};
use crate::stream::Stream;
use crate::{sys, timeout_ns};

/// A stream that each thread resolves to one of its own.
///
/// Making one touches no device. It may be dropped after it was installed: the threads' default
/// streams stay usable until they are changed.
#[derive(Debug)]
pub struct ThreadLocalStream {
    device_index: i32,
    is_shared: bool,
    /// Filled by the first use.
    raw: OnceLock<sys::rdm_thread_local_stream>,
}

impl ThreadLocalStream {
    fn on(device_index: i32, is_shared: bool) -> Self {
        Self {
            device_index,
            is_shared,
            raw: OnceLock::new(),
        }
    }

    /// The index of the device that its streams are on.
    pub fn device_index(&self) -> i32 {
        self.device_index
    }

    /// The raw handle, lent while this lives.
    ///
    /// # Errors
    ///
    /// [`Status::Resource`](crate::Status::Resource) or
    /// [`Status::OutOfMemory`](crate::Status::OutOfMemory) on the first use.
    pub fn as_raw(&self) -> Result<sys::rdm_thread_local_stream> {
        if let Some(raw) = self.raw.get() {
            return Ok(*raw);
        }
        let mut made = sys::rdm_thread_local_stream::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe {
            if self.is_shared {
                sys::rdm_thread_local_stream_get_shared(self.device_index, &mut made)
            } else {
                sys::rdm_thread_local_stream_create(self.device_index, &mut made)
            }
        })?;
        let mut taken = false;
        let kept = *self.raw.get_or_init(|| {
            taken = true;
            made
        });
        if !taken && !self.is_shared {
            release(made);
        }
        Ok(kept)
    }

    /// The calling thread's own stream, borrowed: it lasts until the thread ends or this is dropped.
    fn resolve(&self) -> Result<sys::rdm_stream> {
        let mut stream = sys::rdm_stream::default();
        // SAFETY: the handle is a place to write to.
        check(unsafe { sys::rdm_thread_local_stream_resolve(self.as_raw()?, &mut stream) })?;
        Ok(stream)
    }
}

impl Drop for ThreadLocalStream {
    fn drop(&mut self) {
        if let (false, Some(raw)) = (self.is_shared, self.raw.get()) {
            release(*raw);
        }
    }
}

fn release(raw: sys::rdm_thread_local_stream) {
    // SAFETY: the function takes any handle, and there is nothing to do about a failure.
    unsafe { sys::rdm_thread_local_stream_release(raw) };
}

/// A GPU index that is outside `0..gpu_device_count()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidGpuIndex {
    /// The index that was asked for.
    pub requested: i32,
    /// How many GPUs there are.
    pub device_count: i32,
}

impl fmt::Display for InvalidGpuIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requested,
            device_count,
        } = self;
        match device_count {
            ..=0 => write!(
                formatter,
                "there is no GPU {requested}: this process has 0 GPUs"
            ),
            1 => write!(
                formatter,
                "there is no GPU {requested}: this process has 1 GPU, with index 0"
            ),
            _ => write!(
                formatter,
                "there is no GPU {requested}: this process has {device_count} GPUs, with indices 0 to {}",
                device_count - 1
            ),
        }
    }
}

impl std::error::Error for InvalidGpuIndex {}

fn check_gpu_index(index: i32) -> Result<(), InvalidGpuIndex> {
    let device_count = gpu_device_count();
    if (0..device_count).contains(&index) {
        Ok(())
    } else {
        Err(InvalidGpuIndex {
            requested: index,
            device_count,
        })
    }
}

/// How many GPUs the process has: 0 where it has none, and where no driver can be loaded.
/// [`Device::count`] says why. Touches no device.
pub fn gpu_device_count() -> i32 {
    Device::count().unwrap_or(0)
}

/// A new thread-local stream on GPU 0, `None` where there is no GPU. Touches no device.
pub fn new_thread_local_generation_stream() -> Option<ThreadLocalStream> {
    new_thread_local_stream_on_gpu(0).ok()
}

/// The one thread-local stream of the process on GPU 0, `None` where there is no GPU: everyone who
/// resolves it on one thread gets the same stream. Touches no device.
pub fn shared_thread_local_generation_stream() -> Option<ThreadLocalStream> {
    check_gpu_index(0).ok()?;
    Some(ThreadLocalStream::on(0, true))
}

/// A new thread-local stream on the GPU with this index. Touches no device.
pub fn new_thread_local_stream_on_gpu(index: i32) -> Result<ThreadLocalStream, InvalidGpuIndex> {
    check_gpu_index(index)?;
    Ok(ThreadLocalStream::on(index, false))
}

/// A new stream on the GPU with this index, for any thread. Touches no device: the stream comes to be
/// with its first use, which is also where a failure of the device shows.
pub fn new_stream_on_gpu(index: i32) -> Result<Stream, InvalidGpuIndex> {
    check_gpu_index(index)?;
    Ok(Stream::lazy(index))
}

/// The calling thread's own stream of a thread-local stream, created by the thread's first call.
///
/// # Errors
///
/// As [`Stream::new`].
pub fn stream_from_thread_local_stream(stream: &ThreadLocalStream) -> Result<Stream> {
    Stream::from_borrowed_raw(stream.resolve()?)
}

/// Makes the calling thread's own stream of a thread-local stream its default; `None` changes
/// nothing.
///
/// # Errors
///
/// As [`Stream::new`]; then the default is as before.
pub fn install_thread_local_default_stream(stream: Option<&ThreadLocalStream>) -> Result<()> {
    let Some(stream) = stream else {
        return Ok(());
    };
    // SAFETY: the function takes any handle.
    check(unsafe { sys::rdm_default_stream_set(stream.resolve()?) })
}

/// Waits for the calling thread's own stream of a thread-local stream; `None` waits for nothing.
///
/// # Errors
///
/// As [`Stream::synchronize`].
pub fn synchronize_thread_local_stream(stream: Option<&ThreadLocalStream>) -> Result<()> {
    let Some(stream) = stream else {
        return Ok(());
    };
    // SAFETY: the function takes any handle.
    check(unsafe { sys::rdm_stream_synchronize(stream.resolve()?, timeout_ns(None)) })
}

/// Restores the calling thread's default stream when dropped, be it a stream or none.
///
/// It stays on its thread:
///
/// ```compile_fail,E0277
/// fn must_be_send<T: Send>() {}
/// must_be_send::<rocm_device_map::streams::DefaultStreamGuard>();
/// ```
#[derive(Debug)]
#[must_use = "the default stream is restored when the guard is dropped"]
pub struct DefaultStreamGuard {
    previous: Option<Stream>,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl DefaultStreamGuard {
    /// Remembers the calling thread's default stream.
    pub fn capture() -> Self {
        Self {
            // Fails only where nothing can be set either: at exit and in a forked child.
            previous: Stream::current_default().unwrap_or(None),
            stays_on_its_thread: PhantomData,
        }
    }
}

impl Drop for DefaultStreamGuard {
    fn drop(&mut self) {
        let _ = Stream::set_default(self.previous.as_ref());
    }
}
