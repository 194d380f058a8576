//! The program in an environment without anything of this machine's own, stand-ins for AMD's runtime
//! (tests/c/fake_hip_watched.c), and a root folder with nothing in it but the program.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rdm");
pub const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Tells the user something, past libtest's capture.
pub fn tell(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// An empty folder of this test's own.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doctor-{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Without anything of this machine's own that the doctor looks at.
fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let prefixes = ["RDM_", "ROCM", "ROCR_", "HIP_", "HSA_", "CUDA_", "GPU_"];
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) || name == "LD_LIBRARY_PATH" {
            command.env_remove(name);
        }
    }
    command.env("RDM_CACHE_DIR", "")
}

pub fn doctor(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    clean(Command::new(PROGRAM).arg("doctor").args(arguments))
        .envs(environment.iter().copied())
        .output()
        .expect("the program can be started")
}

/// What `--json` gave, and the exit code.
pub struct Report {
    pub json: Value,
    pub code: Option<i32>,
    stderr: String,
}

impl Report {
    pub fn of(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "standard output is no JSON object: {error}\n--- stdout\n{}\n--- stderr\n{stderr}",
                String::from_utf8_lossy(&output.stdout)
            )
        });
        Self {
            json,
            code: output.status.code(),
            stderr,
        }
    }

    /// The item of a list whose `key` is `value`.
    fn item(&self, list: &str, key: &str, value: &str) -> &Value {
        let items = self.json[list].as_array().expect("a list");
        items
            .iter()
            .find(|item| item[key] == value)
            .unwrap_or_else(|| panic!("no {value} in {items:#?}"))
    }

    pub fn ids(&self) -> Vec<&str> {
        let problems = self.json["problems"].as_array().expect("a list");
        problems
            .iter()
            .map(|problem| problem["id"].as_str().expect("a text"))
            .collect()
    }

    pub fn driver(&self, name: &str) -> &Value {
        self.item("drivers", "name", name)
    }

    pub fn variable(&self, name: &str) -> &Value {
        self.item("variables", "name", name)
    }

    pub fn node(&self, path: &str) -> &Value {
        self.item("permissions", "path", path)
    }

    /// Whether this machine has a GPU is not what every test is about.
    pub fn without_no_gpu(mut self) -> Self {
        if let Some(problems) = self.json["problems"].as_array_mut() {
            problems.retain(|problem| problem["id"] != "no_gpu");
        }
        self
    }

    /// These problems and no others, healthy or not, with the exit code that belongs to it.
    pub fn expect(&self, ids: &[&str], healthy: bool) {
        assert_eq!(self.ids(), ids, "{:#}", self.json);
        assert_eq!(self.json["healthy"], healthy, "{:#}", self.json);
        assert_eq!(self.code, Some(i32::from(!healthy)), "{:#}", self.json);
        assert!(!self.stderr.contains("bound HIP device"), "{}", self.stderr);
    }

    pub fn expect_words(&self, id: &str, what: &[&str], remedy: &[&str]) {
        let problem = self.item("problems", "id", id);
        for (key, words) in [("what", what), ("remedy", remedy)] {
            let text = problem[key].as_str().expect("a text");
            for word in words {
                assert!(text.contains(word), "no \"{word}\" in {problem:#}");
            }
        }
    }
}

pub fn examine(environment: &[(&str, &str)]) -> Report {
    Report::of(&doctor(&["--json"], environment))
}

/// As above, with the driver hip and no other asked for: what else this machine has does not count.
pub fn examine_hip(environment: &[(&str, &str)]) -> Report {
    let mut all = vec![("RDM_DRIVER", "hip")];
    all.extend(environment);
    examine(&all).without_no_gpu()
}

/// Builds a stand-in for AMD's runtime.
pub fn fake(file: &Path, soname: &str, options: &[&str]) {
    let source = format!("{REPOSITORY}/tests/c/fake_hip_watched.c");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder can be made");
    let compiler = std::env::var("CC").unwrap_or("cc".to_owned());
    let status = Command::new(compiler)
        .args(["-std=c11", "-w", "-shared", "-fPIC"])
        .arg(format!("-I{REPOSITORY}/csrc"))
        .arg("-o")
        .arg(file)
        .arg(source)
        .arg(format!("-Wl,-soname,{soname}"))
        .args(options)
        .status()
        .expect("the C compiler can be started");
    assert!(status.success(), "{} was not built", file.display());
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// A root folder with the program, the libraries that it links to, and nothing else.
pub struct Root {
    pub folder: PathBuf,
}

impl Root {
    pub fn new(test: &str) -> Self {
        let root = Self {
            folder: folder(test),
        };
        let listed = Command::new("ldd").arg(PROGRAM).output().expect("ldd runs");
        for word in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
            if word.starts_with('/') {
                root.add(Path::new(word), word);
            }
        }
        root.add(Path::new(PROGRAM), "/rdm");
        // A bus on which there is nothing.
        fs::create_dir_all(root.folder.join("sys/bus/pci/devices")).expect("a folder");
        root
    }

    fn add(&self, file: &Path, place: &str) {
        let to = self.folder.join(place.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder can be made");
        fs::copy(file, &to).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// None, with a word of it, where this user may not change the root.
    pub fn examine(
        &self,
        test: &str,
        user: Option<u32>,
        environment: &[(&str, &str)],
    ) -> Option<Report> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if user.is_some() && !is_root {
            tell(&format!(
                "SKIPPED: {test}: only root can become another user"
            ));
            return None;
        }
        let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
        if let Some(user) = user {
            command.args([format!("--userspec={user}:{user}"), "--groups=".to_owned()]);
        } else if !is_root {
            command.args(["--map-root-user", "chroot"]);
        }
        command.arg(&self.folder).args(["/rdm", "doctor", "--json"]);
        let output = clean(&mut command)
            .envs(environment.iter().copied())
            .output()
            .expect("chroot and unshare are there");
        if output.stdout.is_empty() && !is_root {
            tell(&format!(
                "SKIPPED: {test}: this user can not change the root folder"
            ));
            return None;
        }
        Some(Report::of(&output))
    }
}
