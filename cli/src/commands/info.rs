//! `rdm info`: the driver and its devices.

use std::process::ExitCode;

use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use rocm_device_map::{Device, DeviceInfo, DriverInfo, driver_info, version};
use serde::Serialize;

use crate::output::{Failure, choose_and_tell, write, write_json};

/// Shows the driver and its devices.
///
/// Looking at a device builds its state, which touches that GPU: with --device, no other one.
#[derive(clap::Args)]
pub struct Arguments {
    /// Look at this device alone, by its index
    #[arg(long, value_name = "INDEX", allow_negative_numbers = true)]
    device: Option<i32>,
    /// Print one JSON object to standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    driver: DriverReport,
    devices: Vec<DeviceReport>,
}

#[derive(Serialize)]
struct DriverReport {
    name: String,
    reason: String,
    device_count: i32,
    driver_version: Option<i32>,
    runtime_version: Option<i32>,
    compiler_version: Option<String>,
    runtime_path: String,
    compiler_path: String,
}

#[derive(Serialize)]
struct DeviceReport {
    index: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    found: Option<FoundDevice>,
}

#[derive(Serialize)]
struct FoundDevice {
    name: String,
    architecture: String,
    total_memory_bytes: u64,
    multiprocessor_count: i32,
    warp_size: i32,
    max_threads_per_block: i32,
    faulted: bool,
}

impl From<DeviceInfo> for FoundDevice {
    fn from(info: DeviceInfo) -> Self {
        Self {
            name: info.name,
            architecture: info.architecture,
            total_memory_bytes: info.total_memory_bytes,
            multiprocessor_count: info.multiprocessor_count,
            warp_size: info.warp_size,
            max_threads_per_block: info.max_threads_per_block,
            faulted: info.faulted,
        }
    }
}

fn look_at(index: i32) -> DeviceReport {
    match Device::get(index).and_then(|device| device.info()) {
        Ok(info) => DeviceReport {
            index,
            error: None,
            found: Some(info.into()),
        },
        Err(error) => DeviceReport {
            index,
            error: Some(error.to_string()),
            found: None,
        },
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let choice = choose_and_tell(arguments.json)?;
    let count = choice.device_count;
    let indices = match arguments.device {
        None => 0..count,
        Some(index) if (0..count).contains(&index) => index..index + 1,
        Some(index) => return Err(no_such_device(index, &choice.driver, count)),
    };
    let driver = driver_info()?;
    let report = Report {
        version: version(),
        driver: describe(driver, choice.reason, count),
        devices: indices.map(look_at).collect(),
    };
    if arguments.json {
        write_json(&report)?;
    } else {
        write(&tables(&report))?;
    }
    let failed = report.devices.iter().any(|device| device.error.is_some());
    Ok(ExitCode::from(u8::from(failed)))
}

fn no_such_device(index: i32, driver: &str, count: i32) -> Failure {
    Failure::usage(match count {
        0 => format!("--device is {index}, and the driver {driver} has no device"),
        1 => format!("--device is {index}; the driver {driver} has one device, with index 0"),
        _ => format!(
            "--device is {index}; the driver {driver} has devices 0 to {}",
            count - 1
        ),
    })
}

fn describe(info: DriverInfo, reason: String, device_count: i32) -> DriverReport {
    DriverReport {
        name: info.name,
        reason,
        device_count,
        driver_version: info.driver_version,
        runtime_version: info.runtime_version,
        compiler_version: info
            .compiler_version
            .map(|(major, minor)| format!("{major}.{minor}")),
        runtime_path: info.runtime_path,
        compiler_path: info.compiler_path,
    }
}

fn or_none(number: Option<i32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table
}

fn tables(report: &Report) -> String {
    let driver = &report.driver;
    let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let mut about = table();
    about.add_row(["library", report.version]);
    for (name, value) in [
        ("driver", driver.name.clone()),
        ("driver version", or_none(driver.driver_version)),
        ("runtime version", or_none(driver.runtime_version)),
        ("runtime", or_dash(&driver.runtime_path)),
        (
            "compiler version",
            or_dash(driver.compiler_version.as_deref().unwrap_or("")),
        ),
        ("compiler", or_dash(&driver.compiler_path)),
        ("devices", driver.device_count.to_string()),
    ] {
        about.add_row([name, &value]);
    }
    let mut text = format!("{about}\n");
    if report.devices.is_empty() {
        return text;
    }
    let mut devices = table();
    devices.set_header([
        "index",
        "name",
        "architecture",
        "memory",
        "multiprocessors",
        "warp",
        "block",
        "state",
    ]);
    for device in &report.devices {
        devices.add_row(row(device));
    }
    text.push_str(&format!("{devices}\n"));
    text
}

fn row(device: &DeviceReport) -> Vec<String> {
    let index = device.index.to_string();
    let Some(found) = &device.found else {
        let error = device.error.clone().unwrap_or_default();
        let mut row = vec![index];
        row.extend(std::iter::repeat_n("-".to_owned(), 6));
        row.push(error);
        return row;
    };
    vec![
        index,
        found.name.clone(),
        found.architecture.clone(),
        memory(found.total_memory_bytes),
        found.multiprocessor_count.to_string(),
        found.warp_size.to_string(),
        found.max_threads_per_block.to_string(),
        if found.faulted { "faulted" } else { "ok" }.to_owned(),
    ]
}

fn memory(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1u32 << 30))
}
