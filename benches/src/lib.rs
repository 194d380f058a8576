//! What the device map costs, beside the designs that it replaces, measured in one run.
//!
//! Every design is a loop that threads start together. Each round runs all designs of a set one after
//! the other, and the next round in the opposite order, so that what drifts on the machine drifts for
//! all of them. A ratio is the median of the rounds' own ratios, and is not given where its spread is
//! larger than its effect.

mod c_design;
mod check;
mod disturbance;
mod evaluation;
mod first_use;
mod measure;
mod modules;
mod plan;
mod plot;
mod report;
mod statistics;

use std::process::Command;
use std::time::Duration;

pub use check::Check;
pub use first_use::first_use;
pub use plan::Group;
pub use plot::svg;
pub use report::{Chart, Report, Row, Series};

/// What to measure, and how long.
pub struct Options<'a> {
    /// What to measure, in this order.
    pub groups: Vec<Group>,
    /// Numbers of threads, in this order.
    pub threads: Vec<u32>,
    /// How often each design is measured.
    pub rounds: u32,
    /// About how long one design runs in one round.
    pub round_time: Duration,
    /// The device that is used.
    pub device_index: i32,
    /// The name of the driver, and what the device is called, for the report.
    pub driver: String,
    /// What the device is called.
    pub device: String,
    /// A fresh process that calls [`first_use`] with so many threads, and prints the nanoseconds.
    pub first_use_process: &'a dyn Fn(u32) -> Command,
}

/// What is told while it is measured.
pub trait Progress {
    /// So many steps there are in all.
    fn begin(&mut self, steps: u64);
    /// One more step is done, of this.
    fn step(&mut self, what: &str);
}

/// Measures all of it.
///
/// # Errors
///
/// What a design reports, such as a driver's error or a wrong element.
pub fn run(options: &Options<'_>, progress: &mut dyn Progress) -> Result<Report, String> {
    let steps = options.groups.iter().map(|group| group.steps(options));
    progress.begin(steps.sum());
    let mut report = Report::default();
    for &group in &options.groups {
        match group {
            Group::Modules => modules::run(options, progress, &mut report)?,
            Group::FirstUse => first_use::run(options, progress, &mut report)?,
            Group::Lookups | Group::Events | Group::Launch | Group::Evaluations => {
                for set in group.sets() {
                    set.run(options, progress, &mut report)?;
                }
            }
        }
    }
    Ok(report)
}
