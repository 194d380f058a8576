//! What a GPU should refuse, what faults it, and many compiles at once.

use super::evaluate::{kernel, read_back, settle};
use super::storage::{Buffer, Place, StreamMemory, with_encoder};
use crate::device::Device;
use crate::encoder::{KernelArgument, LaunchConfig};
use crate::error::{Error, Result, Status};
use crate::module::{Module, ModuleSource};

/// Launches a block of 2048 threads on the calling thread's default stream, which no GPU takes.
///
/// # Errors
///
/// [`Status::Launch`], or the driver's own word for it, naming the kernel and the sizes. The device
/// stays usable. `Ok` would mean that the driver took the launch.
pub fn oversized_block() -> Result<()> {
    let memory = StreamMemory::of_default_stream()?;
    let stream = &memory.stream;
    let device = Device::get(stream.device_index())?;
    let kernel = kernel(device, c"probe_full")?;
    let buffer = Buffer::new(&memory, device, size_of::<f32>(), Place::Device)?;
    let (pointer, value, count) = (buffer.as_ptr(), 0.0f32, 0u32);
    let arguments = [
        KernelArgument::new(&pointer),
        KernelArgument::new(&value),
        KernelArgument::new(&count),
    ];
    let launched = with_encoder(stream, |encoder| {
        // SAFETY: the arguments are the kernel's, and a count of 0 writes nothing.
        unsafe { encoder.launch(kernel, &LaunchConfig::linear(1, 2048), &arguments) }
    });
    settle(stream, launched.and_then(|()| stream.synchronize(None)))
}

/// Runs a kernel that writes 2^40 bytes past its buffer, on the calling thread's default stream, and
/// waits for it.
///
/// This faults the GPU: the device is lost for the rest of the process, for everyone.
///
/// # Errors
///
/// [`Status::DeviceFault`]. `Ok` would mean that the write went somewhere and nobody noticed.
pub fn out_of_bounds_write() -> Result<()> {
    let memory = StreamMemory::of_default_stream()?;
    let stream = &memory.stream;
    let device = Device::get(stream.device_index())?;
    let kernel = kernel(device, c"probe_write_at")?;
    let buffer = Buffer::new(&memory, device, size_of::<f32>(), Place::Device)?;
    let (pointer, offset_bytes) = (buffer.as_ptr(), 1u64 << 40);
    let arguments = [
        KernelArgument::new(&pointer),
        KernelArgument::new(&offset_bytes),
    ];
    let launched = with_encoder(stream, |encoder| {
        // SAFETY: the arguments are the kernel's. It writes to device memory that is not mapped, as
        // the function's documentation says: the device's own protection stops it.
        unsafe { encoder.launch(kernel, &LaunchConfig::linear(1, 1), &arguments) }
    });
    settle(stream, launched.and_then(|()| stream.synchronize(None)))
}

/// Compiles a kernel whose source has `id` in it, runs it on the calling thread's default stream, and
/// gives the number that it wrote: `id`, if the process's module cache told the sources apart.
///
/// # Errors
///
/// [`Status::Compile`], and as [`try_eval`](super::try_eval).
pub fn jit_probe(id: u64) -> Result<u64> {
    let source = ModuleSource::new(
        "rocm_device_map_jit_probe",
        &format!(
            "extern \"C\" __global__ void jit_probe(unsigned long long *out) {{\n  \
             if (blockIdx.x == 0 && threadIdx.x == 0) *out = {id}ull;\n}}\n"
        ),
    )?;
    let memory = StreamMemory::of_default_stream()?;
    let stream = &memory.stream;
    let device = Device::get(stream.device_index())?;
    let kernel = Module::get(device, &source)?.kernel("jit_probe")?;
    let buffer = Buffer::new(&memory, device, size_of::<u64>(), Place::Device)?;
    let pointer = buffer.as_ptr();
    let arguments = [KernelArgument::new(&pointer)];
    let bytes = with_encoder(stream, |encoder| {
        // SAFETY: the argument is the kernel's, which writes 8 bytes to a buffer of that size.
        unsafe { encoder.launch(kernel, &LaunchConfig::linear(1, 1), &arguments) }
    })
    .and_then(|()| read_back(&buffer, size_of::<u64>()));
    let bytes: [u8; 8] = settle(stream, bytes)?.try_into().map_err(|_| {
        Error::new(
            Status::Driver,
            "a copy of 8 bytes gave another number of them",
        )
    })?;
    Ok(u64::from_ne_bytes(bytes))
}
