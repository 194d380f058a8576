//! From what was found to what is wrong, how much it matters, and what to do.

mod driver;
mod settings;
mod sim;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::Facts;
use super::probe::DriverReport;

#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It keeps a process started here from using a GPU, or the simulated ones that it asks for.
    Error,
    Warning,
}

#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Problem {
    /// A stable name; docs/doctor.md lists them.
    pub id: String,
    pub severity: Severity,
    pub what: String,
    pub remedy: String,
}

pub struct Advice {
    pub uses: Option<String>,
    pub problems: Vec<Problem>,
}

impl Advice {
    pub fn is_healthy(&self) -> bool {
        !has_error(&self.problems)
    }
}

fn has_error(problems: &[Problem]) -> bool {
    problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
}

/// A problem whose severity depends on what else was found.
struct Finding {
    id: String,
    what: String,
    remedy: String,
}

impl Finding {
    fn new(id: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    fn of(self, severity: Severity) -> Problem {
        Problem {
            id: self.id,
            severity,
            what: self.what,
            remedy: self.remedy,
        }
    }
}

const REAL_DRIVERS: [&str; 2] = ["hip", "cuda"];
const USE_SIM: &str = "simulated GPUs need none: RDM_DRIVER=sim";

pub fn advise(facts: &Facts) -> Advice {
    let asked = facts.value("RDM_DRIVER");
    let uses = match asked {
        Some(name) => is_built_in(facts, name).then_some(name),
        None => first_choice(facts),
    };
    let usable = uses
        .and_then(|name| facts.driver(name))
        .is_some_and(is_usable);
    let mut problems = Vec::new();
    if let Some(name) = asked.filter(|name| !is_built_in(facts, name)) {
        problems.push(wrong_choice(facts, name).of(Severity::Error));
    }
    if asked == Some("sim") {
        problems.extend(
            sim::findings(facts)
                .into_iter()
                .map(|finding| finding.of(error_unless(usable))),
        );
    } else {
        problems.extend(of_real_drivers(facts, asked, uses, usable));
    }
    problems.extend(
        settings::findings(facts, asked, usable)
            .into_iter()
            .map(|finding| finding.of(Severity::Warning)),
    );
    if !usable && !has_error(&problems) {
        problems.push(unexplained(uses).of(Severity::Error));
    }
    // What keeps a GPU from being used comes first; the rest stays in its order.
    problems.sort_by_key(|problem| problem.severity);
    Advice {
        uses: uses.map(str::to_owned),
        problems,
    }
}

fn error_unless(usable: bool) -> Severity {
    if usable {
        Severity::Warning
    } else {
        Severity::Error
    }
}

/// The driver that a process takes that asks for none: the first real one with a device, else the
/// first that opens. One that crashes or hangs takes the process with it.
fn first_choice(facts: &Facts) -> Option<&str> {
    let real = REAL_DRIVERS
        .iter()
        .filter_map(|name| facts.driver(name))
        .filter(|driver| driver.built_in);
    let mut without_device = None;
    for driver in real {
        if driver::is_deadly(driver) {
            return None;
        }
        if !driver.opened {
            continue;
        }
        if driver.device_count.unwrap_or(0) > 0 {
            return Some(&driver.name);
        }
        without_device = without_device.or(Some(driver.name.as_str()));
    }
    without_device
}

/// It has a device whose properties can be read and for whose architecture it compiles.
fn is_usable(driver: &DriverReport) -> bool {
    driver.opened
        && !driver::is_deadly(driver)
        && driver.devices.iter().any(|device| {
            device.error.is_none()
                && driver.compiles.iter().any(|compile| {
                    compile.architecture == device.architecture && compile.error.is_none()
                })
        })
}

/// Without a cause that is known here a process still can not compute.
fn unexplained(uses: Option<&str>) -> Finding {
    Finding::new(
        "no_usable_device",
        match uses {
            Some(name) => format!("the driver {name} has no device that can be used"),
            None => "no driver has a device that can be used".to_owned(),
        },
        "see what was found of each driver",
    )
}

fn is_built_in(facts: &Facts, name: &str) -> bool {
    facts.driver(name).is_some_and(|driver| driver.built_in)
}

fn wrong_choice(facts: &Facts, name: &str) -> Finding {
    if REAL_DRIVERS.contains(&name) {
        return Finding::new(
            "driver_not_built_in",
            format!("RDM_DRIVER asks for {name}, which this build does not have"),
            format!(
                "build with the feature {}, or unset RDM_DRIVER",
                driver::feature(name)
            ),
        );
    }
    let built_in: Vec<&str> = facts
        .drivers
        .iter()
        .filter(|driver| driver.built_in)
        .map(|driver| driver.name.as_str())
        .collect();
    Finding::new(
        "driver_unknown",
        format!("RDM_DRIVER is \"{name}\", and there is no such driver"),
        format!("unset it, or set it to one of {}", built_in.join(", ")),
    )
}

/// Whether the machine shows a GPU of the driver's vendor, on its bus, by a device node or through the
/// driver itself.
fn has_evidence(facts: &Facts, driver: &str) -> bool {
    let vendor = driver::vendor(driver);
    if facts
        .driver(driver)
        .is_some_and(|driver| driver.device_count.unwrap_or(0) > 0)
    {
        return true;
    }
    let on_bus = facts
        .hardware
        .iter()
        .flatten()
        .any(|gpu| gpu.vendor == vendor);
    on_bus
        || facts
            .permissions
            .iter()
            .any(|node| node.driver == driver && node.exists)
}

fn of_real_drivers(
    facts: &Facts,
    asked: Option<&str>,
    uses: Option<&str>,
    usable: bool,
) -> Vec<Problem> {
    let any_evidence = REAL_DRIVERS.iter().any(|name| has_evidence(facts, name));
    let mut problems = Vec::new();
    let looks_for_one = match asked {
        Some(name) => is_built_in(facts, name),
        None => REAL_DRIVERS.iter().any(|name| is_built_in(facts, name)),
    };
    if looks_for_one && !usable && !any_evidence {
        problems.extend(no_gpu(facts).map(|finding| finding.of(Severity::Error)));
    }
    if let Some(name) = asked.filter(|name| !usable && is_built_in(facts, name)) {
        problems.extend(other_vendor(facts, name).map(|finding| finding.of(Severity::Error)));
    }
    let mut told = false;
    for name in REAL_DRIVERS {
        let Some(driver) = facts.driver(name) else {
            continue;
        };
        if asked.is_some_and(|asked| asked != name) {
            continue;
        }
        let evidence = has_evidence(facts, name);
        if !driver.built_in {
            if asked.is_none() && evidence && !usable {
                problems.push(not_built_in(name).of(Severity::Error));
            }
            continue;
        }
        told = true;
        let deadly = driver::is_deadly(driver);
        // With another vendor's GPU in sight, or another driver at work, this one is not missed.
        let matters = asked.is_some()
            || deadly
            || evidence
            || (usable && uses == Some(name))
            || (!usable && !any_evidence);
        if matters {
            let severity = if deadly {
                Severity::Error
            } else {
                error_unless(usable)
            };
            problems.extend(
                driver::findings(facts, driver)
                    .into_iter()
                    .map(|finding| finding.of(severity)),
            );
        }
    }
    if !told && asked.is_none() && problems.is_empty() {
        problems.push(
            Finding::new(
                "no_real_driver",
                "this build has no driver for real GPUs",
                format!("build with the feature rocm or cuda; {USE_SIM}"),
            )
            .of(Severity::Error),
        );
    }
    problems
}

fn not_built_in(name: &str) -> Finding {
    let words = driver::words(name);
    Finding::new(
        format!("{name}_not_built_in"),
        format!(
            "{} has a GPU here, and this build does not have the driver {name}",
            words.vendor_name
        ),
        format!("build with the feature {}", words.feature),
    )
}

/// The driver that was asked for has no GPU in sight, and another one has.
fn other_vendor(facts: &Facts, asked: &str) -> Option<Finding> {
    let other = REAL_DRIVERS
        .into_iter()
        .find(|name| *name != asked && has_evidence(facts, name))?;
    (!has_evidence(facts, asked)).then(|| {
        Finding::new(
            "driver_of_other_vendor",
            format!(
                "RDM_DRIVER asks for {asked}, and the GPU here is one of {}",
                driver::words(other).vendor_name
            ),
            format!("unset RDM_DRIVER, or set it to {other}"),
        )
    })
}

fn no_gpu(facts: &Facts) -> Option<Finding> {
    facts.hardware.as_ref().map(|_| {
        Finding::new(
            "no_gpu",
            "the machine shows no GPU of AMD or NVIDIA: none is on the PCI bus, and there are no device nodes",
            format!(
                "run on a machine that has one; pass it through to a virtual machine; start a container \
                 with --device=/dev/kfd --device=/dev/dri (AMD) or --gpus all (NVIDIA); {USE_SIM}"
            ),
        )
    })
}
