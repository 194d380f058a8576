//! What the tests of the disk cache share: folders, and processes that use kernels with them.

#![allow(dead_code)]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rocm_device_map::{
    Config, CopyKind, Device, DeviceMemory, HostMemory, KernelArgument, LaunchConfig, Module,
    ModuleSource, Stream, configure,
};

pub const CHILD: &str = "child_uses_kernels";
const CHILD_VARIABLE: &str = "RDM_TEST_KERNELS";

/// A folder of this test's own, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rdm-disk-cache-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder can be made");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a child was to do: use the kernels from `first` on, beginning with the one at `rotation`.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub first: usize,
    pub count: usize,
    pub rotation: usize,
}

impl Kernels {
    pub fn new(first: usize, count: usize) -> Self {
        Self {
            first,
            count,
            rotation: 0,
        }
    }
}

/// A process that uses kernels on simulated GPUs, with no variable of ours but those set here.
pub fn user_of(kernels: Kernels, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test binary has a path"));
    command
        .args([
            CHILD,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env_remove("RDM_CACHE_DIR")
        .env_remove("RDM_CACHE_MAX_BYTES")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .env_remove("RDM_DRIVER")
        .env(
            CHILD_VARIABLE,
            format!("{} {} {}", kernels.first, kernels.count, kernels.rotation),
        )
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// How a child ended that had to end well.
pub struct Report {
    pub compiled: u64,
    pub found: u64,
    pub stderr: String,
}

impl Report {
    pub fn lines_with(&self, text: &str) -> usize {
        self.stderr
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }
}

pub fn report_of(output: &Output) -> Report {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let counts = stdout
        .lines()
        .find_map(|line| line.split_once("COUNTS ").map(|(_, counts)| counts))
        .filter(|_| output.status.success())
        .unwrap_or_else(|| {
            panic!(
                "the child ended with {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
                output.status
            )
        });
    let mut numbers = counts.split(' ').map(|number| number.parse().unwrap());
    Report {
        compiled: numbers.next().unwrap(),
        found: numbers.next().unwrap(),
        stderr,
    }
}

pub fn run(mut command: Command) -> Report {
    report_of(&command.output().expect("the child can be started"))
}

/// Uses kernels in a fresh process with this folder as the cache.
pub fn run_in(folder: &Path, kernels: Kernels) -> Report {
    let mut command = user_of(kernels, &[]);
    command.env("RDM_CACHE_DIR", folder);
    run(command)
}

pub fn wait_for(child: Child) -> Report {
    report_of(
        &child
            .wait_with_output()
            .expect("the child can be waited for"),
    )
}

fn source(number: usize) -> ModuleSource {
    let text =
        format!("extern \"C\" __global__ void answer(int *out) {{ *out = {number} * 3 + 1; }}\n");
    let length = std::env::var("RDM_TEST_NAME_LENGTH").ok();
    let name = match length.and_then(|length| length.parse().ok()) {
        Some(length) => "n".repeat(length),
        None => format!("answer_{number}.hip"),
    };
    ModuleSource::new(&name, &text).expect("there is no NUL in it")
}

fn use_kernel(number: usize) {
    let device = Device::get(0).expect("there is a device");
    let kernel = Module::get(device, &source(number))
        .and_then(|module| module.kernel("answer"))
        .unwrap_or_else(|error| panic!("kernel {number}: {error}"));
    let memory = DeviceMemory::new(device, 4).expect("memory");
    let host = HostMemory::new(device, 4).expect("memory");
    let stream = Stream::new(0).expect("a stream");
    let encoder = stream.encoder().expect("an encoder");
    let pointer: *mut i32 = memory.as_ptr().cast();
    let arguments = [KernelArgument::new(&pointer)];
    // SAFETY: the argument is the kernel's, both memories hold its number, and nothing else uses them.
    let found = unsafe {
        encoder
            .launch(kernel, &LaunchConfig::linear(1, 1), &arguments)
            .expect("the launch is right");
        encoder
            .copy(host.as_ptr(), memory.as_ptr(), 4, CopyKind::DeviceToHost)
            .expect("the copy is right");
        stream.synchronize(None).expect("the device works");
        host.as_ptr().cast::<i32>().read()
    };
    assert_eq!(found, number as i32 * 3 + 1, "kernel {number}");
}

/// The body of the child. Does nothing in a sweep over all ignored tests.
pub fn be_the_child() {
    let Ok(wanted) = std::env::var(CHILD_VARIABLE) else {
        return;
    };
    configure(&Config::new().driver("sim").sim_device_count(1)).expect("nothing was used yet");
    let mut numbers = wanted.split(' ').map(|number| number.parse().unwrap());
    let mut next = || -> usize { numbers.next().unwrap() };
    let (first, count, rotation) = (next(), next(), next());
    for index in 0..count {
        use_kernel(first + (index + rotation) % count);
        if std::env::var_os("RDM_TEST_REMOVE_FOLDER").is_some() {
            let folder = std::env::var_os("RDM_CACHE_DIR").unwrap();
            fs::remove_dir_all(folder).expect("the folder was there");
        }
    }
    println!(
        "COUNTS {} {}",
        Module::compile_count().unwrap(),
        Module::disk_hit_count().unwrap()
    );
}

/// The names in a folder with this ending, in their order.
pub fn files_with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.as_os_str().as_bytes().ends_with(ending.as_bytes()))
        .collect();
    paths.sort();
    paths
}

pub fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

/// A random number generator, good enough to choose what to damage.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
