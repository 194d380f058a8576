//! Evaluation: one launch for each operation, in the order that the graph asks for.

use std::ffi::CStr;
use std::sync::{Arc, LazyLock};

use super::array::{Array, Node, Operation};
use super::storage::{Buffer, Place, Staging, StreamMemory, with_encoder};
use crate::device::Device;
use crate::encoder::{CopyKind, KernelArgument, LaunchConfig};
use crate::error::{Error, Result, Status};
use crate::module::{Kernel, Module, ModuleSource};
use crate::stream::Stream;

const THREADS_IN_A_BLOCK: u32 = 256;
/// The kernels count elements in 32 bits, with room for the last block.
/// Up to here the last kernel writes to host memory faster than the result is copied there.
const MOST_BYTES_WRITTEN_TO_HOST: usize = 64 * 1024;
const MOST_ELEMENTS: usize = (u32::MAX - THREADS_IN_A_BLOCK) as usize;

static SOURCE: LazyLock<ModuleSource> = LazyLock::new(|| {
    ModuleSource::new("rocm_device_map_probe", include_str!("kernels.hip"))
        .expect("the probe's own source holds no NUL character")
});

/// A kernel of the probe's source, looked up in the module cache each time.
pub(super) fn kernel(device: Device, name: &CStr) -> Result<Kernel> {
    Module::get(device, &SOURCE)?.kernel_with_c_name(name)
}

/// Makes a failure on a stream this caller's: it is not kept for the stream's next user. The stream
/// keeps the first error, which may be an earlier one; then it is told as well.
pub(super) fn settle<T>(stream: &Stream, result: Result<T>) -> Result<T> {
    result.map_err(|error| match stream.take_error() {
        Ok(Some(first)) if first.message() != error.message() => {
            let message = format!("{error}; the stream had failed before: {first}");
            error.with_message(message)
        }
        _ => error,
    })
}

/// Evaluates the array and waits until its elements are computed.
///
/// # Errors
///
/// What the graph was built from wrongly ([`Status::InvalidArgument`], [`Status::WrongDevice`]);
/// those of the launches ([`Status::Launch`], [`Status::Compile`], [`Status::OutOfMemory`]); those of
/// [`Stream::synchronize`]. The array stays as it was, and a later call tries again.
pub fn try_eval(array: &Array) -> Result<()> {
    evaluate(&array.node, Place::Device)?;
    let stream = value(&array.node)?.stream();
    settle(stream, stream.synchronize(None))
}

/// Evaluates the array and copies its elements out, as the bytes of `f32` in the machine's order.
///
/// # Errors
///
/// As [`try_eval`].
pub fn array_to_raw_bytes(array: &Array) -> Result<Vec<u8>> {
    let place = if array.len() * size_of::<f32>() <= MOST_BYTES_WRITTEN_TO_HOST {
        Place::Host
    } else {
        Place::Device
    };
    evaluate(&array.node, place)?;
    let buffer = value(&array.node)?;
    let stream = buffer.stream();
    settle(stream, read_back(buffer, array.len() * size_of::<f32>()))
}

pub(super) fn read_back(buffer: &Buffer, size_bytes: usize) -> Result<Vec<u8>> {
    let stream = buffer.stream();
    if size_bytes == 0 {
        stream.synchronize(None)?;
        return Ok(Vec::new());
    }
    if let Some(host) = buffer.host_memory() {
        stream.synchronize(None)?;
        // SAFETY: the buffer has that many bytes, which are computed by now, and while it is borrowed
        // nothing else writes to them.
        let bytes = unsafe { std::slice::from_raw_parts(host.as_ptr().cast::<u8>(), size_bytes) };
        return Ok(bytes.to_vec());
    }
    let staging = Staging::take(stream.device_index(), size_bytes)?;
    let copied = with_encoder(stream, |encoder| {
        // SAFETY: both ends have that size. The buffer is borrowed, and the staging memory is given
        // back only after the copy is known to be done.
        unsafe {
            encoder.copy(
                staging.as_ptr(),
                buffer.as_ptr(),
                size_bytes,
                CopyKind::DeviceToHost,
            )
        }
    });
    if let Err(error) = copied.and_then(|()| stream.synchronize(None)) {
        // The copy may still come, so this memory is never used again.
        std::mem::forget(staging);
        return Err(error);
    }
    // SAFETY: the copy has written that many bytes, and nothing else writes to them.
    let bytes = unsafe { std::slice::from_raw_parts(staging.as_ptr().cast::<u8>(), size_bytes) };
    let bytes = bytes.to_vec();
    Staging::give_back(stream.device_index(), staging);
    Ok(bytes)
}

fn value(node: &Node) -> Result<&Buffer> {
    node.value
        .get()
        .ok_or_else(|| Error::new(Status::InvalidArgument, "the array has not been evaluated"))
}

/// Submits what the node and its inputs need, each once, inputs first. The place is for the node's own
/// elements; its inputs' are on the device.
fn evaluate(root: &Arc<Node>, place: Place) -> Result<()> {
    if root.value.get().is_some() {
        return Ok(());
    }
    let default = StreamMemory::of_default_stream;
    let mut default_memory: Option<Arc<StreamMemory>> = None;
    let mut pending = vec![Arc::clone(root)];
    while let Some(node) = pending.last() {
        if node.value.get().is_some() {
            pending.pop();
            continue;
        }
        let inputs: Vec<Arc<Node>> = node
            .operation()
            .iter()
            .flat_map(Operation::inputs)
            .filter(|input| input.value.get().is_none())
            .map(Arc::clone)
            .collect();
        if !inputs.is_empty() {
            pending.extend(inputs);
            continue;
        }
        let memory = match (&node.stream, &default_memory) {
            (Some(stream), _) => StreamMemory::of_stream(stream)?,
            (None, Some(memory)) => Arc::clone(memory),
            (None, None) => Arc::clone(default_memory.insert(default()?)),
        };
        let place = if Arc::ptr_eq(node, root) {
            place
        } else {
            Place::Device
        };
        settle(&memory.stream, compute(node, &memory, place))?;
        pending.pop();
    }
    Ok(())
}

/// Submits one node whose inputs have been.
fn compute(node: &Node, memory: &Arc<StreamMemory>, place: Place) -> Result<()> {
    let mut operation = node.operation();
    // None: another thread has computed it meanwhile.
    if let Some(to_do) = operation.as_ref() {
        let buffer = submit(node.len, to_do, memory, place)?;
        let _ = node.value.set(buffer);
        let done = operation.take();
        drop(operation);
        // The inputs, some of which may end here.
        drop(done);
    }
    Ok(())
}

fn submit(
    len: usize,
    operation: &Operation,
    memory: &Arc<StreamMemory>,
    place: Place,
) -> Result<Buffer> {
    if let Operation::Invalid { message } = operation {
        return Err(Error::new(Status::InvalidArgument, message.as_str()));
    }
    if len > MOST_ELEMENTS {
        return Err(Error::new(
            Status::InvalidArgument,
            format!("an array of {len} elements; the probe takes at most {MOST_ELEMENTS}"),
        ));
    }
    let device = Device::get(memory.stream.device_index())?;
    let output = Buffer::new(memory, device, len * size_of::<f32>(), place)?;
    for input in operation.inputs() {
        value(input)?.make_readable(memory)?;
    }
    if len == 0 {
        return Ok(output);
    }
    let pointer = output.as_ptr();
    let count = len as u32;
    match operation {
        Operation::Arange { start, step } => launch(
            memory,
            device,
            c"probe_arange",
            count,
            &[
                KernelArgument::new(&pointer),
                KernelArgument::new(start),
                KernelArgument::new(step),
                KernelArgument::new(&count),
            ],
        ),
        Operation::Full { value } => launch(
            memory,
            device,
            c"probe_full",
            count,
            &[
                KernelArgument::new(&pointer),
                KernelArgument::new(value),
                KernelArgument::new(&count),
            ],
        ),
        Operation::MultiplyScalar { input, factor } => launch(
            memory,
            device,
            c"probe_multiply_scalar",
            count,
            &[
                KernelArgument::new(&pointer),
                KernelArgument::new(&value(input)?.as_ptr()),
                KernelArgument::new(factor),
                KernelArgument::new(&count),
            ],
        ),
        Operation::AddScalar { input, addend } => launch(
            memory,
            device,
            c"probe_add_scalar",
            count,
            &[
                KernelArgument::new(&pointer),
                KernelArgument::new(&value(input)?.as_ptr()),
                KernelArgument::new(addend),
                KernelArgument::new(&count),
            ],
        ),
        Operation::Add { left, right } => launch(
            memory,
            device,
            c"probe_add",
            count,
            &[
                KernelArgument::new(&pointer),
                KernelArgument::new(&value(left)?.as_ptr()),
                KernelArgument::new(&value(right)?.as_ptr()),
                KernelArgument::new(&count),
            ],
        ),
        Operation::Invalid { .. } => Ok(()),
    }?;
    Ok(output)
}

/// Launches one of the probe's element-wise kernels. Private to this module, which gives each kernel
/// the arguments that `kernels.hip` declares, with buffers of `count` elements.
fn launch(
    memory: &StreamMemory,
    device: Device,
    name: &CStr,
    count: u32,
    arguments: &[KernelArgument<'_>],
) -> Result<()> {
    let kernel = kernel(device, name)?;
    let config = LaunchConfig::linear(count.div_ceil(THREADS_IN_A_BLOCK), THREADS_IN_A_BLOCK);
    with_encoder(&memory.stream, |encoder| {
        // SAFETY: the arguments are the kernel's, and it touches only the first `count` elements of
        // its buffers. They are reused for later work of this stream alone, or behind an event.
        unsafe { encoder.launch(kernel, &config, arguments) }
    })
}
