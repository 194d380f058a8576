//! `rdm bench-worker`: a fresh process in which `rdm bench` first uses a device.

use std::process::ExitCode;

use rocm_device_map_benches::first_use;

use crate::output::{Failure, write};
use rocm_device_map::choose_driver;

/// First uses a device on many threads at once, and prints the nanoseconds until all have it.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many threads
    #[arg(long)]
    threads: u32,
    /// Which device
    #[arg(long)]
    device: i32,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Loads the driver, which is no part of a device's first use.
    choose_driver()?;
    let time = first_use(arguments.threads, arguments.device).map_err(Failure::new)?;
    write(&format!("{}\n", time.as_nanos()))?;
    Ok(ExitCode::SUCCESS)
}
