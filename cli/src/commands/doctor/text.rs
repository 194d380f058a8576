//! The report for people: sections, one line for each thing, a mark before it.

use super::Report;
use super::advice::Severity;
use super::environment::Variable;
use super::machine::Permission;
use super::probe::{Attempt, DriverReport};

const GOOD: char = '✓';
const BAD: char = '✗';
const NOTE: char = '!';
const NONE: char = '·';

struct Page {
    text: String,
}

impl Page {
    fn section(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("{title}\n"));
    }

    fn line(&mut self, mark: char, text: &str) {
        self.text.push_str(&format!("  {mark} {text}\n"));
    }

    fn detail(&mut self, mark: char, text: &str) {
        self.text.push_str(&format!("      {mark} {text}\n"));
    }
}

pub fn page(report: &Report) -> String {
    let mut page = Page {
        text: format!("rdm doctor {}\n", report.version),
    };
    drivers(&mut page, report);
    hardware(&mut page, report);
    variables(&mut page, report);
    settings(&mut page, report);
    problems(&mut page, report);
    page.text
}

fn drivers(page: &mut Page, report: &Report) {
    page.section("Drivers");
    for driver in &report.facts.drivers {
        if !driver.built_in {
            page.line(NONE, &format!("{}: not in this build", driver.name));
            continue;
        }
        one_driver(page, driver);
    }
}

fn one_driver(page: &mut Page, driver: &DriverReport) {
    let failed = driver.error.is_some();
    let devices = driver.device_count.unwrap_or(0);
    let mark = match (failed, driver.opened, devices) {
        (true, ..) | (_, false, _) => BAD,
        (_, _, 0) => NOTE,
        _ => GOOD,
    };
    page.line(mark, &headline(driver));
    for attempt in &driver.attempts {
        let mark = if attempt.used { GOOD } else { NONE };
        page.detail(mark, &attempt_text(attempt));
    }
    for device in &driver.devices {
        match &device.error {
            None => page.detail(
                GOOD,
                &format!(
                    "device {}: {}, {}, {:.1} GiB",
                    device.index,
                    device.name,
                    device.architecture,
                    device.total_memory_bytes as f64 / f64::from(1u32 << 30)
                ),
            ),
            Some(error) => page.detail(BAD, &format!("device {}: {error}", device.index)),
        }
    }
    if !driver.opened {
        return;
    }
    if driver.compiler_path.is_empty() {
        page.detail(BAD, "no run-time compiler");
    }
    for compile in &driver.compiles {
        match &compile.error {
            None => page.detail(
                GOOD,
                &format!(
                    "compiles for {} ({:.2} s)",
                    compile.architecture, compile.seconds
                ),
            ),
            Some(error) => page.detail(
                BAD,
                &format!("does not compile for {}: {error}", compile.architecture),
            ),
        }
    }
}

fn headline(driver: &DriverReport) -> String {
    let name = &driver.name;
    if let Some(error) = &driver.error {
        let what = error.message.split("; ").next().unwrap_or_default();
        return format!("{name}: {what}");
    }
    let about = if name == "sim" {
        match driver.compiler_path.as_str() {
            "" => "no compiler".to_owned(),
            path => format!("compiler {path}"),
        }
    } else {
        versions(driver)
    };
    let devices = match driver.device_count {
        Some(1) => "1 device".to_owned(),
        Some(count) => format!("{count} devices"),
        None => "no answer".to_owned(),
    };
    let simulated = if name == "sim" {
        " simulated on request,"
    } else {
        ""
    };
    format!("{name}:{simulated} {devices}; {about}")
}

fn versions(driver: &DriverReport) -> String {
    let readable = |number: i32| match driver.name.as_str() {
        "hip" => format!(
            "{}.{}.{}",
            number / 10_000_000,
            number / 100_000 % 100,
            number % 100_000
        ),
        _ => format!("{}.{}", number / 1000, number % 1000 / 10),
    };
    let versions = &driver.versions;
    let texts: Vec<String> = [
        ("driver", versions.driver.map(readable)),
        ("runtime", versions.runtime.map(readable)),
        ("compiler", versions.compiler.clone()),
    ]
    .into_iter()
    .filter_map(|(what, version)| Some(format!("{what} {}", version?)))
    .collect();
    texts.join(", ")
}

/// The loader's text mostly begins with the name, and mostly says that there is no such file.
fn attempt_text(attempt: &Attempt) -> String {
    let name = &attempt.name;
    if attempt.used {
        return if attempt.result == *name {
            name.clone()
        } else {
            format!("{name} is {}", attempt.result)
        };
    }
    let own = format!("{name}: ");
    let reason = attempt.result.strip_prefix(&own).unwrap_or(&attempt.result);
    if reason == "cannot open shared object file: No such file or directory" {
        format!("{name}: not there")
    } else {
        format!("{name}: {reason}")
    }
}

fn hardware(page: &mut Page, report: &Report) {
    page.section("Hardware and permissions");
    match &report.facts.hardware {
        None => page.line(NONE, "the kernel does not show its PCI bus"),
        Some(gpus) if gpus.is_empty() => page.line(NONE, "no GPU of AMD or NVIDIA on the PCI bus"),
        Some(gpus) => {
            for gpu in gpus {
                let mark = if gpu.kernel_driver.is_some() {
                    GOOD
                } else {
                    NOTE
                };
                let driver = gpu.kernel_driver.as_deref().unwrap_or("none");
                page.line(
                    mark,
                    &format!(
                        "GPU of {} at {}, chip {}, kernel driver {driver}",
                        gpu.vendor, gpu.address, gpu.chip
                    ),
                );
            }
        }
    }
    for node in &report.facts.permissions {
        node_line(page, node);
    }
    let user = &report.facts.user;
    let id = user.id.map_or("unknown".to_owned(), |id| id.to_string());
    page.line(
        NONE,
        &format!("user {id}, groups {}", user.groups.join(", ")),
    );
}

fn node_line(page: &mut Page, node: &Permission) {
    let path = &node.path;
    let (Some(mode), Some(group)) = (&node.mode, &node.group) else {
        page.line(NONE, &format!("{path}: not there"));
        return;
    };
    match &node.problem {
        None => page.line(GOOD, &format!("{path}: mode {mode}, group {group}")),
        Some(problem) => page.line(BAD, problem.split("; ").next().unwrap_or_default()),
    }
}

fn variables(page: &mut Page, report: &Report) {
    let set: Vec<&Variable> = report
        .facts
        .variables
        .iter()
        .filter(|variable| variable.value.is_some())
        .collect();
    if set.is_empty() {
        return;
    }
    page.section("Variables");
    for variable in set {
        let mark = if variable.valid { GOOD } else { NOTE };
        let value = variable.value.as_deref().unwrap_or_default();
        page.line(
            mark,
            &format!("{}=\"{value}\": {}", variable.name, variable.effect),
        );
    }
}

fn settings(page: &mut Page, report: &Report) {
    page.section("Cache and limits");
    let cache = &report.facts.cache;
    match (&cache.problem, cache.enabled) {
        (None, _) => page.line(
            GOOD,
            &format!(
                "cache of compiled kernels: {}, {} entries, {} of {} MiB",
                cache.path,
                cache.entry_count,
                cache.size_bytes >> 20,
                cache.limit_bytes >> 20
            ),
        ),
        (Some(problem), enabled) => page.line(
            if enabled { NOTE } else { NONE },
            &format!("no cache of compiled kernels: {problem}"),
        ),
    }
    if !report
        .facts
        .drivers
        .iter()
        .any(|driver| driver.name == "hip" && driver.built_in)
    {
        return;
    }
    let limit = report.facts.limits.core_dump.as_deref();
    let text = match limit {
        Some("0") => "core dumps are off: AMD's runtime heeds HIP_SKIP_ABORT_ON_GPU_ERROR=1",
        Some(_) => {
            "core dumps are on: AMD's runtime may abort on a GPU exception whatever \
             HIP_SKIP_ABORT_ON_GPU_ERROR says"
        }
        None => return,
    };
    page.line(NONE, text);
}

fn problems(page: &mut Page, report: &Report) {
    if !report.problems.is_empty() {
        page.section("Problems");
    }
    for problem in &report.problems {
        let mark = match problem.severity {
            Severity::Error => BAD,
            Severity::Warning => NOTE,
        };
        page.line(mark, &format!("{} [{}]", problem.what, problem.id));
        page.text
            .push_str(&format!("      remedy: {}\n", problem.remedy));
    }
    let verdict = match (&report.uses, report.healthy) {
        (Some(driver), true) => format!("healthy: a process started here uses the driver {driver}"),
        (Some(driver), false) => {
            format!(
                "not healthy: a process started here takes the driver {driver}, and can not use it"
            )
        }
        (None, _) => "not healthy: a process started here has no driver to use".to_owned(),
    };
    page.text.push_str(&format!("\n{verdict}\n"));
}
