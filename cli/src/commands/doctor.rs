//! `rdm doctor`: what keeps GPUs from being used here, and what to do.
//!
//! Each driver is opened in a child process, so that a runtime that crashes or hangs is a finding
//! like any other. Devices are described and not built.

mod advice;
mod environment;
mod machine;
mod masks;
mod probe;
mod probe_child;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use rocm_device_map::version;
use serde::Serialize;

use crate::output::{Failure, write, write_json};
use advice::{Problem, advise};
use environment::{Environment, Variable};
use machine::{Cache, Gpu, Limits, Permission, User};
use probe::DriverReport;

/// Looks for what keeps GPUs from being used here, and says what to do.
///
/// Exit code 0: a process started here can use a GPU, or RDM_DRIVER=sim asks for simulated ones and
/// they can be used. 1: it can not, and each problem has its remedy.
///
/// Each driver is opened in a process of its own. Devices are described from their properties: nothing
/// makes a context on any GPU.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON object to standard output
    #[arg(long)]
    json: bool,
    /// Give a driver up that has not answered after this many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    timeout: u64,
    /// Be the child process that looks at one driver
    #[arg(long, hide = true, value_name = "DRIVER")]
    probe: Option<String>,
}

/// What was found. docs/doctor.md describes the JSON form.
#[derive(Serialize)]
pub struct Report {
    version: &'static str,
    healthy: bool,
    /// The driver that a process started here would use.
    uses: Option<String>,
    problems: Vec<Problem>,
    #[serde(flatten)]
    facts: Facts,
}

#[derive(Serialize)]
pub struct Facts {
    drivers: Vec<DriverReport>,
    /// None where the kernel does not tell.
    hardware: Option<Vec<Gpu>>,
    variables: Vec<Variable>,
    permissions: Vec<Permission>,
    user: User,
    cache: Cache,
    limits: Limits,
}

impl Facts {
    fn driver(&self, name: &str) -> Option<&DriverReport> {
        self.drivers.iter().find(|driver| driver.name == name)
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables
            .iter()
            .find(|variable| variable.name == name && variable.value.is_some())
    }

    /// A variable's value where it is set and not empty.
    fn value(&self, name: &str) -> Option<&str> {
        self.variable(name)
            .and_then(|variable| variable.value.as_deref())
            .filter(|value| !value.is_empty())
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(driver) = &arguments.probe {
        return probe_child::run(driver);
    }
    let report = examine(Duration::from_secs(arguments.timeout))?;
    if arguments.json {
        write_json(&report)?;
    } else {
        write(&text::page(&report))?;
    }
    Ok(ExitCode::from(u8::from(!report.healthy)))
}

fn examine(timeout: Duration) -> Result<Report, Failure> {
    let drivers = probe::look_at_all(timeout);
    let environment = Environment::of_this_process();
    let facts = Facts {
        variables: environment.variables(&drivers),
        drivers,
        hardware: machine::gpus(),
        permissions: machine::permissions()?,
        user: machine::user(),
        cache: machine::cache()?,
        limits: machine::limits(),
    };
    let advice = advise(&facts);
    Ok(Report {
        version: version(),
        healthy: advice.is_healthy(),
        uses: advice.uses,
        problems: advice.problems,
        facts,
    })
}
