//! The C ABI as it is: what `csrc/include/rocm_device_map.h` declares, made by bindgen.
//!
//! The safe types of this crate take and lend these handles. A handle is a checked 64-bit value, so
//! a wrong one gets an error and never reads freed memory; the functions are `unsafe` for their
//! pointers.

#![allow(
    missing_docs,
    non_camel_case_types,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]

#[cfg(not(feature = "bindgen"))]
include!("bindings.rs");
#[cfg(feature = "bindgen")]
include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
