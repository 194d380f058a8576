//! Machines with nothing, with AMD's runtime and no GPU, and with a GPU.

#[cfg(feature = "rocm")]
use std::fs;
#[cfg(feature = "rocm")]
use std::os::unix::fs::{PermissionsExt, chown};
#[cfg(feature = "rocm")]
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::*;

#[test]
fn a_machine_with_nothing() {
    let root = Root::new("nothing");
    let Some(report) = root.examine("a_machine_with_nothing", None, &[]) else {
        return;
    };
    let mut ids = Vec::new();
    if cfg!(any(feature = "rocm", feature = "cuda")) {
        ids.push("no_gpu");
    } else {
        ids.push("no_real_driver");
    }
    if cfg!(feature = "rocm") {
        ids.push("hip_library_missing");
    }
    if cfg!(feature = "cuda") {
        ids.push("cuda_driver_library_missing");
    }
    report.expect(&ids, false);
    if cfg!(any(feature = "rocm", feature = "cuda")) {
        report.expect_words(
            "no_gpu",
            &["PCI"],
            &["RDM_DRIVER=sim", "--device=/dev/kfd", "--gpus all"],
        );
    }
    assert_eq!(report.json["uses"], Value::Null);
    if cfg!(feature = "rocm") {
        report.expect_words(
            "hip_library_missing",
            &["libamdhip64"],
            &["install ROCm", "ROCM_PATH", "RDM_HIP_LIBRARY"],
        );
        let hip = report.driver("hip");
        assert_eq!(hip["opened"], false);
        assert_eq!(hip["error"]["status"], "RDM_ERROR_NO_DRIVER");
        let attempts = hip["attempts"].as_array().expect("a list");
        for name in [
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
            "libamdhip64.so",
        ] {
            let attempt = attempts
                .iter()
                .find(|attempt| attempt["name"] == name)
                .unwrap_or_else(|| panic!("no {name} in {attempts:#?}"));
            assert_eq!(attempt["used"], false);
            let result = attempt["result"].as_str().expect("a text");
            assert!(result.contains("No such file or directory"), "{attempt:#}");
        }
    }
    if cfg!(feature = "cuda") {
        report.expect_words(
            "cuda_driver_library_missing",
            &["libcuda.so.1"],
            &["NVIDIA's driver", "--gpus all"],
        );
    }
    // The simulated GPUs need a compiler, and there is none either.
    let report = root
        .examine("a_machine_with_nothing", None, &[("RDM_DRIVER", "sim")])
        .expect("it ran before");
    report.expect(&["sim_compiler_missing"], false);
    report.expect_words(
        "sim_compiler_missing",
        &["compiler"],
        &["g++", "RDM_SIM_COMPILER"],
    );
}

/// AMD's own runtime, where it is installed and there is no GPU for it.
#[test]
#[cfg(feature = "rocm")]
fn amds_runtime_without_a_gpu() {
    let known = Command::new("/sbin/ldconfig").arg("-p").output();
    let installed =
        known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains("libamdhip64.so"));
    if !installed || Path::new("/dev/kfd").exists() || Path::new("/dev/nvidiactl").exists() {
        tell(
            "SKIPPED: amds_runtime_without_a_gpu: AMD's runtime is not installed, or there is a GPU",
        );
        return;
    }
    let report = examine(&[]);
    let mut ids = vec!["no_gpu", "hip_no_device"];
    if cfg!(feature = "cuda") {
        ids.push("cuda_driver_library_missing");
    }
    report.expect(&ids, false);
    report.expect_words(
        "hip_no_device",
        &["works and reports no device"],
        &[
            "--device=/dev/kfd --device=/dev/dri",
            "rocminfo",
            "RDM_DRIVER=sim",
        ],
    );
    assert_eq!(report.json["uses"], "hip");
    let hip = report.driver("hip");
    assert_eq!(hip["opened"], true);
    assert_eq!(hip["error"], Value::Null);
    assert_eq!(hip["device_count"], 0);
    assert!(
        hip["versions"]["runtime"]
            .as_i64()
            .is_some_and(|version| version >= 50_000_000)
    );
    let runtime = hip["runtime_path"].as_str().expect("a text");
    let attempts = hip["attempts"].as_array().expect("a list");
    assert!(
        attempts
            .iter()
            .any(|attempt| attempt["used"] == true && attempt["result"] == runtime),
        "{attempts:#?}"
    );
    // Its compiler works without a GPU.
    assert_eq!(hip["compiles"][0]["architecture"], "gfx90a");
    assert_eq!(hip["compiles"][0]["error"], Value::Null);
    // With simulated GPUs asked for, all is well.
    let report = examine(&[("RDM_DRIVER", "sim")]);
    report.expect(&[], true);
    assert_eq!(report.json["uses"], "sim");
}

/// The stand-in ends the process at any call that would use a device.
#[test]
#[cfg(feature = "rocm")]
fn a_gpu_is_described_and_not_touched() {
    let library = folder("gpu").join("libamdhip64.so.7");
    let options = [
        "-DFAKE_VERSION=70100000",
        "-DFAKE_WITH_COMPILER",
        "-DFAKE_DEVICES=2",
    ];
    fake(&library, "libamdhip64.so.7", &options);
    let report = examine(&[
        ("RDM_HIP_LIBRARY", text(&library)),
        ("ROCR_VISIBLE_DEVICES", "GPU-1a2b,3"),
        ("HIP_VISIBLE_DEVICES", "1,0"),
    ]);
    // The stand-in describes its first device alone.
    report.expect(&["hip_device_unreadable"], true);
    report.expect_words(
        "hip_device_unreadable",
        &["device 1", "101"],
        &["device 1", "rocminfo"],
    );
    assert_eq!(report.json["uses"], "hip");
    let hip = report.driver("hip");
    assert_eq!(hip["runtime_path"], text(&library));
    assert_eq!(hip["versions"]["runtime"], 70_100_000);
    assert_eq!(hip["device_count"], 2);
    let device = &hip["devices"][0];
    assert_eq!(device["name"], "fake of the newer layout");
    assert_eq!(device["architecture"], "gfx90a:sramecc+:xnack-");
    assert_eq!(device["total_memory_bytes"], 6_000_000_000_u64);
    assert_eq!(device["warp_size"], 64);
    assert_eq!(device["multiprocessor_count"], 104);
    assert_eq!(device["error"], Value::Null);
    assert_eq!(hip["compiles"][0]["architecture"], "gfx90a:sramecc+:xnack-");
    let outer = report.variable("ROCR_VISIBLE_DEVICES");
    assert_eq!(
        outer["selects"]["devices"],
        serde_json::json!(["GPU-1a2b", "3"])
    );
    assert_eq!(outer["selects"]["isolates"], serde_json::json!(["hip"]));
    let inner = report.variable("HIP_VISIBLE_DEVICES");
    assert_eq!(inner["selects"]["devices"], serde_json::json!(["1", "0"]));
    assert_eq!(inner["selects"]["isolates"], serde_json::json!([]));

    let page = doctor(
        &[],
        &[
            ("RDM_HIP_LIBRARY", text(&library)),
            ("HIP_VISIBLE_DEVICES", "0,x"),
        ],
    );
    assert_eq!(page.status.code(), Some(0));
    let page = String::from_utf8(page.stdout).expect("text");
    for line in [
        "  ✓ hip: 2 devices; driver 7.1.0, runtime 7.1.0, compiler 70109.0",
        "      ✓ device 0: fake of the newer layout, gfx90a:sramecc+:xnack-, 5.6 GiB",
        "  ! HIP_VISIBLE_DEVICES=\"0,x\" holds \"x\", which names no device: what comes from there on is \
         hidden [mask_invalid]",
        "healthy: a process started here uses the driver hip",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "no line \"{line}\" in\n{page}"
        );
    }
}

#[test]
#[cfg(feature = "rocm")]
fn a_runtime_without_a_device() {
    let library = folder("no-device").join("libamdhip64.so.6");
    let options = [
        "-DFAKE_VERSION=60100000",
        "-DFAKE_WITH_COMPILER",
        "-DFAKE_DEVICES=0",
        "-DFAKE_INIT=100",
    ];
    fake(&library, "libamdhip64.so.6", &options);
    let report = examine_hip(&[("RDM_HIP_LIBRARY", text(&library))]);
    assert_eq!(report.ids().len(), 1, "{:#}", report.json);
    assert!(report.ids()[0].starts_with("hip_") && report.code == Some(1));
}

#[test]
#[cfg(feature = "rocm")]
fn nodes_that_this_user_may_not_open() {
    let test = "nodes_that_this_user_may_not_open";
    let root = Root::new("denied");
    fake(
        &root.folder.join("lib/libamdhip64.so.7"),
        "libamdhip64.so.7",
        &["-DFAKE_VERSION=70100000", "-DFAKE_WITH_COMPILER"],
    );
    fs::create_dir_all(root.folder.join("etc")).expect("a folder");
    fs::write(root.folder.join("etc/group"), "root:x:0:\nrender:x:105:\n").expect("a file");
    let node = root.folder.join("dev/kfd");
    fs::create_dir_all(root.folder.join("dev")).expect("a folder");
    fs::write(&node, "").expect("a file");
    fs::set_permissions(&node, fs::Permissions::from_mode(0o660)).expect("its mode can be set");
    let _ = chown(&node, Some(0), Some(105));
    let environment = [
        ("RDM_DRIVER", "hip"),
        ("RDM_HIP_LIBRARY", "/lib/libamdhip64.so.7"),
    ];
    let Some(report) = root.examine(test, Some(65534), &environment) else {
        return;
    };
    report.expect(&["hip_permission_denied"], false);
    report.expect_words(
        "hip_permission_denied",
        &["/dev/kfd", "0660", "group render", "65534"],
        &["usermod -aG render", "--group-add 105"],
    );
    assert_eq!(
        report.driver("hip")["error"]["status"],
        "RDM_ERROR_PERMISSION"
    );
    let kfd = report.node("/dev/kfd");
    assert_eq!(kfd["exists"], true);
    assert_eq!(kfd["accessible"], false);
    assert_eq!(kfd["mode"], "0660");
    assert_eq!(kfd["group"], "render");
    // One who may open it has a GPU.
    let report = root
        .examine(test, None, &environment)
        .expect("it ran before");
    report.expect(&[], true);
}

/// So that a binary with every driver starts on a machine with none.
#[test]
fn the_program_links_to_no_gpu_library() {
    let listed = Command::new("readelf").args(["-dW", PROGRAM]).output();
    let listed = listed.expect("readelf comes with the C compiler");
    assert!(listed.status.success());
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let needed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .map(|line| line.rsplit(['[', ']']).nth(1).expect("a name in brackets"))
        .collect();
    assert!(needed.contains(&"libc.so.6"), "{text}");
    for library in needed {
        let system = [
            "libc.so",
            "libm.so",
            "libgcc_s.so",
            "libdl.so",
            "libpthread.so",
            "librt.so",
            "ld-linux",
        ];
        assert!(
            system.iter().any(|name| library.starts_with(name)),
            "the program needs {library} to start"
        );
    }
}
