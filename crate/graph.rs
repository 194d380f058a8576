//! Work that is captured once and launched again and again.

use std::mem::ManuallyDrop;

use crate::encoder::Encoder;
use crate::error::{Result, check};
use crate::sys;

/// What was submitted to a stream during [`Encoder::capture`]; dropping it ends its handle.
///
/// A launch of it costs one driver call, however much is in it. Any thread may use it, also several
/// at once.
#[derive(Debug)]
pub struct Graph {
    raw: sys::rdm_graph,
}

impl Graph {
    /// A graph from its raw handle, which it now owns. Any value is safe: a wrong one gets an error
    /// when it is used.
    pub fn from_raw(raw: sys::rdm_graph) -> Self {
        Self { raw }
    }

    /// The raw handle, lent until the graph is dropped.
    pub fn as_raw(&self) -> sys::rdm_graph {
        self.raw
    }

    /// The raw handle, to be given back with `rdm_graph_release`.
    pub fn into_raw(self) -> sys::rdm_graph {
        ManuallyDrop::new(self).raw
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the function takes any handle.
        unsafe { sys::rdm_graph_release(self.raw) };
    }
}

/// Ends the capture where what is captured failed or panicked.
struct Capture(Option<Encoder>);

impl Capture {
    fn end(mut self) -> Result<Graph> {
        let encoder = self.0.take();
        encoder.map_or_else(
            || unreachable!("a capture is ended once"),
            |encoder| end(&encoder),
        )
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(encoder) = self.0.take() {
            drop(end(&encoder));
        }
    }
}

fn end(encoder: &Encoder) -> Result<Graph> {
    let mut raw = sys::rdm_graph::default();
    // SAFETY: the handle is a place to write to.
    check(unsafe { sys::rdm_encoder_end_capture(encoder.as_raw(), &mut raw) })?;
    Ok(Graph { raw })
}

impl Encoder {
    /// Collects what `submit`, and any other thread meanwhile, submits to this encoder's stream,
    /// in place of running it.
    ///
    /// Waits for the stream, and for events recorded in it, fail meanwhile with
    /// [`Status::Capturing`](crate::Status::Capturing). Arguments of launches keep their values;
    /// memory that they point to is read and written at each launch of the graph.
    ///
    /// ```
    /// use rocm_device_map::{Device, DeviceMemory, Stream};
    ///
    /// println!("{}", rocm_device_map::choose_driver()?);
    /// let stream = Stream::new(0)?;
    /// let memory = DeviceMemory::new(Device::get(0)?, 1024)?;
    /// let encoder = stream.encoder()?;
    /// // SAFETY: the memory outlives the graph, and nothing else uses it.
    /// let graph = encoder.capture(|| unsafe { encoder.fill(memory.as_ptr(), 7, 1024) })?;
    /// for _ in 0..100 {
    ///     // SAFETY: as above.
    ///     unsafe { encoder.launch_graph(&graph) }?;
    /// }
    /// stream.synchronize(None)?;
    /// # Ok::<(), rocm_device_map::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What `submit` returns; [`Status::Capturing`](crate::Status::Capturing) where the stream is
    /// being captured already, or something was asked of it that the driver does not capture;
    /// [`Status::Unsupported`](crate::Status::Unsupported) where the driver has no captures; the
    /// handle errors. The capture is over then, or ends with the stream where the driver fails to end it.
    pub fn capture(&self, submit: impl FnOnce() -> Result<()>) -> Result<Graph> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_encoder_begin_capture(self.as_raw()) })?;
        let capture = Capture(Some(*self));
        submit()?;
        capture.end()
    }

    /// Launches a graph that was captured on this encoder's stream, in stream order.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidArgument`](crate::Status::InvalidArgument) for a graph of another stream, the
    /// handle errors, [`Status::DeviceFault`](crate::Status::DeviceFault), the driver's.
    ///
    /// # Safety
    ///
    /// What each captured submission promised holds for this launch too: the memory that it reads and
    /// writes is there until the launch is done, and nothing else uses it meanwhile.
    pub unsafe fn launch_graph(&self, graph: &Graph) -> Result<()> {
        // SAFETY: the caller promises it.
        check(unsafe { sys::rdm_encoder_launch_graph(self.as_raw(), graph.raw) })
    }
}
