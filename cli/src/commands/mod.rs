//! One file for each command.

pub mod info;
pub mod stress;
