//! The advice for machines that are not at hand.

use super::super::Facts;
use super::super::environment::Variable;
use super::super::machine::{Cache, Gpu, Limits, Permission, User};
use super::super::masks::MASKS;
use super::super::probe::{Attempt, CompileReport, DeviceReport, DriverError, DriverReport};
use super::{Advice, Severity, advise};

fn absent(name: &str) -> DriverReport {
    let message = format!("{name} was not found; install it");
    DriverReport {
        name: name.to_owned(),
        built_in: true,
        error: Some(DriverError {
            status: "RDM_ERROR_NO_DRIVER".to_owned(),
            message,
            driver_code: None,
        }),
        attempts: vec![refused(
            "libx.so.1",
            "libx.so.1: cannot open shared object file: No such file or directory",
        )],
        ..DriverReport::default()
    }
}

fn refused(name: &str, result: &str) -> Attempt {
    Attempt {
        name: name.to_owned(),
        result: result.to_owned(),
        used: false,
    }
}

fn opened(name: &str, devices: i32) -> DriverReport {
    let architecture = "an architecture";
    DriverReport {
        name: name.to_owned(),
        built_in: true,
        opened: true,
        runtime_path: "/lib/runtime".to_owned(),
        compiler_path: "/lib/compiler".to_owned(),
        device_count: Some(devices),
        devices: (0..devices)
            .map(|index| DeviceReport {
                index,
                error: None,
                name: "a GPU".to_owned(),
                architecture: architecture.to_owned(),
                total_memory_bytes: 1 << 30,
                multiprocessor_count: 1,
                warp_size: 32,
                max_threads_per_block: 1024,
            })
            .collect(),
        compiles: vec![CompileReport {
            architecture: architecture.to_owned(),
            seconds: 0.1,
            error: None,
        }],
        ..DriverReport::default()
    }
}

fn ended(name: &str, status: &str) -> DriverReport {
    DriverReport {
        error: Some(DriverError {
            status: status.to_owned(),
            message: format!("the runtime ended with {status}"),
            driver_code: None,
        }),
        ..absent(name)
    }
}

fn not_built_in(name: &str) -> DriverReport {
    DriverReport {
        name: name.to_owned(),
        ..DriverReport::default()
    }
}

/// A machine with nothing but the simulated driver.
fn machine(hip: DriverReport, cuda: DriverReport) -> Facts {
    Facts {
        drivers: vec![hip, cuda, opened("sim", 2)],
        hardware: Some(Vec::new()),
        variables: Vec::new(),
        permissions: vec![
            node("hip", "/dev/kfd", false),
            node("cuda", "/dev/nvidiactl", false),
        ],
        user: User::default(),
        cache: Cache {
            enabled: true,
            path: "/home/someone/.cache".to_owned(),
            entry_count: 0,
            size_bytes: 0,
            limit_bytes: 1,
            problem: None,
        },
        limits: Limits {
            core_dump: Some("0".to_owned()),
        },
    }
}

fn node(driver: &str, path: &str, exists: bool) -> Permission {
    Permission {
        path: path.to_owned(),
        driver: driver.to_owned(),
        exists,
        mode: exists.then(|| "0660".to_owned()),
        group: exists.then(|| "render".to_owned()),
        accessible: exists,
        problem: None,
    }
}

fn gpu(vendor: &'static str, kernel_driver: Option<&str>) -> Gpu {
    Gpu {
        address: "0000:03:00.0".to_owned(),
        vendor,
        chip: "0x744c".to_owned(),
        kernel_driver: kernel_driver.map(str::to_owned),
    }
}

fn set(facts: &mut Facts, name: &str, value: &str) {
    let mask = MASKS.iter().find(|mask| mask.name == name);
    facts.variables.push(Variable {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        valid: true,
        effect: String::new(),
        selects: mask.map(|mask| mask.select(value)),
    });
}

fn ids(advice: &Advice) -> Vec<&str> {
    advice
        .problems
        .iter()
        .map(|problem| problem.id.as_str())
        .collect()
}

/// Every problem says what to do, and one that is an error makes the whole not healthy.
fn expect(facts: &Facts, wanted: &[&str], healthy: bool) -> Advice {
    let advice = advise(facts);
    assert_eq!(ids(&advice), wanted, "{:#?}", advice.problems);
    assert_eq!(advice.is_healthy(), healthy, "{:#?}", advice.problems);
    for problem in &advice.problems {
        assert!(!problem.what.is_empty() && !problem.remedy.is_empty());
    }
    advice
}

#[test]
fn a_machine_with_nothing_is_told_of_all_ways() {
    expect(
        &machine(absent("hip"), absent("cuda")),
        &[
            "no_gpu",
            "hip_library_missing",
            "cuda_driver_library_missing",
        ],
        false,
    );
    // Where the kernel hides its bus, nobody knows whether there is one.
    let mut hidden = machine(absent("hip"), not_built_in("cuda"));
    hidden.hardware = None;
    expect(&hidden, &["hip_library_missing"], false);
    let bare = machine(not_built_in("hip"), not_built_in("cuda"));
    expect(&bare, &["no_real_driver"], false);
}

#[test]
fn advice_is_for_the_vendor_whose_gpu_is_there() {
    let mut facts = machine(absent("hip"), absent("cuda"));
    facts.hardware = Some(vec![gpu("amd", Some("amdgpu"))]);
    expect(&facts, &["hip_library_missing"], false);
    facts.hardware = Some(vec![gpu("nvidia", Some("nvidia"))]);
    expect(&facts, &["cuda_driver_library_missing"], false);
    let mut facts = machine(opened("hip", 0), not_built_in("cuda"));
    facts.hardware = Some(vec![gpu("nvidia", Some("nvidia"))]);
    let advice = expect(&facts, &["cuda_not_built_in"], false);
    assert!(advice.problems[0].remedy.contains("feature cuda"));
}

#[test]
fn a_driver_that_works_leaves_the_other_vendors_unmentioned() {
    let mut facts = machine(absent("hip"), opened("cuda", 1));
    facts.hardware = Some(vec![gpu("nvidia", Some("nvidia"))]);
    let advice = expect(&facts, &[], true);
    assert_eq!(advice.uses.as_deref(), Some("cuda"));
    // A GPU that lies idle is worth a word.
    facts.hardware = Some(vec![
        gpu("nvidia", Some("nvidia")),
        gpu("amd", Some("amdgpu")),
    ]);
    expect(&facts, &["hip_library_missing"], true);
    // Even without a bus to look at.
    let mut facts = machine(opened("hip", 0), opened("cuda", 1));
    facts.hardware = None;
    expect(&facts, &[], true);
}

#[test]
fn a_runtime_that_takes_the_process_with_it_is_an_error_though_another_works() {
    for (status, id) in [("CRASHED", "hip_crashed"), ("HUNG", "hip_hung")] {
        let facts = machine(ended("hip", status), opened("cuda", 1));
        let advice = expect(&facts, &[id], false);
        assert_eq!(advice.uses, None);
        assert!(advice.problems[0].remedy.contains("RDM_DRIVER"));
        let mut asked = machine(ended("hip", status), opened("cuda", 1));
        set(&mut asked, "RDM_DRIVER", "cuda");
        expect(&asked, &[], true);
    }
    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    facts.drivers[0].error = ended("hip", "CRASHED_AT_EXIT").error;
    expect(&facts, &["hip_crashes_at_exit"], true);
}

#[test]
fn no_device_is_traced_to_its_cause() {
    let without = || {
        let mut facts = machine(opened("hip", 0), not_built_in("cuda"));
        facts.hardware = Some(vec![gpu("amd", Some("amdgpu"))]);
        facts
    };
    let advice = expect(&without(), &["hip_nodes_missing"], false);
    assert!(advice.problems[0].remedy.contains("--device=/dev/kfd"));

    let mut facts = without();
    facts.hardware = Some(vec![gpu("amd", Some("vfio-pci"))]);
    let advice = expect(&facts, &["hip_kernel_driver_missing"], false);
    assert!(advice.problems[0].what.contains("vfio-pci"));

    let mut facts = without();
    facts.permissions = vec![
        node("hip", "/dev/kfd", true),
        node("hip", "/dev/dri/renderD128", true),
    ];
    expect(&facts, &["hip_no_device"], false);

    set(&mut facts, "HIP_VISIBLE_DEVICES", "");
    let advice = expect(&facts, &["hip_masked"], false);
    assert!(advice.problems[0].what.contains("HIP_VISIBLE_DEVICES=\"\""));

    let mut facts = machine(opened("hip", 0), opened("cuda", 0));
    facts.permissions.push(node("cuda", "/dev/nvidia0", true));
    set(&mut facts, "CUDA_VISIBLE_DEVICES", "7");
    let advice = expect(&facts, &["cuda_masked"], false);
    assert_eq!(advice.uses.as_deref(), Some("hip"));
}

#[test]
fn a_device_that_nothing_can_be_compiled_for_is_not_usable() {
    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    facts.drivers[0].compiler_path.clear();
    facts.drivers[0].compiles.clear();
    expect(&facts, &["hip_compiler_missing"], false);

    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    facts.drivers[0].compiles[0].error =
        Some("hiprtc of this version does not know the architecture gfx1201".to_owned());
    let advice = expect(&facts, &["hip_compile_failed"], false);
    assert!(advice.problems[0].remedy.contains("newer"));

    // One of two is enough.
    let mut facts = machine(opened("hip", 2), not_built_in("cuda"));
    facts.drivers[0].devices[1].error = Some("it is lost".to_owned());
    let advice = expect(&facts, &["hip_device_unreadable"], true);
    assert_eq!(advice.problems[0].severity, Severity::Warning);
}

#[test]
fn what_was_asked_for_is_what_is_judged() {
    let mut facts = machine(absent("hip"), opened("cuda", 1));
    set(&mut facts, "RDM_DRIVER", "hip");
    let advice = expect(
        &facts,
        &["driver_of_other_vendor", "hip_library_missing"],
        false,
    );
    assert!(advice.problems[0].remedy.contains("set it to cuda"));

    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    set(&mut facts, "RDM_DRIVER", "cuda");
    expect(&facts, &["driver_not_built_in"], false);

    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    set(&mut facts, "RDM_DRIVER", "vulkan");
    let advice = expect(&facts, &["driver_unknown"], false);
    assert!(advice.problems[0].remedy.contains("hip, sim"));

    let mut facts = machine(absent("hip"), not_built_in("cuda"));
    set(&mut facts, "RDM_DRIVER", "sim");
    let advice = expect(&facts, &[], true);
    assert_eq!(advice.uses.as_deref(), Some("sim"));
    facts.drivers[2].devices[0].error = Some("an injected failure".to_owned());
    facts.drivers[2].devices[1].error = Some("an injected failure".to_owned());
    expect(&facts, &["no_usable_device"], false);
    let mut facts = machine(absent("hip"), not_built_in("cuda"));
    set(&mut facts, "RDM_DRIVER", "sim");
    facts.drivers[2].error = ended("sim", "CRASHED").error;
    expect(&facts, &["sim_failed"], false);
}

#[test]
fn masks_are_read_together() {
    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    set(&mut facts, "ROCR_VISIBLE_DEVICES", "2");
    set(&mut facts, "HIP_VISIBLE_DEVICES", "2");
    let advice = expect(&facts, &["mask_beyond_another"], true);
    assert!(advice.problems[0].what.contains("leaves 1 device"));

    let mut facts = machine(opened("hip", 2), not_built_in("cuda"));
    set(&mut facts, "HIP_VISIBLE_DEVICES", "0,1");
    set(&mut facts, "CUDA_VISIBLE_DEVICES", "1");
    expect(&facts, &["masks_disagree"], true);

    let mut facts = machine(opened("hip", 2), not_built_in("cuda"));
    set(&mut facts, "ROCR_VISIBLE_DEVICES", "2,GPU-ab");
    set(&mut facts, "HIP_VISIBLE_DEVICES", "1,0");
    set(&mut facts, "CUDA_VISIBLE_DEVICES", "1,0");
    expect(&facts, &[], true);
}

#[test]
fn limits_nodes_and_the_cache_are_warnings() {
    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    set(&mut facts, "HIP_SKIP_ABORT_ON_GPU_ERROR", "1");
    expect(&facts, &[], true);
    facts.limits.core_dump = Some("unlimited".to_owned());
    expect(&facts, &["core_dumps_override_skip_abort"], true);

    let mut facts = machine(opened("hip", 1), not_built_in("cuda"));
    facts.permissions.push(Permission {
        accessible: false,
        problem: Some("/dev/dri/renderD129 may not be opened; add the user".to_owned()),
        ..node("hip", "/dev/dri/renderD129", true)
    });
    facts.cache.enabled = false;
    facts.cache.problem = Some("it belongs to another user".to_owned());
    let advice = expect(&facts, &["hip_node_denied", "cache_unusable"], true);
    assert_eq!(advice.problems[0].remedy, "add the user");
    facts.cache.enabled = true;
    expect(&facts, &["hip_node_denied", "cache_not_writable"], true);
    // Turned off on purpose.
    set(&mut facts, "RDM_CACHE_DIR", "");
    expect(&facts, &["hip_node_denied"], true);
}

#[test]
fn the_most_telling_refusal_of_the_loader_is_told() {
    let not_there = refused(
        "libamdhip64.so.7",
        "libamdhip64.so.7: cannot open shared object file: No such file or directory",
    );
    for (refusal, id, word) in [
        (
            refused(
                "libamdhip64.so.6",
                "libnuma.so.1: cannot open shared object file: No such file or directory",
            ),
            "hip_dependency_missing",
            "libnuma.so.1",
        ),
        (
            refused(
                "libamdhip64.so.6",
                "/lib/libc.so.6: version `GLIBC_2.38' not found (required by /x/libamdhip64.so.6)",
            ),
            "hip_library_broken",
            "C library",
        ),
        (
            refused(
                "libamdhip64.so.6",
                "/x/libamdhip64.so.6 lacks the symbol hipInit",
            ),
            "hip_symbol_missing",
            "RDM_HIP_LIBRARY",
        ),
    ] {
        let mut facts = machine(absent("hip"), not_built_in("cuda"));
        facts.hardware = None;
        facts.drivers[0].attempts = vec![not_there.clone(), refusal, not_there.clone()];
        let advice = expect(&facts, &[id], false);
        assert!(
            advice.problems[0].remedy.contains(word),
            "{:?}",
            advice.problems
        );
    }
}
