//! What is wrong with how the process is set up, whichever driver it uses: variables, masks, limits,
//! the cache.

use super::super::Facts;
use super::super::environment::Variable;
use super::Finding;

pub fn findings(facts: &Facts, asked: Option<&str>, usable: bool) -> Vec<Finding> {
    let mut findings = of_variables(facts, asked, usable);
    if super::is_built_in(facts, "hip") && asked.is_none_or(|name| name == "hip") {
        findings.extend(masks_disagree(facts));
        findings.extend(mask_beyond_another(facts));
        findings.extend(core_dumps(facts));
    }
    findings.extend(of_cache(facts));
    findings
}

/// Whether what is wrong with a variable is told as the driver's problem already.
fn is_told(variable: &Variable, facts: &Facts, asked: Option<&str>, usable: bool) -> bool {
    let opening_failed = |driver: &str| {
        asked.is_none_or(|name| name == driver)
            && facts
                .driver(driver)
                .is_some_and(|driver| driver.built_in && driver.error.is_some())
    };
    match variable.name.as_str() {
        "RDM_DRIVER" => true,
        "RDM_HIP_LIBRARY" => opening_failed("hip"),
        "RDM_CUDART_LIBRARY" => opening_failed("cuda"),
        name if name.starts_with("RDM_SIM_") => asked == Some("sim") && !usable,
        _ => false,
    }
}

fn of_variables(facts: &Facts, asked: Option<&str>, usable: bool) -> Vec<Finding> {
    facts
        .variables
        .iter()
        .filter(|variable| !variable.valid && !is_told(variable, facts, asked, usable))
        .map(|variable| {
            let value = variable.value.as_deref().unwrap_or_default();
            let set = format!("{}=\"{value}\"", variable.name);
            if variable.selects.is_some() {
                return mask_invalid(variable, &set);
            }
            if variable.effect.starts_with("nothing reads") {
                return Finding::new(
                    "variable_unknown",
                    format!("{set} is set, and {}", variable.effect),
                    "correct its name, or unset it; `rdm doctor --json` lists the names that are read",
                );
            }
            Finding::new(
                "variable_invalid",
                format!("{set} can not be used: {}", variable.effect),
                format!("correct {}, or unset it", variable.name),
            )
        })
        .collect()
}

fn mask_invalid(variable: &Variable, set: &str) -> Finding {
    let stop = variable
        .selects
        .as_ref()
        .and_then(|selection| selection.stops_at.as_deref());
    let what = match stop {
        Some(part) => format!(
            "{set} holds \"{part}\", which names no device: what comes from there on is hidden"
        ),
        None => format!("{set} names a device twice"),
    };
    let uuids =
        if variable.name == "ROCR_VISIBLE_DEVICES" || variable.name == "CUDA_VISIBLE_DEVICES" {
            " or UUIDs that begin with GPU-"
        } else {
            "; a UUID can be named in ROCR_VISIBLE_DEVICES alone"
        };
    Finding::new(
        "mask_invalid",
        what,
        format!("write indices between commas, each once{uuids}"),
    )
}

/// On AMD both are the same mask, and one of them wins.
fn masks_disagree(facts: &Facts) -> Option<Finding> {
    let hip = facts.variable("HIP_VISIBLE_DEVICES")?.value.as_deref()?;
    let cuda = facts.variable("CUDA_VISIBLE_DEVICES")?.value.as_deref()?;
    (hip != cuda).then(|| {
        Finding::new(
            "masks_disagree",
            format!(
                "HIP_VISIBLE_DEVICES=\"{hip}\" and CUDA_VISIBLE_DEVICES=\"{cuda}\" differ, and AMD's runtime \
                 heeds one of them"
            ),
            "set one of the two, or both to the same list",
        )
    })
}

/// ROCR_VISIBLE_DEVICES is applied first, and the others count what it leaves.
fn mask_beyond_another(facts: &Facts) -> Option<Finding> {
    let outer = facts.variable("ROCR_VISIBLE_DEVICES")?;
    let left = outer.selects.as_ref()?.devices.len();
    ["HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"]
        .iter()
        .filter_map(|name| facts.variable(name))
        .find(|inner| {
            let greatest = inner.selects.as_ref().and_then(|selection| selection.greatest_index());
            greatest.is_some_and(|index| index as usize >= left)
        })
        .map(|inner| {
            let (outer_value, inner_value) = (
                outer.value.as_deref().unwrap_or_default(),
                inner.value.as_deref().unwrap_or_default(),
            );
            Finding::new(
                "mask_beyond_another",
                format!(
                    "ROCR_VISIBLE_DEVICES=\"{outer_value}\" leaves {left} device{}, and {}=\"{inner_value}\" counts \
                     among those, from 0",
                    if left == 1 { "" } else { "s" },
                    inner.name
                ),
                format!("unset {}, or let it count what ROCR_VISIBLE_DEVICES leaves", inner.name),
            )
        })
}

fn core_dumps(facts: &Facts) -> Option<Finding> {
    let skips_abort = facts
        .value("HIP_SKIP_ABORT_ON_GPU_ERROR")
        .is_some_and(|value| value != "0");
    let limit = facts.limits.core_dump.as_deref()?;
    (skips_abort && limit != "0").then(|| {
        Finding::new(
            "core_dumps_override_skip_abort",
            format!(
                "core dumps are on (limit {limit}), and then AMD's runtime is reported to abort the process on a \
                 GPU exception whatever HIP_SKIP_ABORT_ON_GPU_ERROR says"
            ),
            "ulimit -c 0",
        )
    })
}

fn of_cache(facts: &Facts) -> Option<Finding> {
    let cache = &facts.cache;
    let problem = cache.problem.as_deref()?;
    let is_off = facts
        .variable("RDM_CACHE_DIR")
        .is_some_and(|variable| variable.value.as_deref() == Some(""));
    let is_told = facts
        .variable("RDM_CACHE_DIR")
        .is_some_and(|variable| !variable.valid);
    if is_off || is_told {
        return None;
    }
    let folder = if cache.path.is_empty() {
        "the cache of compiled kernels".to_owned()
    } else {
        format!("the cache of compiled kernels, {},", cache.path)
    };
    let (id, what) = if cache.enabled {
        ("cache_not_writable", "can not be added to")
    } else {
        (
            "cache_unusable",
            "can not be used, so every process compiles anew",
        )
    };
    Some(Finding::new(
        id,
        format!("{folder} {what}: {problem}"),
        "set RDM_CACHE_DIR to a folder of this user that nobody else can write to (chmod 700), or to nothing \
         for no cache",
    ))
}
