//! What is wrong with one driver, judged from how it opened.

use super::super::Facts;
use super::super::machine::Gpu;
use super::super::masks::MASKS;
use super::super::probe::{Attempt, DriverError, DriverReport};
use super::{Finding, USE_SIM};

/// What differs between the two vendors in what is said.
pub struct Words {
    pub vendor_name: &'static str,
    pub feature: &'static str,
    vendor: &'static str,
    runtime: &'static str,
    variable: &'static str,
    install: &'static str,
    versions: &'static str,
    compiler: &'static str,
    kernel_driver: &'static str,
    container: &'static str,
    tool: &'static str,
}

static HIP: Words = Words {
    vendor_name: "AMD",
    feature: "rocm",
    vendor: "amd",
    runtime: "AMD's HIP runtime (libamdhip64)",
    variable: "RDM_HIP_LIBRARY",
    install: "install ROCm's HIP runtime (hip-runtime-amd of AMD's packages, libamdhip64-5 or -6 of \
              Debian's), or set ROCM_PATH to its folder or RDM_HIP_LIBRARY to the file",
    versions: "install ROCm 5, 6 or 7, or name such a library in RDM_HIP_LIBRARY",
    compiler: "hiprtc, with its libamd_comgr,",
    kernel_driver: "amdgpu",
    container: "--device=/dev/kfd --device=/dev/dri",
    tool: "rocminfo",
};

static CUDA: Words = Words {
    vendor_name: "NVIDIA",
    feature: "cuda",
    vendor: "nvidia",
    runtime: "the CUDA runtime (libcudart)",
    variable: "RDM_CUDART_LIBRARY",
    install: "install CUDA 12 or 13, or set CUDA_HOME to its folder or RDM_CUDART_LIBRARY to the file",
    versions: "install CUDA 12 or 13, no newer than NVIDIA's driver carries, or update that driver",
    compiler: "nvrtc, with its nvrtc-builtins,",
    kernel_driver: "nvidia",
    container: "--gpus all (with the NVIDIA container toolkit)",
    tool: "nvidia-smi",
};

pub fn words(driver: &str) -> &'static Words {
    if driver == "hip" { &HIP } else { &CUDA }
}

pub fn feature(driver: &str) -> &'static str {
    words(driver).feature
}

pub fn vendor(driver: &str) -> &'static str {
    words(driver).vendor
}

/// It takes the process that opens it with it.
pub fn is_deadly(driver: &DriverReport) -> bool {
    driver
        .error
        .as_ref()
        .is_some_and(|error| ["CRASHED", "HUNG"].contains(&error.status.as_str()))
}

pub fn findings(facts: &Facts, driver: &DriverReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(error) = &driver.error {
        findings.push(of_error(facts, driver, error));
    }
    if driver.opened && driver.device_count == Some(0) {
        findings.push(without_device(facts, driver));
    }
    findings.extend(of_devices(driver));
    findings.extend(of_compiler(driver));
    let denied_already = findings
        .iter()
        .any(|finding| finding.id.ends_with("_permission_denied"));
    if !denied_already {
        findings.extend(of_nodes(facts, driver));
    }
    findings
}

/// The first clause of a message, which says what is wrong; the library's remedy and list follow it.
fn first_clause(message: &str) -> &str {
    message.split("; ").next().unwrap_or_default()
}

fn of_error(facts: &Facts, driver: &DriverReport, error: &DriverError) -> Finding {
    let name = &driver.name;
    let words = words(name);
    let id = |kind: &str| format!("{name}_{kind}");
    let what = first_clause(&error.message);
    let is_of_variable =
        facts.value(words.variable).is_some() && error.message.starts_with(words.variable);
    match error.status.as_str() {
        "CRASHED" | "HUNG" | "CRASHED_AT_EXIT" | "NOT_STARTED" => of_end(driver, error),
        "RDM_ERROR_PERMISSION" => {
            let remedy = error.message.split_once("; ").map_or(
                format!(
                    "let this user open the device nodes; in a container: {}",
                    words.container
                ),
                |(_, remedy)| remedy.to_owned(),
            );
            Finding::new(id("permission_denied"), what, remedy)
        }
        "RDM_ERROR_NO_DRIVER" | "RDM_ERROR_DRIVER_VERSION" if is_of_variable => Finding::new(
            id("library_variable_wrong"),
            what,
            format!(
                "correct {0}, or unset it to search the usual places",
                words.variable
            ),
        ),
        "RDM_ERROR_DRIVER_VERSION" if error.driver_code == Some(35) => Finding::new(
            id("kernel_driver_too_old"),
            what,
            format!(
                "update the kernel driver {}, or install an older runtime that fits it",
                words.kernel_driver
            ),
        ),
        "RDM_ERROR_DRIVER_VERSION" => {
            let reasons: Vec<&str> = rejected(driver, &["of major version", "carries CUDA"]);
            Finding::new(
                id("version_unsupported"),
                with_reasons(what, &reasons),
                words.versions,
            )
        }
        "RDM_ERROR_NO_DRIVER" => of_search(driver, what),
        _ => Finding::new(
            id("init_failed"),
            what,
            format!(
                "see what {} says, and the kernel log (dmesg) for {}",
                words.tool, words.kernel_driver
            ),
        ),
    }
}

/// The child process did not come to its end.
fn of_end(driver: &DriverReport, error: &DriverError) -> Finding {
    let name = &driver.name;
    let tool = words(name).tool;
    let file = match driver.attempts.iter().find(|attempt| attempt.used) {
        Some(attempt) => format!(" ({})", attempt.result),
        None => String::new(),
    };
    let message = &error.message;
    let what = format!("{name}: {message}{file}");
    match error.status.as_str() {
        "HUNG" => Finding::new(
            format!("{name}_hung"),
            what,
            format!(
                "see whether {tool} comes back, and the kernel log (dmesg) for a GPU that is reset; end what \
                 else holds the GPU; where it is only slow, give --timeout more seconds; RDM_DRIVER with \
                 another driver's name leaves this one alone"
            ),
        ),
        "CRASHED" => Finding::new(
            format!("{name}_crashed"),
            what,
            format!(
                "see whether {tool} crashes as well; update or reinstall the runtime; RDM_DRIVER with another \
                 driver's name leaves this one alone"
            ),
        ),
        "CRASHED_AT_EXIT" => Finding::new(
            format!("{name}_crashes_at_exit"),
            what,
            "the work is done by then, and only the exit code is lost; update the runtime",
        ),
        _ => Finding::new(
            format!("{name}_not_looked_at"),
            message.as_str(),
            "see that this program's own file can be run, and that processes are left to start",
        ),
    }
}

fn rejected<'a>(driver: &'a DriverReport, texts: &[&str]) -> Vec<&'a str> {
    driver
        .attempts
        .iter()
        .filter(|attempt| !attempt.used && texts.iter().any(|text| attempt.result.contains(text)))
        .map(|attempt| attempt.result.as_str())
        .collect()
}

fn with_reasons(what: &str, reasons: &[&str]) -> String {
    match reasons {
        [] => what.to_owned(),
        _ => format!("{what}: {}", reasons.join("; ")),
    }
}

/// Why the loader did not take a file, the most telling last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    NotThere,
    Broken,
    LacksSymbol,
    LacksDependency,
}

fn refusal(attempt: &Attempt) -> Refusal {
    let result = &attempt.result;
    if result.contains("lacks the symbol") {
        Refusal::LacksSymbol
    } else if result.starts_with("there is no folder") {
        Refusal::NotThere
    } else if result.contains("cannot open shared object file") {
        // The loader's text begins with what it could not open.
        if result.starts_with(&attempt.name) {
            Refusal::NotThere
        } else {
            Refusal::LacksDependency
        }
    } else {
        Refusal::Broken
    }
}

/// No library was taken.
fn of_search(driver: &DriverReport, what: &str) -> Finding {
    let name = &driver.name;
    let words = words(name);
    let has = |stem: &str| {
        driver
            .attempts
            .iter()
            .any(|attempt| attempt.used && attempt.name.contains(stem))
    };
    let worst = driver
        .attempts
        .iter()
        .filter(|attempt| !attempt.used)
        .max_by(|one, other| refusal(one).cmp(&refusal(other)));
    let Some(worst) = worst.filter(|attempt| refusal(attempt) > Refusal::NotThere) else {
        if name == "cuda" && !has("libcuda.so") {
            return Finding::new(
                "cuda_driver_library_missing",
                what,
                "install NVIDIA's driver, which brings libcuda.so.1; start a container with --gpus all (with \
                 the NVIDIA container toolkit)",
            );
        }
        return Finding::new(
            format!("{name}_library_missing"),
            format!("{} was not found", words.runtime),
            words.install,
        );
    };
    let found = format!("{}: {}", worst.name, worst.result);
    match refusal(worst) {
        Refusal::LacksDependency => {
            let missing = worst.result.split(':').next().unwrap_or_default();
            Finding::new(
                format!("{name}_dependency_missing"),
                format!("{} can not be loaded: {}", worst.name, worst.result),
                format!("install the package that has {missing}"),
            )
        }
        Refusal::LacksSymbol => Finding::new(
            format!("{name}_symbol_missing"),
            format!("{} is not whole: {}", words.runtime, worst.result),
            format!("reinstall it, or name a whole one in {}", words.variable),
        ),
        _ => Finding::new(
            format!("{name}_library_broken"),
            format!("{} was found and can not be loaded: {found}", words.runtime),
            "install one that is made for this system's processor and C library",
        ),
    }
}

fn without_device(facts: &Facts, driver: &DriverReport) -> Finding {
    let name = &driver.name;
    let words = words(name);
    let works = format!("{} works and reports no device", words.runtime);
    let gpus: Vec<&Gpu> = facts
        .hardware
        .iter()
        .flatten()
        .filter(|gpu| gpu.vendor == words.vendor)
        .collect();
    let evident = super::has_evidence(facts, name) || facts.hardware.is_none();
    let masks = masks_of(facts, name);
    if evident && !masks.is_empty() {
        return Finding::new(
            format!("{name}_masked"),
            format!("{works}, while {} is set", masks.join(" and ")),
            "unset it, or name in it the index of a GPU that is there, from 0 on",
        );
    }
    if !gpus.is_empty() && !gpus.iter().any(|gpu| has_kernel_driver(gpu, words)) {
        let all: Vec<String> = gpus.iter().map(|gpu| describe_gpu(gpu)).collect();
        return Finding::new(
            format!("{name}_kernel_driver_missing"),
            format!(
                "no GPU of {} has the kernel driver {}: {}",
                words.vendor_name,
                words.kernel_driver,
                all.join(", ")
            ),
            format!(
                "load it (modprobe {0}), see the kernel log (dmesg) for {0}, and take the GPU from vfio-pci where that has it",
                words.kernel_driver
            ),
        );
    }
    let missing = missing_nodes(facts, name);
    if evident && !missing.is_empty() {
        return Finding::new(
            format!("{name}_nodes_missing"),
            format!("{works}, and {} is not there", missing.join(" and ")),
            format!(
                "start a container with {}; on the machine itself, see the kernel log (dmesg) for {}",
                words.container, words.kernel_driver
            ),
        );
    }
    Finding::new(
        format!("{name}_no_device"),
        works,
        format!(
            "it needs a GPU that it supports, and in a container {}; see what {} says; {USE_SIM}",
            words.container, words.tool
        ),
    )
}

fn has_kernel_driver(gpu: &Gpu, words: &Words) -> bool {
    gpu.kernel_driver.as_deref() == Some(words.kernel_driver)
}

fn describe_gpu(gpu: &Gpu) -> String {
    let driver = gpu.kernel_driver.as_deref().unwrap_or("none");
    format!("{} ({}, driver: {driver})", gpu.address, gpu.chip)
}

/// The masks that the driver heeds and that are set, as NAME="VALUE".
fn masks_of(facts: &Facts, driver: &str) -> Vec<String> {
    MASKS
        .iter()
        .filter(|mask| mask.drivers.contains(&driver))
        .filter_map(|mask| {
            let value = facts.variable(mask.name)?.value.as_deref()?;
            Some(format!("{}=\"{value}\"", mask.name))
        })
        .collect()
}

fn missing_nodes(facts: &Facts, driver: &str) -> Vec<String> {
    let of_driver = || {
        facts
            .permissions
            .iter()
            .filter(|node| node.driver == driver)
    };
    let mut missing: Vec<String> = of_driver()
        .filter(|node| !node.exists)
        .map(|node| node.path.clone())
        .collect();
    // A driver needs one node for each GPU besides those that are there once.
    let for_each_gpu = if driver == "hip" {
        "/dev/dri/renderD"
    } else {
        "/dev/nvidia0"
    };
    if !of_driver().any(|node| node.path.starts_with(for_each_gpu)) {
        missing.push(format!(
            "{for_each_gpu}{}",
            if driver == "hip" { "*" } else { "" }
        ));
    }
    missing
}

fn of_devices(driver: &DriverReport) -> Vec<Finding> {
    driver
        .devices
        .iter()
        .filter_map(|device| {
            let error = device.error.as_ref()?;
            Some(Finding::new(
                format!("{}_device_unreadable", driver.name),
                first_clause(error),
                format!(
                    "see what {} says of device {}, and the kernel log (dmesg)",
                    words(&driver.name).tool,
                    device.index
                ),
            ))
        })
        .collect()
}

fn of_compiler(driver: &DriverReport) -> Vec<Finding> {
    let name = &driver.name;
    let words = words(name);
    if driver.opened && driver.compiler_path.is_empty() && driver.device_count != Some(0) {
        return vec![Finding::new(
            format!("{name}_compiler_missing"),
            format!(
                "the run-time compiler of {} was not found, so no kernel can be compiled",
                driver.runtime_path
            ),
            format!("install {} of the same version, beside it", words.compiler),
        )];
    }
    driver
        .compiles
        .iter()
        .filter_map(|compile| {
            let error = compile.error.as_ref()?;
            let remedy = if error.contains("does not know the architecture") {
                "install a newer version, which knows this GPU".to_owned()
            } else {
                format!("reinstall {} of the runtime's version", words.compiler)
            };
            Some(Finding::new(
                format!("{name}_compile_failed"),
                format!(
                    "no kernel can be compiled for {}: {error}",
                    compile.architecture
                ),
                remedy,
            ))
        })
        .collect()
}

fn of_nodes(facts: &Facts, driver: &DriverReport) -> Vec<Finding> {
    facts
        .permissions
        .iter()
        .filter(|node| node.driver == driver.name)
        .filter_map(|node| {
            let (what, remedy) = node.problem.as_ref()?.split_once("; ")?;
            Some(Finding::new(
                format!("{}_node_denied", driver.name),
                what,
                remedy,
            ))
        })
        .collect()
}
