//! `rdm doctor` on machines with nothing, with AMD's runtime and no GPU, with a GPU, and with runtimes
//! that are broken in each way. Those that are not at hand are made: see `support`.

// Without AMD's driver there is less to test.
#![cfg_attr(not(feature = "rocm"), allow(dead_code))]

mod documentation;
mod machines;
#[cfg(feature = "rocm")]
mod runtimes;
mod settings;
mod support;
