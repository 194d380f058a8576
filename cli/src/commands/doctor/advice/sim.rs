//! What is wrong with the simulated driver.

use super::super::Facts;
use super::Finding;

/// What is wrong with the simulated driver, which was asked for.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let Some(sim) = facts.driver("sim") else {
        return Vec::new();
    };
    if let Some(error) = &sim.error {
        return vec![if error.status == "RDM_ERROR_INVALID_ARGUMENT" {
            Finding::new(
                "sim_settings_invalid",
                error.message.as_str(),
                "correct the variable, or unset it",
            )
        } else {
            Finding::new(
                "sim_failed",
                error.message.as_str(),
                "see that the compiler works, and that RDM_SIM_INJECT is not set",
            )
        }];
    }
    if sim.compiler_path.is_empty() {
        return vec![Finding::new(
            "sim_compiler_missing",
            "the simulated GPUs have no compiler for their kernels",
            "install a C++ compiler such as g++, put it on PATH, or name one in RDM_SIM_COMPILER",
        )];
    }
    if sim.device_count == Some(0) {
        return vec![Finding::new(
            "sim_no_device",
            "RDM_SIM_DEVICES is 0: there are no simulated GPUs",
            "unset RDM_SIM_DEVICES, or set it to 1 or more",
        )];
    }
    sim.compiles
        .iter()
        .filter_map(|compile| {
            Some(Finding::new(
                "sim_compile_failed",
                format!("{}: {}", sim.compiler_path, compile.error.as_ref()?),
                "name a C++ compiler that works in RDM_SIM_COMPILER, such as g++ or clang++",
            ))
        })
        .collect()
}
