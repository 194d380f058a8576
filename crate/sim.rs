//! The simulated driver's own controls, for tests.
//!
//! Every function here is [`Status::Unsupported`](crate::Status::Unsupported) unless the process's
//! driver is `sim`; each loads it if need be. Entry points are named as HIP names them, such as
//! `hipEventRecord`.

use std::time::Duration;

use crate::error::{Result, check, static_text};
use crate::runtime::c_text;
use crate::sys;

/// One call into the simulated driver.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The entry point.
    pub entry_point: &'static str,
    /// Nanoseconds on the monotonic clock when the call was entered.
    pub time_ns: u64,
    /// A small number for each thread, in the order of their first calls.
    pub thread: u64,
    /// The object that the call named, 0 where it named none.
    pub handle: u64,
    /// The thread's current device as the call was entered.
    pub current_device: i32,
    /// The device that the call names, or that its handle belongs to.
    pub named_device: Option<i32>,
    /// What the call returned; `None` while it is still inside.
    pub result: Option<i32>,
    /// Whether the call was made from a host callback.
    pub in_callback: bool,
}

/// The latest calls, at most 65,536 of them, oldest first.
pub fn calls() -> Result<Vec<Call>> {
    let mut raw = vec![sys::rdm_sim_call::default(); 65_536];
    let mut count = 0;
    // SAFETY: the buffer has room for as many calls as are asked for.
    check(unsafe { sys::rdm_sim_read_calls(0, raw.as_mut_ptr(), raw.len(), &mut count) })?;
    raw.truncate(count);
    Ok(raw.iter().map(from_raw).collect())
}

fn from_raw(raw: &sys::rdm_sim_call) -> Call {
    Call {
        // SAFETY: the text has static storage.
        entry_point: unsafe { static_text(raw.entry_point) },
        time_ns: raw.time_ns,
        thread: raw.thread,
        handle: raw.handle,
        current_device: raw.current_device,
        named_device: (raw.named_device >= 0).then_some(raw.named_device),
        result: (raw.result >= 0).then_some(raw.result),
        in_callback: raw.in_callback != 0,
    }
}

/// How many calls were made to an entry point so far, `None`: to all of them.
pub fn call_count(entry_point: Option<&str>) -> Result<u64> {
    let entry_point = entry_point
        .map(|name| c_text("the entry point", name))
        .transpose()?;
    let name = entry_point
        .as_ref()
        .map_or(std::ptr::null(), |name| name.as_ptr());
    let mut count = 0;
    // SAFETY: the text lives until the call returns, and the count is a place to write to.
    check(unsafe { sys::rdm_sim_call_count(name, &mut count) })?;
    Ok(count)
}

/// Makes the `nth` call from now on (1: the next) to an entry point, `None`: to any, stall for
/// `stall` and then, where `error` is not 0, return it without doing anything. `times` calls in a row
/// are so treated, 0: all from then on.
pub fn inject(
    entry_point: Option<&str>,
    nth: u64,
    times: u64,
    error: i32,
    stall: Duration,
) -> Result<()> {
    let entry_point = entry_point
        .map(|name| c_text("the entry point", name))
        .transpose()?;
    let name = entry_point
        .as_ref()
        .map_or(std::ptr::null(), |name| name.as_ptr());
    let stall_ns = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the text lives until the call returns.
    check(unsafe { sys::rdm_sim_inject(name, nth, times, error, stall_ns) })
}

/// Removes every injection and gives how many calls they had changed.
pub fn clear_injections() -> Result<u64> {
    let mut fired = 0;
    // SAFETY: the count is a place to write to.
    check(unsafe { sys::rdm_sim_clear_injections(&mut fired) })?;
    Ok(fired)
}

/// Makes a device's streams start no further work, or go on. What is running completes.
pub fn hold(device_index: i32, hold: bool) -> Result<()> {
    // SAFETY: the function takes any numbers.
    check(unsafe { sys::rdm_sim_hold(device_index, hold.into()) })
}

/// Faults a device now, with a HIP error number, as a queue fault of its own would.
pub fn fault(device_index: i32, error: i32) -> Result<()> {
    // SAFETY: the function takes any numbers.
    check(unsafe { sys::rdm_sim_fault(device_index, error) })
}

/// How many objects of each kind are alive in the simulated driver.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Loaded modules.
    pub modules: u64,
    /// Programs of the run-time compiler.
    pub programs: u64,
    /// Allocations of device memory.
    pub device_allocations: u64,
    /// Allocations of pinned host memory.
    pub host_allocations: u64,
    /// Graphs, captured or executable.
    pub graphs: u64,
}

/// Counts the objects that are alive in the simulated driver.
pub fn count_objects() -> Result<Objects> {
    let mut raw = sys::rdm_sim_objects {
        struct_size: size_of::<sys::rdm_sim_objects>() as u32,
        ..Default::default()
    };
    // SAFETY: the struct says its size.
    check(unsafe { sys::rdm_sim_count_objects(&mut raw) })?;
    Ok(Objects {
        streams: raw.streams,
        events: raw.events,
        modules: raw.modules,
        programs: raw.programs,
        device_allocations: raw.device_allocations,
        host_allocations: raw.host_allocations,
        graphs: raw.graphs,
    })
}
