//! Compiles the designs that are measured.

use std::env;
use std::path::{Path, PathBuf};

fn files_with(folder: &Path, wanted: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("cannot read a folder entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == wanted)
        })
        .collect();
    files.sort();
    files
}

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this"));
    // The library's header; and beside it the private ones, for the simulated driver's own calls.
    let include = PathBuf::from(
        env::var_os("DEP_ROCM_DEVICE_MAP_INCLUDE").expect("the library's build script sets this"),
    );
    let private = include.parent().expect("the header is in a folder of csrc");
    let mut build = cc::Build::new();
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ["baselines", "cases"] {
        build.files(files_with(&here.join(folder), "c"));
        println!("cargo::rerun-if-changed={folder}");
    }
    // One by one: other folders here are other programs'.
    build.files(files_with(&here, "c"));
    for file in ["c", "h"].iter().flat_map(|kind| files_with(&here, kind)) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed={}", include.display());
    build
        .include(&here)
        .include(&include)
        .include(private)
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wpedantic")
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .define("_GNU_SOURCE", None)
        .pic(true)
        .compile("rocm_device_map_benches");
}
