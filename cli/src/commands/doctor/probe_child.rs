//! The child process that looks at one driver: it says what it finds as it finds it, since the next
//! step may be its last.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocm_device_map::{
    Config, Device, DriverInfo, Error, ModuleSource, configure, diagnosis, driver_info,
};

use super::probe::{
    Attempt, CompileReport, DeviceReport, DriverError, MARK, Message, Step, Versions,
};
use crate::output::{Failure, write};

/// Compiled and never run.
const KERNEL: &str = r#"extern "C" __global__ void look(int *out) { *out = 1; }"#;

fn say(message: &Message) -> Result<(), Failure> {
    let text = serde_json::to_string(message)
        .map_err(|error| Failure::new(format!("can not write JSON: {error}")))?;
    write(&format!("{MARK}{text}\n"))
}

pub fn run(driver: &str) -> Result<ExitCode, Failure> {
    say(&Message::Begin(Step::Open))?;
    match open(driver) {
        Ok(info) => {
            let device_count = Device::count()?;
            let compiler_found = !info.compiler_path.is_empty();
            say(&opened(info, device_count))?;
            let architectures = look_at_devices(driver, device_count)?;
            if compiler_found {
                for architecture in architectures {
                    compile(&architecture)?;
                }
            }
            // The compiler may have looked for more libraries.
            say(&Message::Attempts(attempts(driver)?))?;
        }
        Err(error) => say(&Message::Failed(failed(&error)))?,
    }
    say(&Message::Begin(Step::End))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the driver, while a second thread tells what is tried: the opening may not come back.
fn open(driver: &str) -> Result<DriverInfo, Error> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| tell_attempts(driver, &done));
        let info = configure(&Config::new().driver(driver)).and_then(|()| driver_info());
        done.store(true, Ordering::Release);
        info
    })
}

fn tell_attempts(driver: &str, done: &AtomicBool) {
    let mut told = 0;
    loop {
        let is_last = done.load(Ordering::Acquire);
        let attempts = attempts(driver).unwrap_or_default();
        if attempts.len() > told || is_last {
            told = attempts.len();
            let _ = say(&Message::Attempts(attempts));
        }
        if is_last {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

fn attempts(driver: &str) -> Result<Vec<Attempt>, Error> {
    let attempts = diagnosis::attempts(driver)?;
    Ok(attempts
        .into_iter()
        .map(|attempt| Attempt {
            name: attempt.name,
            result: attempt.result,
            used: attempt.is_used,
        })
        .collect())
}

fn failed(error: &Error) -> DriverError {
    DriverError {
        status: error.status().name().to_owned(),
        message: error.to_string(),
        driver_code: error.driver_code(),
    }
}

fn opened(info: DriverInfo, device_count: i32) -> Message {
    Message::Opened {
        device_count,
        runtime_path: info.runtime_path,
        compiler_path: info.compiler_path,
        versions: Versions {
            driver: info.driver_version,
            runtime: info.runtime_version,
            compiler: info
                .compiler_version
                .map(|(major, minor)| format!("{major}.{minor}")),
        },
    }
}

/// Gives the architectures to compile for: those of the devices, else one that the compiler knows.
fn look_at_devices(driver: &str, count: i32) -> Result<Vec<String>, Failure> {
    let mut architectures = Vec::new();
    for index in 0..count {
        say(&Message::Begin(Step::Device(index)))?;
        let device = look_at_device(driver, index);
        if device.error.is_none() && !architectures.contains(&device.architecture) {
            architectures.push(device.architecture.clone());
        }
        say(&Message::Device(device))?;
    }
    if count == 0 {
        let known = match driver {
            "hip" => "gfx90a",
            "cuda" => "sm_80",
            _ => "sim",
        };
        architectures.push(known.to_owned());
    }
    Ok(architectures)
}

fn look_at_device(driver: &str, index: i32) -> DeviceReport {
    let found = diagnosis::probe_device(driver, index);
    let error = found.as_ref().err().map(Error::to_string);
    let info = found.ok();
    let info = info.as_ref();
    DeviceReport {
        index,
        error,
        name: info.map(|info| info.name.clone()).unwrap_or_default(),
        architecture: info
            .map(|info| info.architecture.clone())
            .unwrap_or_default(),
        total_memory_bytes: info.map_or(0, |info| info.total_memory_bytes),
        multiprocessor_count: info.map_or(0, |info| info.multiprocessor_count),
        warp_size: info.map_or(0, |info| info.warp_size),
        max_threads_per_block: info.map_or(0, |info| info.max_threads_per_block),
    }
}

fn compile(architecture: &str) -> Result<(), Failure> {
    say(&Message::Begin(Step::Compile(architecture.to_owned())))?;
    let start = Instant::now();
    let outcome =
        ModuleSource::new("look.hip", KERNEL).and_then(|source| source.code_for(architecture));
    let error = match outcome {
        Ok([]) => Some("the compiler gave no code".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    say(&Message::Compiled(CompileReport {
        architecture: architecture.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        error,
    }))
}
