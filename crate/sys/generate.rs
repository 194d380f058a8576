// How the bindings are made from the header: the one configuration. `build.rs` includes this file
// where the feature `bindgen` is on; `tests/bindings.rs` holds the committed file against what that
// build made.

/// The bindings to the header at `header`, as Rust source.
fn generate_bindings(header: &str) -> Result<String, bindgen::BindgenError> {
    let bindings = bindgen::Builder::default()
        .header(header)
        // Plain comments too, so that the header's documentation is the bindings' documentation.
        .clang_args(["-std=c11", "-fparse-all-comments"])
        .allowlist_function("rdm_.*")
        .allowlist_type("rdm_.*")
        .allowlist_var("RDM_.*")
        .use_core()
        .rust_target(bindgen::RustTarget::stable(85, 0).unwrap_or_default())
        .rust_edition(bindgen::RustEdition::Edition2024)
        .derive_debug(true)
        .derive_default(true)
        .derive_eq(true)
        .derive_hash(true)
        .layout_tests(true)
        // Not rustfmt, whose output differs between toolchains.
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()?;
    Ok(format!(
        "// Made by bindgen from csrc/include/rocm_device_map.h; `make bindings` makes it anew.\n\n{bindings}"
    ))
}
