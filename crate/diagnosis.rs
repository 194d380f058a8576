//! What is there and what was tried: the facts that `rdm doctor` reports.
//!
//! Nothing here builds a [`Device`](crate::Device), makes one current or chooses the process's
//! driver. A driver's library, once opened, may stay loaded.
//!
//! ```
//! use rocm_device_map::{diagnosis, probe_driver};
//!
//! for driver in diagnosis::BUILT_IN_DRIVERS {
//!     match probe_driver(driver) {
//!         Ok(count) => println!("{driver}: {count} devices"),
//!         Err(error) => println!("{driver}: {error}"),
//!     }
//!     for attempt in diagnosis::attempts(driver)? {
//!         println!("  {}: {}", attempt.name, attempt.result);
//!     }
//! }
//! # Ok::<(), rocm_device_map::Error>(())
//! ```

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use crate::device::DeviceInfo;
use crate::error::{Result, check, field_text};
use crate::runtime::c_text;
use crate::sys;

/// The drivers of this build, in the order in which they are tried. `sim`, the last, is used only
/// where it is asked for.
pub const BUILT_IN_DRIVERS: &[&str] = &[
    #[cfg(feature = "rocm")]
    "hip",
    #[cfg(feature = "cuda")]
    "cuda",
    "sim",
];

/// One attempt at a driver's library.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What the loader was given: a path or a soname.
    pub name: String,
    /// Used: the file that was taken. Else the loader's text, or why the file was not taken.
    pub result: String,
    /// Whether the file was taken.
    pub is_used: bool,
}

/// A device node that a driver needs.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// `hip` or `cuda`.
    pub driver: String,
    /// Where it is, such as `/dev/kfd`.
    pub path: PathBuf,
    /// Its mode, owner and access; none where it does not exist.
    pub found: Option<FoundNode>,
}

/// A device node that exists.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundNode {
    /// The permission bits, such as `0o660`.
    pub mode: u32,
    /// The user that it belongs to.
    pub owner_id: u32,
    /// The group that it belongs to.
    pub group_id: u32,
    /// That group's name, or its number where it has none.
    pub group: String,
    /// Why this process may not open it, and the remedy, in the form `WHY; REMEDY`. None where it may,
    /// as the node's mode and owner say; it is not opened to find out.
    pub problem: Option<String>,
}

/// What the library calls for each item has to bring along.
struct Collector<T> {
    items: Vec<T>,
    /// A panic, such as one of the allocator, which must not cross the C library.
    panic: Option<Box<dyn Any + Send>>,
}

impl<T> Collector<T> {
    fn new() -> Self {
        Self {
            items: Vec::new(),
            panic: None,
        }
    }

    fn add(&mut self, make: impl FnOnce() -> T) {
        if self.panic.is_some() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(make)) {
            Ok(item) => self.items.push(item),
            Err(payload) => self.panic = Some(payload),
        }
    }

    fn finish(self) -> Vec<T> {
        if let Some(payload) = self.panic {
            resume_unwind(payload);
        }
        self.items
    }
}

extern "C" fn add_attempt(
    name: *const c_char,
    result: *const c_char,
    used: i32,
    user_data: *mut c_void,
) {
    // SAFETY: it is the collector of `attempts`, which nobody else uses while the library calls this,
    // and both texts last until this returns.
    let (collector, name, result) = unsafe {
        (
            &mut *user_data.cast::<Collector<Attempt>>(),
            CStr::from_ptr(name),
            CStr::from_ptr(result),
        )
    };
    collector.add(|| Attempt {
        name: name.to_string_lossy().into_owned(),
        result: result.to_string_lossy().into_owned(),
        is_used: used != 0,
    });
}

/// Each attempt at a library of the driver, in order, in the latest opening of it: none where it was
/// not opened yet (see [`probe_driver`](crate::probe_driver)), or looks for none (`sim`).
///
/// # Errors
///
/// [`Status::UnknownDriver`](crate::Status::UnknownDriver) for a driver that is not built in.
pub fn attempts(driver: &str) -> Result<Vec<Attempt>> {
    let driver = c_text("the driver's name", driver)?;
    let mut collector = Collector::new();
    // SAFETY: the function fits the collector, which lives until the call returns.
    check(unsafe {
        sys::rdm_driver_attempts(
            driver.as_ptr(),
            Some(add_attempt),
            std::ptr::from_mut(&mut collector).cast(),
        )
    })?;
    Ok(collector.finish())
}

/// Opens a driver for a look and describes one of its devices. The driver is asked for the device's
/// properties and for nothing else, which makes no context there.
///
/// # Errors
///
/// Those of [`probe_driver`](crate::probe_driver); [`Status::NoDevice`](crate::Status::NoDevice),
/// [`Status::InvalidDevice`](crate::Status::InvalidDevice), the driver's own; and
/// [`Status::Unsupported`](crate::Status::Unsupported) for `sim` unless the process uses it already.
pub fn probe_device(driver: &str, index: i32) -> Result<DeviceInfo> {
    let driver = c_text("the driver's name", driver)?;
    let mut raw = sys::rdm_device_info {
        struct_size: size_of::<sys::rdm_device_info>() as u32,
        ..Default::default()
    };
    // SAFETY: the text lives until the call returns, and the struct says its size.
    check(unsafe { sys::rdm_probe_device(driver.as_ptr(), index, &mut raw) })?;
    Ok(DeviceInfo {
        index: raw.device_index,
        name: field_text(&raw.name),
        architecture: field_text(&raw.architecture),
        total_memory_bytes: raw.total_memory_bytes,
        multiprocessor_count: raw.multiprocessor_count,
        warp_size: raw.warp_size,
        max_threads_per_block: raw.max_threads_per_block,
        faulted: raw.faulted != 0,
    })
}

extern "C" fn add_node(node: *const sys::rdm_device_node, user_data: *mut c_void) {
    // SAFETY: it is the collector of `device_nodes`, which nobody else uses while the library calls
    // this, and the node lasts until this returns.
    let (collector, node) = unsafe { (&mut *user_data.cast::<Collector<DeviceNode>>(), &*node) };
    collector.add(|| {
        let problem = field_text(&node.problem);
        DeviceNode {
            driver: field_text(&node.driver),
            path: field_text(&node.path).into(),
            found: (node.exists != 0).then(|| FoundNode {
                mode: node.mode,
                owner_id: node.owner_id,
                group_id: node.group_id,
                group: field_text(&node.group),
                problem: (node.accessible == 0).then_some(problem),
            }),
        }
    });
}

/// Each device node that a driver of this build needs. Those whose path has no number are named also
/// where they do not exist. Loads no driver and opens no node.
pub fn device_nodes() -> Result<Vec<DeviceNode>> {
    let mut collector = Collector::new();
    // SAFETY: the function fits the collector, which lives until the call returns.
    check(unsafe {
        sys::rdm_device_nodes(Some(add_node), std::ptr::from_mut(&mut collector).cast())
    })?;
    Ok(collector.finish())
}
