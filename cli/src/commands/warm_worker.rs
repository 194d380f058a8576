//! `rdm warm-worker`: one of the processes in which `rdm warm` compiles.
//!
//! AMD's compiler does one thing at a time in a process, and one that crashes takes its process with
//! it; so there are several. A worker reads jobs, one JSON object a line, and answers each in the same
//! way.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Instant;

use rocm_device_map::{Config, Module, ModuleSource, configure};
use serde::{Deserialize, Serialize};

use crate::output::Failure;

/// Compiles what `rdm warm` hands over.
#[derive(clap::Args)]
pub struct Arguments {
    /// The driver whose compiler it is
    driver: String,
}

/// One source for one architecture.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    /// The module's name, as the program will give it.
    pub name: String,
    pub source: String,
    pub options: Vec<String>,
    pub architecture: String,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Compiled {
        code_bytes: usize,
    },
    /// The cache had it.
    Found {
        code_bytes: usize,
    },
    Failed {
        error: String,
    },
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    pub outcome: Outcome,
    pub seconds: f64,
}

fn compile(job: &Job) -> rocm_device_map::Result<Outcome> {
    let mut source = ModuleSource::new(&job.name, &job.source)?;
    for option in &job.options {
        source = source.option(option)?;
    }
    let found_before = Module::disk_hit_count()?;
    let code_bytes = source.code_for(&job.architecture)?.len();
    Ok(if Module::disk_hit_count()? > found_before {
        Outcome::Found { code_bytes }
    } else {
        Outcome::Compiled { code_bytes }
    })
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    configure(&Config::new().driver(&arguments.driver))?;
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::new(format!("can not read a job: {error}")))?;
        let job: Job = serde_json::from_str(&line)
            .map_err(|error| Failure::new(format!("this is no job: {error}")))?;
        let start = Instant::now();
        let outcome = compile(&job).unwrap_or_else(|error| Outcome::Failed {
            error: error.to_string(),
        });
        let answer = Answer {
            outcome,
            seconds: start.elapsed().as_secs_f64(),
        };
        let text = serde_json::to_string(&answer)
            .map_err(|error| Failure::new(format!("can not write JSON: {error}")))?;
        let written = writeln!(output, "{text}").and_then(|()| output.flush());
        if written.is_err() {
            // Whoever asked has gone, and nobody wants the rest.
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
