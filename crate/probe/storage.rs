//! The arrays' memory, in stream order: each stream's idle blocks, and the blocks that arrays are in.
//!
//! A block that was last used on a stream is free for that stream's next work at once, since the
//! stream runs in order; so allocating costs no driver call in the steady state, and nothing waits
//! for the device. Blocks change streams only behind an event.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::device::Device;
use crate::encoder::Encoder;
use crate::error::{Error, Result, Status};
use crate::event::Event;
use crate::memory::{DeviceMemory, HostMemory};
use crate::stream::Stream;
use crate::streams::{ThreadLocalStream, stream_from_thread_local_stream};
use crate::sys;

const SMALLEST_BLOCK_BYTES: usize = 256;
const IDLE_BLOCKS_OF_A_STREAM: usize = 64;
const STREAMS_OF_A_THREAD: usize = 2;
const RETIRED_STREAMS_OF_A_DEVICE: usize = 16;
const IDLE_STAGING_BLOCKS_OF_A_DEVICE: usize = 64;
/// How often work is submitted anew when the stream's encoders are cleared under it.
const ATTEMPTS: usize = 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` with the stream's encoder. One that another thread clears in between is stale; then
/// nothing was done, and the stream has a fresh one.
pub(super) fn with_encoder(stream: &Stream, work: impl Fn(Encoder) -> Result<()>) -> Result<()> {
    let mut attempts = 0;
    loop {
        let result = stream.encoder().and_then(&work);
        attempts += 1;
        match result {
            Err(error) if error.status() == Status::StaleHandle && attempts < ATTEMPTS => {}
            result => return result,
        }
    }
}

/// Makes what `stream` does next wait for what `other` has been given so far. Blocks nobody.
fn join(stream: &Stream, other: &Stream) -> Result<()> {
    let event = Event::new(Device::get(other.device_index())?)?;
    with_encoder(other, |encoder| encoder.record_event(&event))?;
    with_encoder(stream, |encoder| encoder.wait_event(&event))
}

/// Where an array's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Device,
    /// In pinned host memory, which kernels read and write as well, more slowly.
    Host,
}

/// Memory for arrays.
enum Block {
    Device(DeviceMemory),
    Host(HostMemory),
}

impl Block {
    fn new(device: Device, size_bytes: usize, place: Place) -> Result<Self> {
        Ok(match place {
            Place::Device => Self::Device(DeviceMemory::new(device, size_bytes)?),
            Place::Host => Self::Host(HostMemory::new(device, size_bytes)?),
        })
    }

    fn place(&self) -> Place {
        match self {
            Self::Device(_) => Place::Device,
            Self::Host(_) => Place::Host,
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Device(memory) => memory.size_bytes(),
            Self::Host(memory) => memory.size_bytes(),
        }
    }

    fn as_ptr(&self) -> *mut std::ffi::c_void {
        match self {
            Self::Device(memory) => memory.as_ptr(),
            Self::Host(memory) => memory.as_ptr(),
        }
    }
}

/// A stream, and the blocks that are free for its next work.
pub(super) struct StreamMemory {
    pub(super) stream: Stream,
    raw: sys::rdm_stream,
    idle: Mutex<Vec<Block>>,
}

/// What is left of a stream's memory when nobody uses it there any more.
struct Retired {
    stream: Stream,
    blocks: Vec<Block>,
}

/// By device index. Filled without a driver call, so that a thread may end at any time.
static RETIRED: Mutex<BTreeMap<i32, Vec<Retired>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The streams that this thread used last, the latest first.
    static RECENT: RefCell<Vec<Arc<StreamMemory>>> = const { RefCell::new(Vec::new()) };
}

impl StreamMemory {
    /// That of the calling thread's default stream; without one, of the thread's own stream of the
    /// process's shared thread-local stream.
    pub(super) fn of_default_stream() -> Result<Arc<Self>> {
        let mut raw = sys::rdm_stream::default();
        // SAFETY: the handle is a place to write to.
        crate::error::check(unsafe { sys::rdm_default_stream_get(&mut raw) })?;
        if raw.bits == 0 {
            static SHARED: OnceLock<ThreadLocalStream> = OnceLock::new();
            if let Some(shared) = SHARED.get() {
                return Self::of_stream(&stream_from_thread_local_stream(shared)?);
            }
            let Some(shared) = crate::streams::shared_thread_local_generation_stream() else {
                // Says why there is none.
                Device::get(0)?;
                return Err(Error::new(Status::NoDevice, "there is no GPU"));
            };
            return Self::of_stream(&stream_from_thread_local_stream(
                SHARED.get_or_init(|| shared),
            )?);
        }
        Self::of_raw(raw, || Stream::from_borrowed_raw(raw))
    }

    pub(super) fn of_stream(stream: &Stream) -> Result<Arc<Self>> {
        Self::of_raw(stream.as_raw()?, || Ok(stream.clone()))
    }

    fn of_raw(raw: sys::rdm_stream, stream: impl FnOnce() -> Result<Stream>) -> Result<Arc<Self>> {
        let recent = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            let place = recent.iter().position(|memory| memory.raw == raw)?;
            recent[..=place].rotate_right(1);
            Some(Arc::clone(&recent[0]))
        });
        if let Ok(Some(memory)) = recent {
            return Ok(memory);
        }
        let memory = Arc::new(Self {
            stream: stream()?,
            raw,
            idle: Mutex::new(Vec::new()),
        });
        let evicted = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            recent.insert(0, Arc::clone(&memory));
            (recent.len() > STREAMS_OF_A_THREAD)
                .then(|| recent.pop())
                .flatten()
        });
        drop(evicted);
        Ok(memory)
    }

    /// A block of at least this size, for the stream's device.
    fn allocate(&self, device: Device, size_bytes: usize, place: Place) -> Result<Block> {
        let size_bytes = size_bytes
            .max(SMALLEST_BLOCK_BYTES)
            .checked_next_power_of_two()
            .ok_or_else(|| {
                Error::new(
                    Status::OutOfMemory,
                    format!("{size_bytes} bytes are more than there can be"),
                )
            })?;
        loop {
            if let Some(block) = self.take_idle(size_bytes, place) {
                return Ok(block);
            }
            if !self.adopt_retired() {
                return Block::new(device, size_bytes, place);
            }
        }
    }

    fn take_idle(&self, size_bytes: usize, place: Place) -> Option<Block> {
        let mut idle = lock(&self.idle);
        let found = idle
            .iter()
            .rposition(|block| block.size_bytes() == size_bytes && block.place() == place)?;
        Some(idle.swap_remove(found))
    }

    /// Takes over the blocks of a stream that nobody uses here any more. False where there is none.
    fn adopt_retired(&self) -> bool {
        let (adopted, excess) = {
            let mut all = lock(&RETIRED);
            let Some(of_device) = all.get_mut(&self.stream.device_index()) else {
                return false;
            };
            let adopted = of_device.pop();
            let excess: Vec<Retired> = if of_device.len() > RETIRED_STREAMS_OF_A_DEVICE {
                of_device.drain(RETIRED_STREAMS_OF_A_DEVICE..).collect()
            } else {
                Vec::new()
            };
            (adopted, excess)
        };
        drop(excess);
        let Some(Retired { stream, blocks }) = adopted else {
            return false;
        };
        // Where the streams can not be joined the blocks are freed, which waits for the device.
        if join(&self.stream, &stream).is_ok() {
            lock(&self.idle).extend(blocks);
        }
        true
    }

    /// Takes a block back whose last use was on this stream, or is waited for by it.
    fn give_back(&self, block: Block) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE_BLOCKS_OF_A_STREAM {
            idle.push(block);
            return;
        }
        drop(idle);
        drop(block);
    }
}

impl Drop for StreamMemory {
    fn drop(&mut self) {
        let blocks = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        if blocks.is_empty() {
            return;
        }
        let retired = Retired {
            stream: self.stream.clone(),
            blocks,
        };
        lock(&RETIRED)
            .entry(self.stream.device_index())
            .or_default()
            .push(retired);
    }
}

/// The memory of an evaluated array. Free for other work of its stream once it is dropped.
pub(super) struct Buffer {
    /// None for an array without elements, and once the drop has taken it.
    memory: Option<Block>,
    home: Arc<StreamMemory>,
    /// Recorded on the array's stream, after it was computed, when another stream first asks.
    computed: OnceLock<Event>,
    /// The other streams that have read it.
    readers: Mutex<Vec<Stream>>,
}

impl Buffer {
    /// Memory for an array that is computed on this stream.
    pub(super) fn new(
        home: &Arc<StreamMemory>,
        device: Device,
        size_bytes: usize,
        place: Place,
    ) -> Result<Self> {
        let memory = if size_bytes == 0 {
            None
        } else {
            Some(home.allocate(device, size_bytes, place)?)
        };
        Ok(Self {
            memory,
            home: Arc::clone(home),
            computed: OnceLock::new(),
            readers: Mutex::new(Vec::new()),
        })
    }

    /// The stream that it is computed on.
    pub(super) fn stream(&self) -> &Stream {
        &self.home.stream
    }

    /// The address that kernels use; null where there is no element.
    pub(super) fn as_ptr(&self) -> *mut std::ffi::c_void {
        self.memory
            .as_ref()
            .map_or(std::ptr::null_mut(), Block::as_ptr)
    }

    /// The memory where it is the host's, to be read once the stream has got there.
    pub(super) fn host_memory(&self) -> Option<&HostMemory> {
        match &self.memory {
            Some(Block::Host(memory)) => Some(memory),
            _ => None,
        }
    }

    /// Makes it good to be read by what `reader` submits next.
    pub(super) fn make_readable(&self, reader: &StreamMemory) -> Result<()> {
        if reader.raw == self.home.raw {
            return Ok(());
        }
        let own_device = self.stream().device_index();
        let other_device = reader.stream.device_index();
        if own_device != other_device {
            return Err(Error::new(
                Status::WrongDevice,
                format!(
                    "the array is on device {own_device} and is used on a stream of device {other_device}"
                ),
            ));
        }
        let event = self.computed()?;
        with_encoder(&reader.stream, |encoder| encoder.wait_event(event))?;
        let mut readers = lock(&self.readers);
        if !readers.contains(&reader.stream) {
            readers.push(reader.stream.clone());
        }
        Ok(())
    }

    fn computed(&self) -> Result<&Event> {
        if let Some(event) = self.computed.get() {
            return Ok(event);
        }
        let event = Event::new(Device::get(self.stream().device_index())?)?;
        with_encoder(self.stream(), |encoder| encoder.record_event(&event))?;
        Ok(self.computed.get_or_init(|| event))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        let readers = self
            .readers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for reader in readers.iter() {
            if join(&self.home.stream, reader).is_err() {
                // Freed, which waits for the device, since it can not be waited for otherwise.
                return;
            }
        }
        self.home.give_back(memory);
    }
}

/// Pinned host memory that results are read back to, reused.
pub(super) struct Staging;

/// By device index.
static IDLE_STAGING: Mutex<BTreeMap<i32, Vec<HostMemory>>> = Mutex::new(BTreeMap::new());

impl Staging {
    /// Pinned memory of at least this size.
    pub(super) fn take(device_index: i32, size_bytes: usize) -> Result<HostMemory> {
        let idle = lock(&IDLE_STAGING)
            .get_mut(&device_index)
            .and_then(|of_device| {
                let place = of_device
                    .iter()
                    .rposition(|memory| memory.size_bytes() >= size_bytes)?;
                Some(of_device.swap_remove(place))
            });
        match idle {
            Some(memory) => Ok(memory),
            None => {
                let size_bytes = size_bytes.checked_next_power_of_two().unwrap_or(size_bytes);
                HostMemory::new(Device::get(device_index)?, size_bytes.max(4096))
            }
        }
    }

    /// Gives memory back that no device uses any more.
    pub(super) fn give_back(device_index: i32, memory: HostMemory) {
        let mut all = lock(&IDLE_STAGING);
        let of_device = all.entry(device_index).or_default();
        if of_device.len() < IDLE_STAGING_BLOCKS_OF_A_DEVICE {
            of_device.push(memory);
            return;
        }
        drop(all);
        drop(memory);
    }
}
