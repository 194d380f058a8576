//! Runtimes of AMD's name that can not be used, each in its own way.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::*;

/// Files that hide whatever this system has under the runtime's names, since the loader comes upon them
/// first and can not load them.
fn hide(folder: &Path) {
    for name in [
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
        "libamdhip64.so",
        "libhiprtc.so.7",
        "libhiprtc.so",
    ] {
        let junk =
            "this is no library, and long enough for the loader to read a whole header from it";
        fs::write(folder.join(name), junk).expect("a file can be written");
    }
}

#[test]
fn a_library_that_can_not_be_used() {
    if Path::new("/opt/rocm/lib").is_dir() {
        tell("SKIPPED: a_library_that_can_not_be_used: this system has a ROCm in /opt/rocm");
        return;
    }
    let parent = folder("broken");
    let case = |name: &str| {
        let folder = parent.join(name);
        fs::create_dir_all(&folder).expect("a folder can be made");
        hide(&folder);
        folder
    };
    let examine_in = |folder: &Path| examine_hip(&[("LD_LIBRARY_PATH", text(folder))]);
    let whole = ["-DFAKE_VERSION=70100000", "-DFAKE_WITH_COMPILER"];

    let broken = case("junk");
    let report = examine_in(&broken);
    report.expect(&["hip_library_broken"], false);
    report.expect_words(
        "hip_library_broken",
        &["libamdhip64", "invalid ELF header"],
        &["this system's processor"],
    );

    let old = case("old");
    for (file, major) in [("libamdhip64.so", 4), ("libamdhip64.so.5", 8)] {
        let version = format!("-DFAKE_VERSION={major}0000000");
        fake(
            &old.join(file),
            &format!("libamdhip64.so.{major}"),
            &[&version],
        );
    }
    let report = examine_in(&old);
    report.expect(&["hip_version_unsupported"], false);
    report.expect_words(
        "hip_version_unsupported",
        &["major version 4", "major version 8", "5 to 7"],
        &["ROCm 5, 6 or 7", "RDM_HIP_LIBRARY"],
    );

    let lacking = case("lacking");
    fake(
        &lacking.join("libamdhip64.so.7"),
        "libamdhip64.so.7",
        &[whole[0], whole[1], "-DFAKE_LACKS_EVENT"],
    );
    let report = examine_in(&lacking);
    report.expect(&["hip_symbol_missing"], false);
    report.expect_words(
        "hip_symbol_missing",
        &["hipEventRecord", text(&lacking)],
        &["reinstall"],
    );

    let depending = case("depending");
    let dependency = depending.join("libmissing_dependency.so");
    fake(
        &dependency,
        "libmissing_dependency.so",
        &["-DFAKE_VERSION=0", "-DFAKE_COMPILER"],
    );
    fake(
        &depending.join("libamdhip64.so.6"),
        "libamdhip64.so.6",
        &[
            "-DFAKE_VERSION=60100000",
            "-Wl,--no-as-needed",
            text(&dependency),
        ],
    );
    fs::remove_file(&dependency).expect("it can be removed");
    let report = examine_in(&depending);
    report.expect(&["hip_dependency_missing"], false);
    report.expect_words(
        "hip_dependency_missing",
        &["libamdhip64.so.6", "libmissing_dependency.so"],
        &["libmissing_dependency.so"],
    );

    let alone = case("alone");
    fake(
        &alone.join("libamdhip64.so.7"),
        "libamdhip64.so.7",
        &whole[..1],
    );
    let report = examine_in(&alone);
    report.expect(&["hip_compiler_missing"], false);
    report.expect_words(
        "hip_compiler_missing",
        &["no kernel can be compiled"],
        &["hiprtc"],
    );
}

#[test]
fn a_runtime_that_fails() {
    let parent = folder("failing");
    let examine_with = |name: &str, options: &[&str], arguments: &[&str]| {
        let library = parent.join(name).join("libamdhip64.so.7");
        let mut all = vec!["-DFAKE_WITH_COMPILER"];
        all.extend(options);
        if !options
            .iter()
            .any(|option| option.starts_with("-DFAKE_VERSION"))
        {
            all.push("-DFAKE_VERSION=70100000");
        }
        fake(&library, "libamdhip64.so.7", &all);
        let environment = [("RDM_HIP_LIBRARY", text(&library)), ("RDM_DRIVER", "hip")];
        Report::of(&doctor(&[&["--json"], arguments].concat(), &environment)).without_no_gpu()
    };

    let report = examine_with("lies", &["-DFAKE_VERSION=80000000"], &[]);
    report.expect(&["hip_version_unsupported"], false);
    report.expect_words(
        "hip_version_unsupported",
        &["80000000"],
        &["ROCm 5, 6 or 7"],
    );

    let report = examine_with("too-old", &["-DFAKE_INIT=35"], &[]);
    report.expect(&["hip_kernel_driver_too_old"], false);
    report.expect_words(
        "hip_kernel_driver_too_old",
        &["hipInit returned 35"],
        &["amdgpu"],
    );
    assert_eq!(report.driver("hip")["error"]["driver_code"], 35);

    let report = examine_with("init", &["-DFAKE_INIT=999"], &[]);
    report.expect(&["hip_init_failed"], false);
    report.expect_words(
        "hip_init_failed",
        &["hipInit returned 999"],
        &["rocminfo", "dmesg"],
    );

    let report = examine_with("crash", &["-DFAKE_INIT=*(volatile int *)0"], &[]);
    report.expect(&["hip_crashed"], false);
    report.expect_words(
        "hip_crashed",
        &["crashed with signal 11 (SIGSEGV) while it was opened"],
        &["reinstall", "RDM_DRIVER"],
    );
    assert_eq!(report.driver("hip")["error"]["status"], "CRASHED");

    let start = Instant::now();
    let report = examine_with(
        "hang",
        &["-DFAKE_INIT=({ for (;;) sleep(1); 0; })"],
        &["--timeout", "1"],
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    report.expect(&["hip_hung"], false);
    // What was tried is known although the opening never came back.
    report.expect_words(
        "hip_hung",
        &["within 1 s while it was opened", "hang/libamdhip64.so.7"],
        &["dmesg"],
    );

    let report = examine_with("exit", &["-DFAKE_INIT=(exit(3), 0)"], &[]);
    report.expect(&["hip_crashed"], false);
    report.expect_words("hip_crashed", &["ended the process with code 3"], &[]);

    let report = examine_with("no-code", &["-DFAKE_CODE_SIZE=0"], &[]);
    report.expect(&["hip_compile_failed"], false);
    report.expect_words(
        "hip_compile_failed",
        &["gfx90a:sramecc+:xnack-", "no code"],
        &["hiprtc", "libamd_comgr"],
    );

    let report = examine_with("teardown", &["-DFAKE_CRASH_AT_EXIT"], &[]);
    report.expect(&["hip_crashes_at_exit"], true);
    report.expect_words(
        "hip_crashes_at_exit",
        &["signal 6 (SIGABRT) as the process ended"],
        &["update"],
    );
}

#[test]
fn a_variable_that_names_no_library() {
    let report = examine_hip(&[("RDM_HIP_LIBRARY", "/no/such/libamdhip64.so")]);
    report.expect(&["hip_library_variable_wrong"], false);
    report.expect_words(
        "hip_library_variable_wrong",
        &["RDM_HIP_LIBRARY", "/no/such/libamdhip64.so", "No such file"],
        &["unset it"],
    );
    assert_eq!(report.variable("RDM_HIP_LIBRARY")["valid"], false);
}
