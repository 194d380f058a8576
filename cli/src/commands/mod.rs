//! One file for each command.

pub mod bench;
pub mod bench_worker;
pub mod cache;
pub mod doctor;
pub mod info;
pub mod stress;
pub mod warm;
pub mod warm_worker;
