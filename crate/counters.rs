//! What the process has done so far, in numbers.

use std::time::Duration;

use crate::error::{Result, check};
use crate::sys;

/// How a counter behaves.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// It only grows.
    Total,
    /// How many there are now: it goes up and down.
    Now,
}

/// One counter with its name, for code that shows or exports all of them.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterEntry {
    /// The field's name, such as `device_lookups`.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// Whether it only grows.
    pub kind: CounterKind,
}

/// The struct, what fills it from the C library's, and its entries, from one list.
macro_rules! counters {
    ($($(#[$documentation:meta])* $kind:ident $name:ident,)*) => {
        /// What [`counters`] found. The fields of what there is *now* go up and down; all others only
        /// grow.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$documentation])* pub $name: u64,)*
        }

        impl Counters {
            fn from_raw(raw: &sys::rdm_counters) -> Self {
                Self { $($name: raw.$name,)* }
            }

            /// Each counter with its name, in the order of the fields.
            ///
            /// ```
            /// for entry in rocm_device_map::counters()?.entries() {
            ///     println!("rdm_{} {}", entry.name, entry.value);
            /// }
            /// # Ok::<(), rocm_device_map::Error>(())
            /// ```
            pub fn entries(&self) -> impl Iterator<Item = CounterEntry> + use<> {
                [$(CounterEntry {
                    name: stringify!($name),
                    value: self.$name,
                    kind: CounterKind::$kind,
                },)*]
                .into_iter()
            }
        }
    };
}

counters! {
    /// Lookups of a device by its index, by whatever takes one.
    Total device_lookups,
    /// Those that found the device by what the thread remembered, without a lock.
    Total device_hits,
    /// Devices that were built.
    Total device_constructions,
    /// First faults of devices, each of which has cost the process that device, or all of them with
    /// AMD's runtime.
    Total faults,
    /// Lookups of an encoder by its stream.
    Total encoder_lookups,
    /// Those that took no lock.
    Total encoder_hits,
    /// Encoders made.
    Total encoders_created,
    /// Encoders that exist now.
    Now encoders_alive,
    /// Streams made.
    Total streams_created,
    /// Streams that exist now.
    Now streams_alive,
    /// Driver streams made. They are reused and never destroyed, so as many exist.
    Total driver_streams,
    /// Kernel launches that the driver took.
    Total launches,
    /// Kernel launches that the driver refused, of graphs too.
    Total launches_refused,
    /// Copies that the driver took.
    Total copies,
    /// How many bytes those copies have.
    Total copied_bytes,
    /// Fills that the driver took.
    Total fills,
    /// Graphs captured. What a stream is given while it is captured counts once, then, and not with
    /// each launch of the graph.
    Total graphs_created,
    /// Graphs that exist now.
    Now graphs_alive,
    /// Launches of graphs that the driver took.
    Total graph_launches,
    /// Batches of completion handlers that were committed.
    Total batches_committed,
    /// Batches whose handlers have yet to run to their end, now.
    Now batches_pending,
    /// Events made.
    Total events_created,
    /// Events given back.
    Total events_released,
    /// Events that are made and not given back, now.
    Now events_alive,
    /// Driver events that no event stands for now: in the shared pool, with threads, or used by a
    /// synchronize.
    Now events_pooled,
    /// Driver events that exist now, but for those given up on a device that is lost.
    Now driver_events,
    /// How often a thread that had no event left went to a shared pool, and took its lock.
    Total event_pool_visits,
    /// Records of events that the driver took.
    Total event_records,
    /// Waits of streams for events that the driver took.
    Total event_waits,
    /// How often a thread waited for a device's work or for completion handlers. What is done already is
    /// not waited for; a synchronize that waits for both counts twice.
    Total waits,
    /// Threads that wait so now.
    Now waits_running,
    /// For how long, all threads together, in nanoseconds; a wait counts when it ends.
    Total wait_time_ns,
    /// Waits of any kind that ended with [`Status::Timeout`](crate::Status::Timeout).
    Total wait_timeouts,
    /// Waits of any kind that ended with [`Status::Watchdog`](crate::Status::Watchdog).
    Total wait_watchdogs,
    /// Modules loaded. They are never unloaded.
    Total modules_loaded,
    /// Lookups of a module by its source.
    Total module_lookups,
    /// Those that found it there.
    Total module_hits,
    /// Sources given to the run-time compiler.
    Total compiles,
    /// Those that failed.
    Total compile_failures,
    /// Those that the compiler is at now.
    Now compiles_running,
    /// How long the compiler took, all compiles together, in nanoseconds, without the wait for its turn.
    Total compile_time_ns,
    /// Sources whose code was found in the cache on disk.
    Total disk_cache_hits,
    /// Sources whose code was looked for there in vain.
    Total disk_cache_misses,
    /// Blocks of device memory that were allocated.
    Total device_allocations,
    /// Blocks of device memory that were freed.
    Total device_frees,
    /// Blocks of pinned host memory that were allocated.
    Total host_allocations,
    /// Blocks of pinned host memory that were freed.
    Total host_frees,
    /// Driver calls that failed, also those that no caller was told of.
    Total driver_errors,
    /// Errors kept for a stream, or for none (see
    /// [`take_unattributed_error`](crate::take_unattributed_error)).
    Total stream_errors,
    /// Log lines of the level error, also those that went nowhere.
    Total log_errors,
    /// Log lines of the level warning, also those that went nowhere.
    Total log_warnings,
}

impl Counters {
    /// For how long threads waited, all together: `wait_time_ns`.
    pub fn wait_time(&self) -> Duration {
        Duration::from_nanos(self.wait_time_ns)
    }

    /// How long the compiler took, all compiles together: `compile_time_ns`.
    pub fn compile_time(&self) -> Duration {
        Duration::from_nanos(self.compile_time_ns)
    }
}

/// Adds up what all threads have counted, those that have ended too.
///
/// Loads no driver, makes no driver call and never waits for one, so it answers also while every
/// other thread stands still. The counters are read one after the other while other threads go on, so
/// two of them may be of slightly different moments; what a call counted is there once it has returned.
///
/// ```
/// use rocm_device_map::{Config, Device, Event, configure, counters};
///
/// configure(&Config::new().driver("sim"))?;
/// let device = Device::get(0)?;
/// assert_eq!(Device::get(0)?, device);
/// let event = Event::new(device)?;
///
/// let counters = counters()?;
/// assert_eq!((counters.device_lookups, counters.device_hits), (2, 1));
/// assert_eq!((counters.events_created, counters.events_alive), (1, 1));
/// # drop(event);
/// # Ok::<(), rocm_device_map::Error>(())
/// ```
///
/// # Errors
///
/// [`Status::ShuttingDown`](crate::Status::ShuttingDown), [`Status::Forked`](crate::Status::Forked).
pub fn counters() -> Result<Counters> {
    let mut raw = sys::rdm_counters {
        struct_size: size_of::<sys::rdm_counters>() as u32,
        ..Default::default()
    };
    // SAFETY: the struct says its size.
    check(unsafe { sys::rdm_get_counters(&mut raw) })?;
    Ok(Counters::from_raw(&raw))
}
