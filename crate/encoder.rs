//! What a stream submits work through.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::callback::call_from_c;
use crate::error::{Error, Result, Status, check};
use crate::event::Event;
use crate::module::Kernel;
use crate::sys;

/// What a stream submits through, from [`Stream::encoder`](crate::Stream::encoder).
///
/// An encoder is a checked handle. Any thread may submit to it; what several threads submit is
/// ordered by its own lock. It is stale, and says so, once its stream has ended or
/// [`clear_encoders`](crate::clear_encoders) was called; the stream then gives a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoder {
    raw: sys::rdm_encoder,
}

/// The sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks in the grid, each at least 1.
    pub grid: [u32; 3],
    /// Threads in a block, each at least 1.
    pub block: [u32; 3],
    /// Shared memory that the launch adds to what the kernel declares.
    pub shared_memory_bytes: u32,
}

impl LaunchConfig {
    /// A one-dimensional launch.
    pub fn linear(blocks: u32, threads_in_block: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            block: [threads_in_block, 1, 1],
            shared_memory_bytes: 0,
        }
    }
}

/// A type whose values can be handed to a kernel as they are.
///
/// # Safety
///
/// The type has the same size, alignment and meaning on the device as here.
pub unsafe trait KernelParameter: Copy {}

macro_rules! kernel_parameters {
    ($($name:ty),*) => {
        $(
            // SAFETY: a number that host and device hold in the same way.
            unsafe impl KernelParameter for $name {}
        )*
    };
}
kernel_parameters!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64);
// SAFETY: an address, of the same size on both.
unsafe impl<T> KernelParameter for *mut T {}
// SAFETY: as above.
unsafe impl<T> KernelParameter for *const T {}

/// One argument of a launch: a reference to a value, which the launch copies, and its size, which the
/// launch checks where the driver can tell the kernel's.
#[derive(Clone, Copy, Debug)]
pub struct KernelArgument<'a> {
    pointer: *mut c_void,
    size_bytes: u32,
    value: PhantomData<&'a ()>,
}

impl<'a> KernelArgument<'a> {
    /// The argument that has this value.
    pub fn new<T: KernelParameter>(value: &'a T) -> Self {
        Self {
            pointer: std::ptr::from_ref(value).cast_mut().cast(),
            // A larger one is in no kernel, and would be refused by its size.
            size_bytes: u32::try_from(size_of::<T>()).unwrap_or(u32::MAX),
            value: PhantomData,
        }
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyKind {
    /// From the host to a device.
    HostToDevice,
    /// From a device to the host.
    DeviceToHost,
    /// Within a device.
    DeviceToDevice,
}

impl CopyKind {
    fn to_raw(self) -> sys::rdm_copy_kind {
        (match self {
            Self::HostToDevice => sys::RDM_COPY_HOST_TO_DEVICE,
            Self::DeviceToHost => sys::RDM_COPY_DEVICE_TO_HOST,
            Self::DeviceToDevice => sys::RDM_COPY_DEVICE_TO_DEVICE,
        }) as sys::rdm_copy_kind
    }
}

type CompletionHandler = Box<dyn FnOnce(Result<()>) + Send>;

extern "C" fn call_completion_handler(status: sys::rdm_status, user_data: *mut c_void) {
    // SAFETY: `user_data` is the handler that `add_completion_handler` boxed, and the library calls
    // this once for it.
    let handler = unsafe { Box::from_raw(user_data.cast::<CompletionHandler>()) };
    let result = if status == sys::RDM_OK as i32 {
        Ok(())
    } else {
        let status = Status::from(status);
        Err(Error::new(status, status.description()))
    };
    call_from_c(move || handler(result));
}

impl Encoder {
    /// An encoder from its raw handle. Any value is safe: a wrong one gets an error when it is used.
    pub fn from_raw(raw: sys::rdm_encoder) -> Self {
        Self { raw }
    }

    /// The raw handle, lent.
    pub fn as_raw(&self) -> sys::rdm_encoder {
        self.raw
    }

    /// Launches a kernel. The arguments are copied before the call returns.
    ///
    /// # Errors
    ///
    /// [`Status::Launch`] names the kernel and the sizes, and the device stays usable;
    /// [`Status::WrongDevice`] for a kernel of another device; [`Status::InvalidArgument`] for a
    /// number of arguments, or a size of one, that the kernel does not have, where the driver can
    /// tell; [`Status::DeviceFault`].
    ///
    /// # Safety
    ///
    /// The arguments have the number and the types of the kernel's parameters, and with these
    /// arguments and sizes the kernel reads and writes only memory that is there until it is done
    /// and that nothing else uses meanwhile.
    pub unsafe fn launch(
        &self,
        kernel: Kernel,
        config: &LaunchConfig,
        arguments: &[KernelArgument<'_>],
    ) -> Result<()> {
        // Most kernels have few arguments, and a launch then allocates nothing.
        const FEW: usize = 16;
        let mut few_pointers = [std::ptr::null_mut(); FEW];
        let mut few_sizes = [0; FEW];
        let (mut many_pointers, mut many_sizes) = (Vec::new(), Vec::new());
        let (pointers, sizes) = if arguments.len() <= FEW {
            (&mut few_pointers[..], &mut few_sizes[..])
        } else {
            many_pointers.resize(arguments.len(), std::ptr::null_mut());
            many_sizes.resize(arguments.len(), 0);
            (&mut many_pointers[..], &mut many_sizes[..])
        };
        for (index, argument) in arguments.iter().enumerate() {
            pointers[index] = argument.pointer;
            sizes[index] = argument.size_bytes;
        }
        let raw_config = sys::rdm_launch_config {
            struct_size: size_of::<sys::rdm_launch_config>() as u32,
            grid: config.grid,
            block: config.block,
            shared_memory_bytes: config.shared_memory_bytes,
            argument_sizes_bytes: sizes.as_ptr(),
        };
        // SAFETY: both lists have an entry for each argument, and each pointer is to a value that
        // lives until the call returns. The caller promises the rest.
        check(unsafe {
            sys::rdm_encoder_launch(
                self.raw,
                kernel.as_raw(),
                &raw_config,
                pointers.as_ptr(),
                arguments.len() as u32,
            )
        })
    }

    /// Copies memory in stream order.
    ///
    /// # Errors
    ///
    /// The handle errors, [`Status::DeviceFault`], the driver's.
    ///
    /// # Safety
    ///
    /// Both ends are memory of `size_bytes` bytes of the kind that `kind` says, there until the copy
    /// has run, and nothing else uses them meanwhile: host memory is read or written when the copy
    /// runs and not when it is submitted.
    pub unsafe fn copy(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size_bytes: usize,
        kind: CopyKind,
    ) -> Result<()> {
        // SAFETY: the caller promises it.
        check(unsafe {
            sys::rdm_encoder_copy(self.raw, destination, source, size_bytes, kind.to_raw())
        })
    }

    /// Fills device memory with a byte in stream order.
    ///
    /// # Errors
    ///
    /// As [`copy`](Self::copy).
    ///
    /// # Safety
    ///
    /// `destination` is device memory of `size_bytes` bytes, there until the fill has run, and
    /// nothing else uses it meanwhile.
    pub unsafe fn fill(
        &self,
        destination: *mut c_void,
        value: u8,
        size_bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller promises it.
        check(unsafe { sys::rdm_encoder_fill(self.raw, destination, value, size_bytes) })
    }

    /// Adds a handler to the open batch.
    ///
    /// It runs exactly once, on a thread of the library, in the order of adding for one encoder,
    /// after all that was submitted before the batch's commit has completed or failed; but not at
    /// all once the process is exiting. It may call everything here but what waits. A panic in it
    /// ends at its boundary.
    ///
    /// # Errors
    ///
    /// The handle errors; then the handler is dropped without being called.
    pub fn add_completion_handler(
        &self,
        handler: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let handler: CompletionHandler = Box::new(handler);
        let user_data: *mut CompletionHandler = Box::into_raw(Box::new(handler));
        // SAFETY: the box is given up to the call that the library makes once.
        let result = check(unsafe {
            sys::rdm_encoder_add_completion_handler(
                self.raw,
                Some(call_completion_handler),
                user_data.cast(),
            )
        });
        if result.is_err() {
            // SAFETY: a call that failed has kept nothing, so the box is ours again.
            drop(unsafe { Box::from_raw(user_data) });
        }
        result
    }

    /// Ends the open batch: its handlers run once the device gets there.
    pub fn commit(&self) -> Result<()> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_encoder_commit(self.raw) })
    }

    /// Records an event at this point of the stream.
    ///
    /// # Errors
    ///
    /// [`Status::WrongDevice`] for an event of another device, the handle errors, the driver's.
    pub fn record_event(&self, event: &Event) -> Result<()> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_encoder_record_event(self.raw, event.as_raw()) })
    }

    /// Makes what is submitted from here on wait for the event's latest record, which may be on
    /// another device. Does not block.
    ///
    /// # Errors
    ///
    /// [`Status::NotRecorded`]; [`Status::DeviceFault`] where the event's device faulted.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: the function takes any handle.
        check(unsafe { sys::rdm_encoder_wait_event(self.raw, event.as_raw()) })
    }

    /// The driver's own stream (`hipStream_t`), lent for use with other code on the encoder's device;
    /// not to be destroyed. Once the encoder is gone another stream may be using it.
    pub fn native_stream(&self) -> Result<*mut c_void> {
        let mut native = std::ptr::null_mut();
        // SAFETY: the pointer is a place to write to.
        check(unsafe { sys::rdm_encoder_get_native_stream(self.raw, &mut native) })?;
        Ok(native)
    }
}
