//! Simulated GPUs on request, and settings that are not right.

use serde_json::Value;

use crate::support::*;

#[test]
fn simulated_gpus_on_request() {
    let sim = |more: &[(&str, &str)]| {
        let mut all = vec![("RDM_DRIVER", "sim")];
        all.extend(more);
        examine(&all)
    };
    let report = sim(&[("RDM_SIM_DEVICES", "3")]);
    report.expect(&[], true);
    assert_eq!(report.json["uses"], "sim");
    assert_eq!(report.driver("sim")["device_count"], 3);
    assert_eq!(report.driver("sim")["devices"][2]["architecture"], "sim");
    assert_eq!(report.driver("sim")["compiles"][0]["error"], Value::Null);
    for (name, value, id, what) in [
        (
            "RDM_SIM_COMPILER",
            "/no/such/compiler",
            "sim_compiler_missing",
            "compiler",
        ),
        ("RDM_SIM_COMPILER", "false", "sim_compile_failed", "false"),
        ("RDM_SIM_DEVICES", "0", "sim_no_device", "RDM_SIM_DEVICES"),
        (
            "RDM_SIM_DEVICES",
            "many",
            "sim_settings_invalid",
            "\"many\"",
        ),
        (
            "RDM_SIM_FAULT_SCOPE",
            "all",
            "sim_settings_invalid",
            "RDM_SIM_FAULT_SCOPE",
        ),
        (
            "RDM_SIM_INJECT",
            "x",
            "sim_settings_invalid",
            "RDM_SIM_INJECT",
        ),
        (
            "RDM_SIM_INJECT",
            "hipInit:1:0:999:0",
            "sim_failed",
            "hipInit",
        ),
    ] {
        let report = sim(&[(name, value)]);
        report.expect(&[id], false);
        report.expect_words(id, &[what], &[]);
    }
}

#[test]
fn settings_that_can_not_be_used_are_warnings() {
    let report = examine(&[
        ("RDM_DRIVER", "sim"),
        ("RDM_WATCHDOG_SECS", "30s"),
        ("RDM_CACHE_MAX_BYTES", "1G"),
        ("RDM_WATCHDOG", "30"),
        ("CUDA_VISIBLE_DEVICES", "0,0"),
        (
            "RDM_CACHE_DIR",
            concat!(env!("CARGO_BIN_EXE_rdm"), "/below-a-file"),
        ),
    ]);
    report.expect(
        &[
            "variable_invalid",
            "variable_invalid",
            "mask_invalid",
            "variable_unknown",
            "cache_unusable",
        ],
        true,
    );
    report.expect_words(
        "variable_invalid",
        &["RDM_WATCHDOG_SECS=\"30s\"", "whole number"],
        &["unset"],
    );
    report.expect_words("variable_unknown", &["RDM_WATCHDOG=\"30\""], &["name"]);
    report.expect_words(
        "mask_invalid",
        &["CUDA_VISIBLE_DEVICES=\"0,0\"", "twice"],
        &["once"],
    );
    report.expect_words("cache_unusable", &["below-a-file"], &["RDM_CACHE_DIR"]);

    let report = examine(&[("RDM_DRIVER", "vulkan")]);
    report.expect(&["driver_unknown"], false);
    assert_eq!(report.variable("RDM_DRIVER")["valid"], false);
    #[cfg(not(feature = "cuda"))]
    {
        let report = examine(&[("RDM_DRIVER", "cuda")]);
        report.expect(&["driver_not_built_in"], false);
        report.expect_words("driver_not_built_in", &["cuda"], &["feature cuda"]);
    }
}

/// The doctor compiles, and neither reads nor fills the cache of compiled kernels.
#[test]
fn the_cache_is_described_and_not_written_to() {
    let cache = folder("cache").join("kernels");
    let environment = [("RDM_DRIVER", "sim"), ("RDM_CACHE_DIR", text(&cache))];
    let report = examine(&environment);
    report.expect(&[], true);
    assert_eq!(report.driver("sim")["compiles"][0]["error"], Value::Null);
    assert_eq!(report.json["cache"]["path"], text(&cache));
    assert_eq!(report.json["cache"]["enabled"], true);
    assert_eq!(report.json["cache"]["entry_count"], 0);
    assert!(!cache.exists());
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [&["--timeout", "0"][..], &["--timeout", "soon"], &["--jsn"]] {
        assert_eq!(
            doctor(arguments, &[]).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}
