//! What the commands share: how they fail, and where their output goes.

use std::io::{self, Write};

use rocm_device_map::{DriverChoice, choose_driver};
use serde::Serialize;

/// A command that ends without a result.
pub struct Failure {
    pub message: String,
    pub exit_code: u8,
}

impl Failure {
    /// The command line asks for what can not be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: 2,
        }
    }

    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: 1,
        }
    }
}

impl From<rocm_device_map::Error> for Failure {
    fn from(error: rocm_device_map::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Writes to standard output. A reader that has gone away wants no more, which is no failure.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("can not write the output: {error}")))
        }
        _ => Ok(()),
    }
}

pub fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("can not write JSON: {error}")))?;
    write(&format!("{text}\n"))
}

/// Chooses the driver and says which it is, on standard error where standard output is for JSON.
pub fn choose_and_tell(json: bool) -> Result<DriverChoice, Failure> {
    let choice = choose_driver()?;
    if json {
        eprintln!("{choice}");
    } else {
        write(&format!("{choice}\n"))?;
    }
    Ok(choice)
}
