//! `rdm`: looks at the GPUs of this machine and stresses the device map on them.
//!
//! Exit codes: 0, all is well; 1, something failed or was wrong; 2, the command line is not right.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Looks at the GPUs of this machine and stresses the device map on them.
///
/// The driver is RDM_DRIVER (hip, cuda or sim) where it is set; else a real one that has a GPU; else
/// sim, which simulates GPUs. The first line of the output says which.
#[derive(Parser)]
#[command(name = "rdm", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(commands::bench::Arguments),
    #[command(hide = true)]
    BenchWorker(commands::bench_worker::Arguments),
    Cache(commands::cache::Arguments),
    Doctor(commands::doctor::Arguments),
    Info(commands::info::Arguments),
    Stress(commands::stress::Arguments),
    Warm(commands::warm::Arguments),
    #[command(hide = true)]
    WarmWorker(commands::warm_worker::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::BenchWorker(arguments) => commands::bench_worker::run(arguments),
        Command::Cache(arguments) => commands::cache::run(arguments),
        Command::Doctor(arguments) => commands::doctor::run(arguments),
        Command::Info(arguments) => commands::info::run(arguments),
        Command::Stress(arguments) => commands::stress::run(arguments),
        Command::Warm(arguments) => commands::warm::run(arguments),
        Command::WarmWorker(arguments) => commands::warm_worker::run(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            ExitCode::from(failure.exit_code)
        }
    }
}
