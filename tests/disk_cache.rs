//! The cache of compiled kernels on disk, as the processes of one user share it: one compile for each
//! kernel in all, whatever ends or damages what.
//!
//! Always on simulated GPUs, since no driver has a part in it but its compiler. Every process checks
//! what each of its kernels computes. `RDM_TEST_LONG=1` kills more.

#[path = "common/disk_cache.rs"]
mod disk_cache_support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use disk_cache_support::{
    Folder, Kernels, Random, be_the_child, files_with_ending, mode_of, run_in, user_of, wait_for,
};
use rocm_device_map::cache;

#[test]
#[ignore = "the child"]
fn child_uses_kernels() {
    be_the_child();
}

fn start_in(folder: &Path, kernels: Kernels) -> Child {
    let mut command = user_of(kernels, &[]);
    command.env("RDM_CACHE_DIR", folder);
    command.spawn().expect("the child can be started")
}

fn is_long() -> bool {
    std::env::var_os("RDM_TEST_LONG").is_some_and(|value| value == "1")
}

fn expect_no_temporary_files(folder: &Path) {
    let left = files_with_ending(folder, ".part");
    assert!(left.is_empty(), "left behind: {left:?}");
}

// ---- Many processes ------------------------------------------------------------------------------

#[test]
fn eight_processes_on_an_empty_cache_compile_each_of_32_kernels_once() {
    const PROCESSES: usize = 8;
    const KERNELS: usize = 32;
    let folder = Folder::new();
    let children: Vec<Child> = (0..PROCESSES)
        .map(|process| {
            // Half of them run after the same kernels, the others begin elsewhere.
            let rotation = if process % 2 == 0 { 0 } else { process * 4 };
            let kernels = Kernels {
                rotation,
                ..Kernels::new(0, KERNELS)
            };
            start_in(folder.path(), kernels)
        })
        .collect();
    let reports: Vec<_> = children.into_iter().map(wait_for).collect();
    let compiled: u64 = reports.iter().map(|report| report.compiled).sum();
    let found: u64 = reports.iter().map(|report| report.found).sum();
    assert_eq!(compiled, KERNELS as u64);
    assert_eq!(found, ((PROCESSES - 1) * KERNELS) as u64);
    for report in &reports {
        assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
    }
    let entries = files_with_ending(folder.path(), ".code");
    assert_eq!(entries.len(), KERNELS);
    assert!(entries.iter().all(|path| mode_of(path) == 0o600));
    expect_no_temporary_files(folder.path());
}

/// Waits until there are other files with this ending than before, or the child has ended.
fn wait_for_file(folder: &Path, ending: &str, before: &[PathBuf], child: &mut Child) {
    let is_new = |path: &PathBuf| !before.contains(path);
    while child.try_wait().unwrap().is_none()
        && !files_with_ending(folder, ending).iter().any(is_new)
    {
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn field_log_24_processes_that_start_together_survive_one_that_is_killed() {
    const PROCESSES: usize = 16;
    let folder = Folder::new();
    // The first one has the turn, and goes while it compiles or writes.
    let mut first = start_in(folder.path(), Kernels::new(0, 1));
    wait_for_file(folder.path(), "lock", &[], &mut first);
    let others: Vec<Child> = (0..PROCESSES)
        .map(|_| start_in(folder.path(), Kernels::new(0, 1)))
        .collect();
    first.kill().unwrap();
    first.wait().unwrap();
    let compiled: u64 = others
        .into_iter()
        .map(|child| wait_for(child).compiled)
        .sum();
    assert!(compiled <= 1, "{compiled} compiles of one kernel");
    assert_eq!(run_in(folder.path(), Kernels::new(0, 1)).compiled, 0);
    expect_no_temporary_files(folder.path());
}

#[test]
fn a_process_killed_at_any_moment_leaves_a_cache_that_the_next_one_uses() {
    let rounds = if is_long() { 400 } else { 40 };
    const KERNELS: usize = 4;
    let folder = Folder::new();
    let mut random = Random(24);
    let mut killed_while_writing = 0;
    for round in 0..rounds {
        let first = round * KERNELS;
        let before = files_with_ending(folder.path(), ".part");
        let mut child = start_in(folder.path(), Kernels::new(first, KERNELS));
        // Some right after a file shows up, which is while it is written; others at any time.
        match round % 3 {
            0 => wait_for_file(folder.path(), ".part", &before, &mut child),
            1 => thread::sleep(Duration::from_millis(random.below(250) as u64)),
            _ => {
                wait_for_file(folder.path(), ".part", &before, &mut child);
                thread::sleep(Duration::from_micros(random.below(3000) as u64));
            }
        }
        let _ = child.kill();
        child.wait().unwrap();
        let after = files_with_ending(folder.path(), ".part");
        killed_while_writing += usize::from(after.iter().any(|path| !before.contains(path)));
        // No reader sees a part of an entry, and no turn outlives its process.
        if round % 4 == 3 {
            let kernels = Kernels::new(first, KERNELS);
            let report = run_in(folder.path(), kernels);
            assert_eq!(report.compiled + report.found, KERNELS as u64);
            assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
            assert_eq!(run_in(folder.path(), kernels).compiled, 0);
        }
    }
    assert!(
        killed_while_writing > 0,
        "none of {rounds} was killed while it wrote: this tests nothing"
    );
    // What the killed ones left goes with the next entry that is stored.
    run_in(folder.path(), Kernels::new(1_000_000, 1));
    expect_no_temporary_files(folder.path());
}

// ---- Damage --------------------------------------------------------------------------------------

const DAMAGES: usize = 14;

/// Damages an entry in one of so many ways. `other` is a whole entry for another key.
fn damage(path: &Path, way: usize, random: &mut Random, other: &[u8]) {
    let whole = fs::read(path).expect("the entry is there");
    let mut bytes = whole.clone();
    let at = random.below(bytes.len());
    match way {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => bytes.extend((0..=random.below(5000)).map(|_| 0)),
        3 => bytes.clear(),
        4 => bytes.fill(0),
        5 => bytes
            .iter_mut()
            .for_each(|byte| *byte = random.below(256) as u8),
        6 => {
            // Some bytes of the page at `at` are not zero, or the next ones are.
            let end = bytes.len().min(at + 4096);
            bytes[at..end].fill(0);
            bytes[0] = 0;
        }
        7 => bytes = other.to_vec(),
        8 => {
            // An older layout: another number in the first bytes.
            bytes[7] = b'0';
        }
        9 => {
            let from = random.below(bytes.len());
            bytes.swap(at, from);
            bytes[at] = bytes[at].wrapping_add(1);
        }
        _ => {}
    }
    fs::remove_file(path).unwrap();
    match way {
        10 => {
            fs::create_dir(path).unwrap();
            fs::create_dir(path.join("inner")).unwrap();
            fs::write(path.join("inner/file"), "in the way").unwrap();
        }
        11 => symlink(path, path).unwrap(),
        12 => {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo is there").success());
        }
        13 => {
            fs::write(path, &whole).unwrap();
            let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            fs::set_permissions(path, open_to_all).unwrap();
        }
        _ => {
            assert_ne!(bytes, whole, "way {way} changed nothing");
            fs::write(path, &bytes).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(path, private).unwrap();
        }
    }
}

#[test]
fn two_hundred_damaged_entries_are_detected_and_replaced() {
    const ENTRIES: usize = 20;
    const BATCHES: usize = 10;
    let folder = Folder::new();
    let kernels = Kernels::new(0, ENTRIES);
    let mut random = Random(200);
    assert_eq!(run_in(folder.path(), kernels).compiled, ENTRIES as u64);
    for batch in 0..BATCHES {
        let entries = files_with_ending(folder.path(), ".code");
        assert_eq!(entries.len(), ENTRIES);
        let wholes: Vec<Vec<u8>> = entries.iter().map(|path| fs::read(path).unwrap()).collect();
        for (index, path) in entries.iter().enumerate() {
            let way = (batch * ENTRIES + index) % DAMAGES;
            damage(path, way, &mut random, &wholes[(index + 1) % ENTRIES]);
        }
        let report = run_in(folder.path(), kernels);
        assert_eq!(report.compiled, ENTRIES as u64, "batch {batch}");
        assert_eq!(
            report.lines_with("is damaged or not ours; it is compiled anew"),
            ENTRIES,
            "batch {batch}: {}",
            report.stderr
        );
        let report = run_in(folder.path(), kernels);
        assert_eq!((report.compiled, report.found), (0, ENTRIES as u64));
        assert_eq!(report.lines_with("cache"), 0, "{}", report.stderr);
        let entries = files_with_ending(folder.path(), ".code");
        assert!(entries.iter().all(|path| mode_of(path) == 0o600));
    }
    expect_no_temporary_files(folder.path());
}

#[test]
fn a_single_bit_anywhere_is_detected() {
    let folder = Folder::new();
    run_in(folder.path(), Kernels::new(0, 1));
    let entry = files_with_ending(folder.path(), ".code").remove(0);
    let whole = fs::read(&entry).unwrap();
    // SAFETY: no other test of this file reads the variable in this process.
    unsafe { std::env::set_var("RDM_CACHE_DIR", folder.path()) };
    assert_eq!(cache::check(false, |entry| assert!(entry.is_valid)), Ok(0));
    let file = OpenOptions::new().write(true).open(&entry).unwrap();
    // Each byte of the header and the key, and then some of the code.
    let mut random = Random(7);
    let places = (0..600).chain(
        (0..200)
            .map(|_| random.below(whole.len()))
            .collect::<Vec<_>>(),
    );
    for place in places {
        for bit in [0, 7] {
            file.write_all_at(&[whole[place] ^ (1 << bit)], place as u64)
                .unwrap();
            assert_eq!(
                cache::check(false, |_| ()),
                Ok(1),
                "byte {place}, bit {bit}"
            );
        }
        file.write_all_at(&[whole[place]], place as u64).unwrap();
    }
    assert_eq!(cache::check(false, |_| ()), Ok(0));
}
