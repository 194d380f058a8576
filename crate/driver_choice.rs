//! Choosing a driver for a program that shall run everywhere.
//!
//! The library never falls back to simulated GPUs on its own. A program that wants to, such as `rdm`
//! and this crate's tests, says so by calling [`choose_driver`], and says what came of it.

use std::fmt;
use std::sync::Mutex;

use crate::error::{Result, Status};
use crate::runtime::{Config, configure, driver_info, probe_driver};

/// Which driver [`choose_driver`] settled on, and why.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverChoice {
    /// `hip`, `cuda` or `sim`.
    pub driver: String,
    /// Why, as a clause: `RDM_DRIVER asks for it`.
    pub reason: String,
    /// How many devices it has. A real driver that was not asked for by name has at least one.
    pub device_count: i32,
    /// Whether it was asked for by name, with `RDM_DRIVER` or by the program itself.
    pub is_named: bool,
}

impl fmt::Display for DriverChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = match self.device_count {
            1 => "1 device".to_owned(),
            count => format!("{count} devices"),
        };
        write!(
            formatter,
            "driver {} ({devices}): {}",
            self.driver, self.reason
        )
    }
}

/// The real drivers of this build, in the order in which they are tried.
const REAL_DRIVERS: &[&str] = &[
    #[cfg(feature = "rocm")]
    "hip",
    #[cfg(feature = "cuda")]
    "cuda",
];

/// Chooses the process's driver: `RDM_DRIVER` where it is set; else the first real driver of this
/// build that has a GPU; else `sim`.
///
/// To be called before the driver's first use; a driver in use already stays. Later calls, also from
/// other threads, give the first one's answer.
///
/// # Errors
///
/// Those of [`driver_info`] for a driver that was named; then the next call tries again.
pub fn choose_driver() -> Result<DriverChoice> {
    static CHOICE: Mutex<Option<DriverChoice>> = Mutex::new(None);
    let mut kept = CHOICE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(choice) = kept.as_ref() {
        return Ok(choice.clone());
    }
    let choice = choose()?;
    *kept = Some(choice.clone());
    Ok(choice)
}

fn choose() -> Result<DriverChoice> {
    if let Some(named) = std::env::var_os("RDM_DRIVER").filter(|value| !value.is_empty()) {
        return if named == *driver_info()?.name {
            in_use("RDM_DRIVER asks for it", true)
        } else {
            in_use("the program asks for it", true)
        };
    }
    let mut without_gpu = Vec::new();
    for &driver in REAL_DRIVERS {
        match probe_driver(driver) {
            Ok(count) if count > 0 => return use_driver(driver, "it has a GPU".to_owned()),
            Ok(_) => without_gpu.push(format!("{driver} has no GPU here")),
            Err(error) => {
                // The first clause says what is wrong; what was tried would drown the answer.
                let message = error.to_string();
                let clause = message.split(';').next().unwrap_or_default();
                without_gpu.push(format!("{driver} can not be used ({clause})"));
            }
        }
    }
    if without_gpu.is_empty() {
        without_gpu.push("this build has no real driver".to_owned());
    }
    let reason = format!("simulated GPUs, since {}", without_gpu.join(" and "));
    use_driver("sim", reason)
}

fn use_driver(driver: &str, reason: String) -> Result<DriverChoice> {
    match configure(&Config::new().driver(driver)) {
        Ok(()) => in_use(&reason, false),
        Err(error) if error.status() == Status::AlreadyConfigured => {
            in_use("the program was using it already", true)
        }
        Err(error) => Err(error),
    }
}

fn in_use(reason: &str, is_named: bool) -> Result<DriverChoice> {
    Ok(DriverChoice {
        driver: driver_info()?.name,
        reason: reason.to_owned(),
        device_count: crate::Device::count()?,
        is_named,
    })
}
