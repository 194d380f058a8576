//! Kernels compiled at run time.

use std::ffi::{CString, c_char};

use crate::device::Device;
use crate::error::{Result, check};
use crate::runtime::c_text;
use crate::sys;

/// What a module is compiled from. All of it is the module's key: two sources that differ in
/// anything are two modules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleSource {
    name: CString,
    source: CString,
    options: Vec<CString>,
}

impl ModuleSource {
    /// HIP C++ source with `extern "C" __global__` kernels; `name` is shown in the compiler's
    /// messages.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidArgument`](crate::Status::InvalidArgument) where a text holds a NUL
    /// character.
    pub fn new(name: &str, source: &str) -> Result<Self> {
        Ok(Self {
            name: c_text("the module's name", name)?,
            source: c_text("the module's source", source)?,
            options: Vec::new(),
        })
    }

    /// One more option for the run-time compiler, besides the architecture.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn option(mut self, option: &str) -> Result<Self> {
        self.options.push(c_text("the compiler's option", option)?);
        Ok(self)
    }
}

/// Kernels compiled at run time and loaded on one device.
///
/// A module is a checked handle that is valid for the life of the process; any thread may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    raw: sys::rdm_module,
}

impl Module {
    /// The module for this device and source, compiled and loaded by the first call.
    ///
    /// Threads that ask for the same one wait for one compile; a module that is there is never
    /// delayed by another's compile.
    ///
    /// # Errors
    ///
    /// [`Status::Compile`](crate::Status::Compile) with the tail of the compiler's log. Then nothing
    /// is kept, and the next call tries again.
    pub fn get(device: Device, source: &ModuleSource) -> Result<Self> {
        let options: Vec<*const c_char> = source.options.iter().map(|text| text.as_ptr()).collect();
        let raw_source = sys::rdm_module_source {
            struct_size: size_of::<sys::rdm_module_source>() as u32,
            option_count: options.len() as u32,
            name: source.name.as_ptr(),
            source: source.source.as_ptr(),
            options: options.as_ptr(),
        };
        let mut raw = sys::rdm_module::default();
        // SAFETY: the struct says its size, its texts live until the call returns, and the handle is
        // a place to write to.
        check(unsafe { sys::rdm_module_get(device.as_raw(), &raw_source, &mut raw) })?;
        Ok(Self { raw })
    }

    /// A kernel of the module.
    ///
    /// # Errors
    ///
    /// [`Status::KernelNotFound`](crate::Status::KernelNotFound).
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.kernel_with_c_name(&c_text("the kernel's name", name)?)
    }

    /// The same for a name that is a C text already.
    pub fn kernel_with_c_name(&self, name: &std::ffi::CStr) -> Result<Kernel> {
        let mut raw = sys::rdm_kernel::default();
        // SAFETY: the text lives until the call returns, and the handle is a place to write to.
        check(unsafe { sys::rdm_module_get_kernel(self.raw, name.as_ptr(), &mut raw) })?;
        Ok(Kernel { raw })
    }

    /// How many sources were compiled in this process so far, failures counted in.
    pub fn compile_count() -> Result<u64> {
        let mut count = 0;
        // SAFETY: the count is a place to write to.
        check(unsafe { sys::rdm_module_compile_count(&mut count) })?;
        Ok(count)
    }

    /// A module from its raw handle. Any value is safe: a wrong one gets an error when it is used.
    pub fn from_raw(raw: sys::rdm_module) -> Self {
        Self { raw }
    }

    /// The raw handle, lent; it is valid for the life of the process.
    pub fn as_raw(&self) -> sys::rdm_module {
        self.raw
    }
}

/// One kernel of a module. Valid for the life of the process; any thread may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    raw: sys::rdm_kernel,
}

impl Kernel {
    /// A kernel from its raw handle. Any value is safe: a wrong one gets an error when it is used.
    pub fn from_raw(raw: sys::rdm_kernel) -> Self {
        Self { raw }
    }

    /// The raw handle, lent; it is valid for the life of the process.
    pub fn as_raw(&self) -> sys::rdm_kernel {
        self.raw
    }
}
