//! The environment variables that the library and the runtimes read, and what each does as it is set.

use std::collections::BTreeMap;
use std::path::Path;

use rocm_device_map::diagnosis::BUILT_IN_DRIVERS;
use serde::Serialize;

use super::masks::{MASKS, Mask, Selection};
use super::probe::DriverReport;

#[derive(Serialize)]
pub struct Variable {
    pub name: String,
    /// None where it is not set.
    pub value: Option<String>,
    /// Whether the value, where there is one, is one that can be used.
    pub valid: bool,
    /// What the value does, or what would be right.
    pub effect: String,
    /// For the masks: what they select.
    pub selects: Option<Selection>,
}

/// How a value is read.
enum Rule {
    Driver,
    /// A whole number up to a greatest one.
    Number(u64),
    /// One of two values, with what the second does.
    Choice([&'static str; 2]),
    OneOf(&'static [&'static str]),
    CacheFolder,
    File,
    Folder,
    /// Read by the simulated driver, whose complaint names it.
    Simulated,
    Free,
}

struct Known {
    name: &'static str,
    rule: Rule,
    /// What it does, as a clause.
    meaning: &'static str,
    /// An empty value is as good as none.
    empty_is_unset: bool,
}

const fn known(
    name: &'static str,
    rule: Rule,
    empty_is_unset: bool,
    meaning: &'static str,
) -> Known {
    Known {
        name,
        rule,
        meaning,
        empty_is_unset,
    }
}

const KNOWN: [Known; 21] = [
    known("RDM_DRIVER", Rule::Driver, true, "the driver to use"),
    known(
        "RDM_SIM_DEVICES",
        Rule::Number(64),
        true,
        "how many GPUs sim simulates",
    ),
    known(
        "RDM_SIM_COMPILER",
        Rule::Simulated,
        true,
        "the compiler of the simulated GPUs",
    ),
    known(
        "RDM_SIM_FAULT_SCOPE",
        Rule::Simulated,
        true,
        "what a simulated fault takes with it",
    ),
    known(
        "RDM_SIM_FAULT_ABORT",
        Rule::Simulated,
        true,
        "whether a simulated fault ends the process",
    ),
    known(
        "RDM_SIM_LAST_ERROR",
        Rule::Simulated,
        true,
        "how sim keeps the last error",
    ),
    known(
        "RDM_SIM_SERIAL_COMPILER",
        Rule::Simulated,
        true,
        "whether sim's compiler is serial",
    ),
    known(
        "RDM_SIM_INJECT",
        Rule::Simulated,
        true,
        "failures and stalls that sim injects",
    ),
    known(
        "RDM_WATCHDOG_SECS",
        Rule::Number(u64::MAX),
        false,
        "the bound on every host wait, in seconds; 0 is none",
    ),
    known(
        "RDM_EVENT_BLOCKING",
        Rule::Choice(["0", "1"]),
        false,
        "1: host waits sleep at once",
    ),
    known(
        "RDM_LOG_LEVEL",
        Rule::OneOf(&["error", "warning", "info", "debug"]),
        true,
        "the least severe lines that go to standard error",
    ),
    known(
        "RDM_CACHE_DIR",
        Rule::CacheFolder,
        false,
        "the cache of compiled kernels",
    ),
    known(
        "RDM_CACHE_MAX_BYTES",
        Rule::Number(u64::MAX),
        true,
        "how much the cache may hold, in bytes",
    ),
    known(
        "RDM_HIP_LIBRARY",
        Rule::File,
        true,
        "AMD's runtime is this file and no other",
    ),
    known(
        "RDM_CUDART_LIBRARY",
        Rule::File,
        true,
        "the CUDA runtime is this file and no other",
    ),
    known(
        "ROCM_PATH",
        Rule::Folder,
        true,
        "where AMD's libraries are looked for first",
    ),
    known(
        "CUDA_HOME",
        Rule::Folder,
        true,
        "where NVIDIA's libraries are looked for first",
    ),
    known(
        "CUDA_PATH",
        Rule::Folder,
        true,
        "where NVIDIA's libraries are looked for next",
    ),
    known(
        "LD_LIBRARY_PATH",
        Rule::Free,
        true,
        "where the loader looks for libraries first",
    ),
    known(
        "HSA_OVERRIDE_GFX_VERSION",
        Rule::Free,
        true,
        "AMD's runtime takes every GPU for one of this architecture",
    ),
    known(
        "HIP_SKIP_ABORT_ON_GPU_ERROR",
        Rule::Free,
        true,
        "1: a GPU exception is an error, and does not abort the process",
    ),
];

/// The variables that are set, by name.
pub struct Environment {
    set: BTreeMap<String, String>,
}

impl Environment {
    pub fn of_this_process() -> Self {
        Self {
            set: std::env::vars_os()
                .map(|(name, value)| {
                    (
                        name.to_string_lossy().into_owned(),
                        value.to_string_lossy().into_owned(),
                    )
                })
                .collect(),
        }
    }

    /// Every variable that is read, set or not, and those that look as if they were.
    pub fn variables(&self, drivers: &[DriverReport]) -> Vec<Variable> {
        let mut variables: Vec<Variable> = KNOWN
            .iter()
            .map(|known| self.judge(known, drivers))
            .collect();
        variables.extend(MASKS.iter().map(|mask| self.judge_mask(mask)));
        for (name, value) in &self.set {
            let is_known = variables.iter().any(|variable| variable.name == *name);
            // Those of the test suites are no mistake of a user's.
            if name.starts_with("RDM_") && !name.starts_with("RDM_TEST_") && !is_known {
                variables.push(Variable {
                    name: name.clone(),
                    value: Some(value.clone()),
                    valid: false,
                    effect: "nothing reads a variable of this name".to_owned(),
                    selects: None,
                });
            }
        }
        variables
    }

    fn judge(&self, known: &Known, drivers: &[DriverReport]) -> Variable {
        let value = self.set.get(known.name).cloned();
        let is_empty = value.as_deref() == Some("");
        let verdict = match value.as_deref() {
            None => Ok(()),
            Some(_) if is_empty && known.empty_is_unset => Ok(()),
            Some(value) => check(known, value, drivers),
        };
        Variable {
            name: known.name.to_owned(),
            value,
            valid: verdict.is_ok(),
            effect: match verdict {
                Ok(()) if known.name == "RDM_CACHE_DIR" && is_empty => {
                    "no cache of compiled kernels on disk".to_owned()
                }
                Ok(()) => known.meaning.to_owned(),
                Err(wanted) => wanted,
            },
            selects: None,
        }
    }

    fn judge_mask(&self, mask: &Mask) -> Variable {
        let value = self.set.get(mask.name).cloned();
        let selects = value.as_deref().map(|value| mask.select(value));
        Variable {
            name: mask.name.to_owned(),
            valid: selects.as_ref().is_none_or(|found| !found.loses_devices),
            effect: selects
                .as_ref()
                .map_or("every device is visible".to_owned(), |found| {
                    mask.describe(found)
                }),
            value,
            selects,
        }
    }
}

fn whole_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Whether a value can be used; else what would be right.
fn check(known: &Known, value: &str, drivers: &[DriverReport]) -> Result<(), String> {
    let require = |good: bool, wanted: String| if good { Ok(()) } else { Err(wanted) };
    match &known.rule {
        Rule::Driver => require(
            BUILT_IN_DRIVERS.contains(&value),
            format!("this build has the drivers {}", BUILT_IN_DRIVERS.join(", ")),
        ),
        Rule::Number(greatest) => require(
            whole_number(value).is_some_and(|number| number <= *greatest),
            if *greatest == u64::MAX {
                "it has to be a whole number".to_owned()
            } else {
                format!("it has to be a whole number from 0 to {greatest}")
            },
        ),
        Rule::Choice([off, on]) => require(
            value == *off || value == *on,
            format!("it has to be {off} or {on}"),
        ),
        Rule::OneOf(names) => require(
            names.contains(&value),
            format!("it has to be one of {}", names.join(", ")),
        ),
        Rule::CacheFolder => require(
            value.is_empty() || value.starts_with('/'),
            "it has to be a path that begins with /, or empty for no cache".to_owned(),
        ),
        Rule::File => require(
            !value.contains('/') || Path::new(value).is_file(),
            "there is no such file".to_owned(),
        ),
        Rule::Folder => require(
            Path::new(value).is_dir(),
            "there is no such folder".to_owned(),
        ),
        Rule::Simulated => check_simulated(known.name, drivers),
        Rule::Free => Ok(()),
    }
}

/// The simulated driver was opened with the variable as it is, so it has judged it.
fn check_simulated(name: &str, drivers: &[DriverReport]) -> Result<(), String> {
    let Some(sim) = drivers.iter().find(|driver| driver.name == "sim") else {
        return Ok(());
    };
    if name == "RDM_SIM_COMPILER" {
        return if sim.opened && sim.compiler_path.is_empty() {
            Err("it names no program that can be run".to_owned())
        } else {
            Ok(())
        };
    }
    match &sim.error {
        Some(error) if error.message.contains(name) => Err(error.message.clone()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, value: &str) -> Variable {
        let environment = Environment {
            set: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        };
        environment
            .variables(&[])
            .into_iter()
            .find(|variable| variable.name == name)
            .expect("it is listed")
    }

    #[test]
    fn values_are_read_as_the_library_reads_them() {
        for (name, value, valid) in [
            ("RDM_DRIVER", "sim", true),
            ("RDM_DRIVER", "", true),
            ("RDM_DRIVER", "SIM", false),
            ("RDM_SIM_DEVICES", "64", true),
            ("RDM_SIM_DEVICES", "65", false),
            ("RDM_SIM_DEVICES", "", true),
            ("RDM_WATCHDOG_SECS", "30", true),
            ("RDM_WATCHDOG_SECS", "30s", false),
            ("RDM_WATCHDOG_SECS", "+30", false),
            ("RDM_WATCHDOG_SECS", "1.5", false),
            ("RDM_WATCHDOG_SECS", "", false),
            ("RDM_WATCHDOG_SECS", "18446744073709551615", true),
            ("RDM_WATCHDOG_SECS", "18446744073709551616", false),
            ("RDM_EVENT_BLOCKING", "1", true),
            ("RDM_LOG_LEVEL", "debug", true),
            ("RDM_LOG_LEVEL", "", true),
            ("RDM_LOG_LEVEL", "Debug", false),
            ("RDM_LOG_LEVEL", "4", false),
            ("RDM_EVENT_BLOCKING", "yes", false),
            ("RDM_CACHE_DIR", "", true),
            ("RDM_CACHE_DIR", "cache", false),
            ("RDM_CACHE_MAX_BYTES", "1G", false),
            ("RDM_HIP_LIBRARY", "/no/such/file", false),
            ("RDM_HIP_LIBRARY", "libamdhip64.so.6", true),
            ("ROCM_PATH", "/no/such/folder", false),
            ("RDM_WATCHDOG", "5", false),
            ("HIP_VISIBLE_DEVICES", "0,1", true),
            ("HIP_VISIBLE_DEVICES", "0,one", false),
        ] {
            let variable = judged(name, value);
            assert_eq!(variable.valid, valid, "{name}={value}: {}", variable.effect);
            assert_eq!(variable.value.as_deref(), Some(value));
        }
    }
}
