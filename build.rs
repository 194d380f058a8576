//! Compiles the C core into a static library, and with the feature `bindgen` makes the bindings anew.

use std::env;
use std::path::{Path, PathBuf};

#[cfg(feature = "bindgen")]
include!("crate/sys/generate.rs");

const SOURCE_FOLDERS: [&str; 3] = ["csrc", "csrc/driver", "csrc/driver/sim"];
const HEADER: &str = "csrc/include/rocm_device_map.h";

/// The C files directly in `folder`, in a fixed order.
fn c_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("cannot read a folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

fn compile_core(root: &Path) {
    let mut build = cc::Build::new();
    for folder in SOURCE_FOLDERS {
        build.files(c_files(&root.join(folder)));
    }
    build
        .include(root.join("csrc"))
        .include(root.join("csrc/include"))
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wpedantic")
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .define("_GNU_SOURCE", None)
        .pic(true);
    if feature("ROCM") {
        build.define("RDM_DRIVER_HIP", None);
    }
    if feature("CUDA") {
        build.define("RDM_DRIVER_CUDA", None);
    }
    // Debug builds keep the assertions, that of the lock order among them.
    if env::var("PROFILE").as_deref() == Ok("release") {
        build.define("NDEBUG", None);
    }
    build.compile("rocm_device_map");
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this"));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-changed=crate/sys/generate.rs");
    compile_core(&root);
    for library in ["dl", "pthread"] {
        println!("cargo::rustc-link-lib={library}");
    }
    println!(
        "cargo::metadata=include={}",
        root.join("csrc/include").display()
    );

    #[cfg(feature = "bindgen")]
    {
        let header = root.join(HEADER);
        let bindings = generate_bindings(header.to_str().expect("a path that is text"))
            .unwrap_or_else(|error| panic!("bindgen failed on {HEADER}: {error}"));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets this"));
        std::fs::write(out.join("bindings.rs"), bindings).expect("cannot write the bindings");
    }
    #[cfg(not(feature = "bindgen"))]
    let _ = HEADER;
}
