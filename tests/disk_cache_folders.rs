//! The folder of the cache on disk: where it is, what makes it unfit, and that kernels run all the same.
//!
//! These are field log 25 (a home that can not be written to breaks the first compile) and its kin.
//! Always on simulated GPUs. What needs another user, a mount or root's rights skips with a message
//! where it can not be had.

mod common;
#[path = "common/disk_cache.rs"]
mod disk_cache_support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::tell;
use disk_cache_support::{
    Folder, Kernels, Report, be_the_child, files_with_ending, mode_of, run, run_in, user_of,
};

const COMPLAINT: &str = "no cache of compiled kernels on disk";
const OTHER_USER: u32 = 54_321;

#[test]
#[ignore = "the child"]
fn child_uses_kernels() {
    be_the_child();
}

/// Two kernels, so that a complaint for each would show.
fn run_with(environment: &[(&str, &str)]) -> Report {
    run(user_of(Kernels::new(0, 2), environment))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The kernels ran from memory, and it was said once, with the reason and the variable that helps.
fn expect_complaint(report: &Report, reason: &str) {
    assert_eq!((report.compiled, report.found), (2, 0), "{}", report.stderr);
    assert_eq!(report.lines_with(COMPLAINT), 1, "{}", report.stderr);
    let line = report.stderr.lines().find(|line| line.contains(COMPLAINT));
    let line = line.expect("there is one");
    assert!(line.contains(reason), "no \"{reason}\" in: {line}");
    assert!(line.contains("RDM_CACHE_DIR"), "{line}");
}

/// The kernels are in this folder, private to the user, and nothing was said.
fn expect_entries(report: &Report, folder: &Path) {
    assert_eq!((report.compiled, report.found), (2, 0), "{}", report.stderr);
    assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
    assert_eq!(mode_of(folder), 0o700);
    let entries = files_with_ending(folder, ".code");
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|path| mode_of(path) == 0o600));
    assert_eq!(mode_of(&folder.join("lock")), 0o600);
}

// ---- Where it is ---------------------------------------------------------------------------------

#[test]
fn the_folder_is_the_platforms_own() {
    let root = Folder::new();
    let home = root.path().join("home");
    let xdg = root.path().join("xdg");
    let chosen = root.path().join("not/yet there/with spaces");
    fs::create_dir(&home).unwrap();
    let report = run_with(&[("HOME", text(&home))]);
    expect_entries(&report, &home.join(".cache/rocm-device-map"));
    let both = [("HOME", text(&home)), ("XDG_CACHE_HOME", text(&xdg))];
    expect_entries(&run_with(&both), &xdg.join("rocm-device-map"));
    let mut all = both.to_vec();
    all.push(("RDM_CACHE_DIR", text(&chosen)));
    expect_entries(&run_with(&all), &chosen);
    // An XDG path that is not absolute is none, by the convention.
    let relative = [("HOME", text(&home)), ("XDG_CACHE_HOME", "relative")];
    assert_eq!(run_with(&relative).found, 2);
    // A trailing slash is the same folder.
    let slash = format!("{}/", text(&chosen));
    assert_eq!(run_with(&[("RDM_CACHE_DIR", &slash)]).found, 2);
}

#[test]
fn field_log_25_no_home_is_no_cache_and_said_once() {
    expect_complaint(&run_with(&[]), "HOME are not set");
    expect_complaint(&run_with(&[("HOME", "")]), "HOME are not set");
    expect_complaint(
        &run_with(&[("HOME", "/proc/no/such/home")]),
        "/proc/no/such/home",
    );
}

#[test]
fn an_empty_variable_turns_it_off_without_a_word() {
    let root = Folder::new();
    let report = run_with(&[("RDM_CACHE_DIR", ""), ("HOME", text(root.path()))]);
    assert_eq!((report.compiled, report.found), (2, 0));
    assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn a_path_that_can_not_be_one_is_refused() {
    let root = Folder::new();
    let mut command = user_of(Kernels::new(0, 2), &[("RDM_CACHE_DIR", "cache")]);
    command.current_dir(root.path());
    expect_complaint(&run(command), "does not begin with");
    assert_eq!(
        fs::read_dir(root.path()).unwrap().count(),
        0,
        "nothing is written elsewhere"
    );

    let long_name = format!("{}/{}", text(root.path()), "n".repeat(300));
    expect_complaint(
        &run_with(&[("RDM_CACHE_DIR", &long_name)]),
        "File name too long",
    );
    let long_path = format!("{}{}", text(root.path()), "/part".repeat(1000));
    expect_complaint(&run_with(&[("RDM_CACHE_DIR", &long_path)]), "longer than");
    let file = root.path().join("file");
    fs::write(&file, "no folder").unwrap();
    expect_complaint(
        &run_with(&[("RDM_CACHE_DIR", text(&file))]),
        "Not a directory",
    );
    let below = file.join("below");
    expect_complaint(
        &run_with(&[("RDM_CACHE_DIR", text(&below))]),
        "Not a directory",
    );
    assert_eq!(fs::read(&file).unwrap(), b"no folder");
}

#[test]
fn a_kernel_name_of_4000_bytes_gives_a_name_of_fixed_length() {
    let root = Folder::new();
    let folder = root.path().join("cache");
    let environment = [
        ("RDM_CACHE_DIR", text(&folder)),
        ("RDM_TEST_NAME_LENGTH", "4000"),
    ];
    expect_entries(&run_with(&environment), &folder);
    assert_eq!(run_with(&environment).found, 2);
    for path in files_with_ending(&folder, ".code") {
        assert_eq!(path.file_name().unwrap().len(), 32 + ".code".len());
    }
}

// ---- Whose it is ---------------------------------------------------------------------------------

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let root = Folder::new();
    let folder = root.path().join("shared");
    fs::create_dir(&folder).unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o722] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let report = run_with(&[("RDM_CACHE_DIR", text(&folder))]);
        expect_complaint(&report, "other users can write to it");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
    // Others may read it.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run_in(&folder, Kernels::new(0, 2)).lines_with("cache"), 0);
    assert_eq!(run_in(&folder, Kernels::new(0, 2)).found, 2);
}

/// Whether this process may do what only root may.
fn is_root(test: &str) -> bool {
    let probe = Folder::new();
    let is_root = chown(probe.path(), Some(OTHER_USER), None).is_ok();
    if !is_root {
        tell(&format!(
            "{test} is skipped: only root can make another user's folder"
        ));
    }
    is_root
}

#[test]
fn a_folder_or_file_of_another_user_is_refused() {
    if !is_root("a_folder_or_file_of_another_user_is_refused") {
        return;
    }
    let root = Folder::new();
    let folder = root.path().join("cache");
    run_in(&folder, Kernels::new(0, 2));
    let entry = files_with_ending(&folder, ".code").remove(0);
    chown(&entry, Some(OTHER_USER), None).unwrap();
    let report = run_in(&folder, Kernels::new(0, 2));
    assert_eq!((report.compiled, report.found), (1, 1));
    assert_eq!(report.lines_with("is damaged or not ours"), 1);
    assert_eq!(run_in(&folder, Kernels::new(0, 2)).found, 2);

    chown(&folder, Some(OTHER_USER), None).unwrap();
    let report = run_with(&[("RDM_CACHE_DIR", text(&folder))]);
    expect_complaint(&report, "it belongs to another user");
    assert_eq!(files_with_ending(&folder, ".code").len(), 2);
}

/// The same as another user than root, for whom permissions count. None, with a message, where that
/// can not be had.
fn run_as_other_user(test: &str, folder: &Path) -> Option<Report> {
    if !is_root(test) {
        return None;
    }
    let runs = Command::new(std::env::current_exe().unwrap())
        .arg("--list")
        .uid(OTHER_USER)
        .gid(OTHER_USER)
        .output();
    if !runs.is_ok_and(|output| output.status.success()) {
        tell(&format!(
            "{test} is skipped: another user can not run this test binary"
        ));
        return None;
    }
    let mut command = user_of(Kernels::new(0, 2), &[("RDM_CACHE_DIR", text(folder))]);
    command.uid(OTHER_USER).gid(OTHER_USER).current_dir("/");
    Some(run(command))
}

#[test]
fn field_log_25_a_folder_that_can_not_be_made_is_no_cache() {
    const NAME: &str = "field_log_25_a_folder_that_can_not_be_made_is_no_cache";
    let root = Folder::new();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    if let Some(report) = run_as_other_user(NAME, &root.path().join("new")) {
        expect_complaint(&report, "No such file or directory");
    }
}

#[test]
fn field_log_25_a_folder_without_write_permission_is_read_and_not_written() {
    const NAME: &str = "field_log_25_a_folder_without_write_permission_is_read_and_not_written";
    let root = Folder::new();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let folder = root.path().join("cache");
    fs::create_dir(&folder).unwrap();
    if !is_root(NAME) {
        return;
    }
    chown(&folder, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let Some(report) = run_as_other_user(NAME, &folder) else {
        return;
    };
    assert_eq!((report.compiled, report.found), (2, 0));
    fs::remove_file(&files_with_ending(&folder, ".code")[0]).unwrap();
    fs::remove_file(folder.join("lock")).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let report = run_as_other_user(NAME, &folder).unwrap();
    // What is there is used; what is not can not be stored, which is said once.
    assert_eq!((report.compiled, report.found), (1, 1), "{}", report.stderr);
    assert_eq!(report.lines_with(COMPLAINT), 1, "{}", report.stderr);
    assert_eq!(
        report.lines_with("Permission denied"),
        1,
        "{}",
        report.stderr
    );
}

// ---- What it is on -------------------------------------------------------------------------------

/// A file system in memory, unmounted at its end.
struct Mount(PathBuf);

impl Mount {
    /// None, with a message, where it can not be had.
    fn new(test: &str, path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .output();
        if output.is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        tell(&format!(
            "{test} is skipped: no file system can be mounted here"
        ));
        None
    }

    fn make_read_only(&self) {
        let mut command = Command::new("mount");
        command.args(["-o", "remount,ro"]).arg(&self.0);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn field_log_25_a_read_only_file_system_is_read_and_not_written() {
    const NAME: &str = "field_log_25_a_read_only_file_system_is_read_and_not_written";
    let root = Folder::new();
    let folder = root.path().join("cache");
    let Some(mount) = Mount::new(NAME, &folder, "size=4m,mode=700") else {
        return;
    };
    run_in(&folder, Kernels::new(0, 1));
    mount.make_read_only();
    let report = run_in(&folder, Kernels::new(0, 3));
    assert_eq!((report.compiled, report.found), (2, 1), "{}", report.stderr);
    assert_eq!(report.lines_with(COMPLAINT), 1, "{}", report.stderr);
    assert_eq!(
        report.lines_with("Read-only file system"),
        1,
        "{}",
        report.stderr
    );
    let below = folder.join("below");
    let report = run_with(&[("RDM_CACHE_DIR", text(&below))]);
    expect_complaint(&report, text(&below));
}

#[test]
fn field_log_25_a_full_file_system_takes_what_fits_and_keeps_no_parts() {
    const NAME: &str = "field_log_25_a_full_file_system_takes_what_fits_and_keeps_no_parts";
    const KERNELS: usize = 12;
    let root = Folder::new();
    let folder = root.path().join("cache");
    let Some(_mount) = Mount::new(NAME, &folder, "size=100k,mode=700") else {
        return;
    };
    let report = run_in(&folder, Kernels::new(0, KERNELS));
    assert_eq!(report.compiled, KERNELS as u64);
    assert_eq!(report.lines_with(COMPLAINT), 1, "{}", report.stderr);
    assert_eq!(
        report.lines_with("No space left on device"),
        1,
        "{}",
        report.stderr
    );
    assert_eq!(files_with_ending(&folder, ".part").len(), 0);
    let stored = files_with_ending(&folder, ".code").len();
    assert!((1..KERNELS).contains(&stored), "{stored} entries fit");
    assert_eq!(
        run_in(&folder, Kernels::new(0, KERNELS)).found,
        stored as u64
    );
}

#[test]
fn a_folder_that_vanishes_during_the_run_is_no_failure() {
    let root = Folder::new();
    let folder = root.path().join("cache");
    let mut command = user_of(Kernels::new(0, 4), &[("RDM_TEST_REMOVE_FOLDER", "1")]);
    command.env("RDM_CACHE_DIR", &folder);
    let report = run(command);
    assert_eq!((report.compiled, report.found), (4, 0));
    // It is made again each time, and so there is nothing to complain of.
    assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
}

#[test]
fn what_is_in_the_place_of_the_lock_file_is_no_failure() {
    let root = Folder::new();
    let folder = root.path().join("cache");
    fs::create_dir_all(folder.join("lock")).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let report = run_with(&[("RDM_CACHE_DIR", text(&folder))]);
    expect_complaint(&report, "its lock file can not be opened");
}
