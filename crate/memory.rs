//! Device memory and pinned host memory.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::device::Device;
use crate::error::{Error, Result, Status, check};
use crate::sys;

fn not_null(pointer: *mut c_void) -> Result<NonNull<c_void>> {
    NonNull::new(pointer)
        .ok_or_else(|| Error::new(Status::OutOfMemory, "the driver gave a null pointer"))
}

/// Memory of one device, freed when dropped.
///
/// Dropping it while the device still uses it is for the driver to sort out: `hipFree` waits for the
/// device. On a faulted device, and once the process exits, a drop does nothing.
#[derive(Debug)]
pub struct DeviceMemory {
    device: Device,
    pointer: NonNull<c_void>,
    size_bytes: usize,
}

// SAFETY: the pointer is an address on the device, which this type never reads or writes through.
unsafe impl Send for DeviceMemory {}
// SAFETY: as for Send; a shared reference only tells the address and the size.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Allocates memory on a device, aligned to at least 256 bytes.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidArgument`] for a size of 0, [`Status::OutOfMemory`], the driver's.
    pub fn new(device: Device, size_bytes: usize) -> Result<Self> {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the pointer is a place to write to.
        check(unsafe { sys::rdm_memory_allocate(device.as_raw(), size_bytes, &mut pointer) })?;
        Ok(Self {
            device,
            pointer: not_null(pointer)?,
            size_bytes,
        })
    }

    /// The address on the device. Not to be read or written by the host.
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer.as_ptr()
    }

    /// How large it is.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The device that it is on.
    pub fn device(&self) -> Device {
        self.device
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the memory came from this device and is freed once. A failure is kept by the
        // library, for `take_unattributed_error`.
        unsafe { sys::rdm_memory_free(self.device.as_raw(), self.pointer.as_ptr()) };
    }
}

/// Pinned host memory that a device can read and write, freed when dropped.
///
/// Its owner must not drop it, or read or write it, while the device still uses it.
#[derive(Debug)]
pub struct HostMemory {
    device: Device,
    pointer: NonNull<c_void>,
    size_bytes: usize,
}

// SAFETY: the memory has one owner and is not bound to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: a shared reference only tells the address and the size; access is through unsafe code.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates pinned host memory for use with a device. Its content is not defined.
    ///
    /// # Errors
    ///
    /// As [`DeviceMemory::new`].
    pub fn new(device: Device, size_bytes: usize) -> Result<Self> {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the pointer is a place to write to.
        check(unsafe { sys::rdm_host_memory_allocate(device.as_raw(), size_bytes, &mut pointer) })?;
        Ok(Self {
            device,
            pointer: not_null(pointer)?,
            size_bytes,
        })
    }

    /// The address, good for the host and the device.
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer.as_ptr()
    }

    /// How large it is.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The device that it was allocated for.
    pub fn device(&self) -> Device {
        self.device
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: as for DeviceMemory.
        unsafe { sys::rdm_host_memory_free(self.device.as_raw(), self.pointer.as_ptr()) };
    }
}
