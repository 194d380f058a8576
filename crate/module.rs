//! Kernels compiled at run time, or ahead of it.

use std::ffi::{CString, c_char};
use std::time::Duration;

use crate::device::Device;
use crate::error::{Result, check};
use crate::runtime::c_text;
use crate::{sys, timeout_ns};

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

impl ModuleSource {
    /// Calls `function` with the source as the C ABI takes it.
    fn with_raw<T>(&self, function: impl FnOnce(&sys::rdm_module_source) -> T) -> T {
        let options: Vec<*const c_char> = self.options.iter().map(|text| text.as_ptr()).collect();
        function(&sys::rdm_module_source {
            struct_size: size_of::<sys::rdm_module_source>() as u32,
            option_count: options.len() as u32,
            name: self.name.as_ptr(),
            source: self.source.as_ptr(),
            options: options.as_ptr(),
        })
    }

    /// The code of this source for an architecture such as `gfx1100`, `sm_90` or `sim`: compiled by
    /// the driver's run-time compiler, unless this process or the [cache on disk](crate::cache) has
    /// it. Needs no device.
    ///
    /// ```
    /// use rocm_device_map::{Config, ModuleSource, configure};
    ///
    /// # // SAFETY: no other thread runs yet.
    /// # unsafe { std::env::set_var("RDM_CACHE_DIR", "") };
    /// configure(&Config::new().driver("sim"))?;
    /// let source = ModuleSource::new("fill.hip", r#"
    ///     extern "C" __global__ void fill(float *out, float value) { out[threadIdx.x] = value; }
    /// "#)?;
    /// let code = source.code_for("sim")?;
    /// assert!(!code.is_empty());
    /// // Kept for the life of the process: the second call compiles nothing.
    /// assert!(std::ptr::eq(code, source.code_for("sim")?));
    /// # Ok::<(), rocm_device_map::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Status::Compile`](crate::Status::Compile) with the tail of the compiler's log; the errors of
    /// [`driver_info`](crate::driver_info).
    pub fn code_for(&self, architecture: &str) -> Result<&'static [u8]> {
        self.code_for_within(architecture, None)
    }

    /// The same, with another thread's compile of this source waited for at most `timeout`; none:
    /// without end. What no other thread is compiling the call compiles itself, which takes as long
    /// as it takes.
    ///
    /// # Errors
    ///
    /// As [`code_for`](Self::code_for), and [`Status::Timeout`](crate::Status::Timeout) or
    /// [`Status::Watchdog`](crate::Status::Watchdog), with the compile going on.
    pub fn code_for_within(
        &self,
        architecture: &str,
        timeout: Option<Duration>,
    ) -> Result<&'static [u8]> {
        let architecture = c_text("the architecture", architecture)?;
        let mut code = std::ptr::null();
        let mut size = 0;
        let status = self.with_raw(|raw| {
            // SAFETY: the texts live until the call returns, and both places can be written to.
            unsafe {
                sys::rdm_code_get_within(
                    architecture.as_ptr(),
                    raw,
                    timeout_ns(timeout),
                    &mut code,
                    &mut size,
                )
            }
        });
        check(status)?;
        // SAFETY: on success the code has that many bytes, which stay and do not change for the life
        // of the process.
        Ok(unsafe { std::slice::from_raw_parts(code.cast(), size) })
    }
}

/// Kernels loaded on one device: compiled at run time, or ahead of it.
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
        let mut raw = sys::rdm_module::default();
        let status = source.with_raw(|source| {
            // SAFETY: the struct says its size, its texts live until the call returns, and the handle
            // is a place to write to.
            unsafe { sys::rdm_module_get(device.as_raw(), source, &mut raw) }
        });
        check(status)?;
        Ok(Self { raw })
    }

    /// The same, with another thread's build of that module waited for at most `timeout`; none:
    /// without end. What no other thread is building the call builds itself, which takes as long as
    /// it takes.
    ///
    /// # Errors
    ///
    /// As [`Module::get`], and [`Status::Timeout`](crate::Status::Timeout) or
    /// [`Status::Watchdog`](crate::Status::Watchdog), with the build going on.
    pub fn get_within(
        device: Device,
        source: &ModuleSource,
        timeout: Option<Duration>,
    ) -> Result<Self> {
        let mut raw = sys::rdm_module::default();
        let status = source.with_raw(|source| {
            // SAFETY: as in `get`.
            unsafe {
                sys::rdm_module_get_within(device.as_raw(), source, timeout_ns(timeout), &mut raw)
            }
        });
        check(status)?;
        Ok(Self { raw })
    }

    /// Loads code that was compiled elsewhere, anew at each call: keep the module. `name` is for
    /// messages. The code is copied or read before the call returns.
    ///
    /// ```
    /// use rocm_device_map::{Config, Device, Module, ModuleSource, configure};
    ///
    /// # // SAFETY: no other thread runs yet.
    /// # unsafe { std::env::set_var("RDM_CACHE_DIR", "") };
    /// configure(&Config::new().driver("sim"))?;
    /// // As a build step would have done it.
    /// let code = ModuleSource::new("fill.hip", r#"
    ///     extern "C" __global__ void fill(float *out, float value) { out[threadIdx.x] = value; }
    /// "#)?.code_for("sim")?;
    ///
    /// // SAFETY: the code comes from the driver's own compiler.
    /// let module = unsafe { Module::load(Device::get(0)?, "fill", code)? };
    /// let kernel = module.kernel("fill")?;
    /// # let _ = kernel;
    /// # Ok::<(), rocm_device_map::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The driver's own for an image that it can not load; the handle errors.
    ///
    /// # Safety
    ///
    /// The code is a whole code object. A driver may read past the end of one that is cut short, and
    /// `sim` runs what is in it in this process.
    pub unsafe fn load(device: Device, name: &str, code: &[u8]) -> Result<Self> {
        let name = c_text("the module's name", name)?;
        let mut raw = sys::rdm_module::default();
        // SAFETY: the text and the bytes live until the call returns, and the handle is a place to
        // write to. The caller promises the rest.
        check(unsafe {
            sys::rdm_module_load(
                device.as_raw(),
                name.as_ptr(),
                code.as_ptr().cast(),
                code.len(),
                &mut raw,
            )
        })?;
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

    /// How many sources were not compiled since the [cache on disk](crate::cache) had their code.
    pub fn disk_hit_count() -> Result<u64> {
        let mut count = 0;
        // SAFETY: the count is a place to write to.
        check(unsafe { sys::rdm_module_disk_hit_count(&mut count) })?;
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
