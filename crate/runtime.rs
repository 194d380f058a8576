//! Which driver the process uses, and what it is.

use std::ffi::CString;

use crate::error::{Error, Result, Status, check, field_text, static_text};
use crate::sys;

/// The version of the C library that runs, such as `0.1.0`. Makes no driver call.
pub fn version() -> &'static str {
    // SAFETY: the text has static storage.
    unsafe { static_text(sys::rdm_version_string()) }
}

/// What [`configure`] sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    driver: Option<String>,
    sim_device_count: u8,
}

impl Config {
    /// The defaults: `RDM_DRIVER` where it is set, else the real drivers that are built in, in the
    /// order `hip`, `cuda`. Never `sim`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this driver: `hip`, `cuda` or `sim`.
    pub fn driver(mut self, name: impl Into<String>) -> Self {
        self.driver = Some(name.into());
        self
    }

    /// How many GPUs `sim` simulates, at most 64; 0: `RDM_SIM_DEVICES`, else 2. Other drivers ignore it.
    pub fn sim_device_count(mut self, count: u8) -> Self {
        self.sim_device_count = count;
        self
    }
}

/// Sets what the process uses, before anything else has used the driver. Loads nothing and makes no
/// driver call.
///
/// # Errors
///
/// [`Status::AlreadyConfigured`] once the driver is chosen, [`Status::UnknownDriver`],
/// [`Status::InvalidArgument`].
pub fn configure(config: &Config) -> Result<()> {
    let driver = config
        .driver
        .as_deref()
        .map(|name| c_text("the driver's name", name))
        .transpose()?;
    let raw = sys::rdm_config {
        struct_size: size_of::<sys::rdm_config>() as u32,
        driver: driver
            .as_ref()
            .map_or(std::ptr::null(), |name| name.as_ptr()),
        sim_device_count: config.sim_device_count.into(),
    };
    // SAFETY: the struct says its size and its text lives until the call returns.
    check(unsafe { sys::rdm_configure(&raw) })
}

/// The driver that the process uses.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// `hip`, `cuda` or `sim`.
    pub name: String,
    /// The driver's own version number, where it has one.
    pub driver_version: Option<i32>,
    /// The runtime's own version number, where it has one.
    pub runtime_version: Option<i32>,
    /// The run-time compiler's version as (major, minor), where there is a compiler.
    pub compiler_version: Option<(i32, i32)>,
    /// The file that the runtime was loaded from. Empty for `sim`.
    pub runtime_path: String,
    /// The file that the run-time compiler was loaded from, or the compiler program of `sim`.
    pub compiler_path: String,
}

/// Describes the driver, loading it if this is its first use. Touches no device.
///
/// # Errors
///
/// [`Status::NoDriver`], [`Status::UnknownDriver`], [`Status::DriverVersion`],
/// [`Status::Permission`]. A host whose driver works and has no device is no error here.
pub fn driver_info() -> Result<DriverInfo> {
    let mut raw = sys::rdm_driver_info {
        struct_size: size_of::<sys::rdm_driver_info>() as u32,
        ..Default::default()
    };
    // SAFETY: the struct says its size.
    check(unsafe { sys::rdm_get_driver_info(&mut raw) })?;
    let known = |version: i32| (version != 0).then_some(version);
    Ok(DriverInfo {
        name: field_text(&raw.name),
        driver_version: known(raw.driver_version),
        runtime_version: known(raw.runtime_version),
        compiler_version: known(raw.compiler_version)
            .map(|version| (version / 1000, version % 1000)),
        runtime_path: field_text(&raw.runtime_path),
        compiler_path: field_text(&raw.compiler_path),
    })
}

/// Opens a driver by name for a look, without making it the process's own, and gives how many
/// devices it has. Touches no device; the driver's library may stay loaded.
///
/// # Errors
///
/// As [`driver_info`], for that driver.
pub fn probe_driver(name: &str) -> Result<i32> {
    let name = c_text("the driver's name", name)?;
    let mut count = 0;
    // SAFETY: the text lives until the call returns, and the count is a place to write to.
    check(unsafe { sys::rdm_probe_driver(name.as_ptr(), &mut count) })?;
    Ok(count)
}

/// A text for the C ABI.
pub(crate) fn c_text(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| {
        Error::new(
            Status::InvalidArgument,
            format!(
                "{what} holds a NUL character at byte {}",
                error.nul_position()
            ),
        )
    })
}
