//! The smallest lazily evaluated `f32` array that drives every lock on the launch path.
//!
//! Operations build a graph; [`try_eval`] and [`array_to_raw_bytes`] evaluate it, on the calling
//! thread's default stream (without one: on the thread's own stream of
//! [`shared_thread_local_generation_stream`](crate::streams::shared_thread_local_generation_stream)).
//! Each operation then does one device lookup, one encoder lookup, one lookup of its run-time
//! compiled module and one kernel launch.
//!
//! An [`Array`] may be shared between threads: it is evaluated once, and a use on another stream
//! waits for it on the device. An array is of the device that it was evaluated on; to use it on a
//! stream of another device is [`Status::WrongDevice`](crate::Status::WrongDevice).
//!
//! A small result that is read at once, with [`array_to_raw_bytes`], is written by its last kernel to
//! pinned host memory: that saves the copy, and the driver's cost of one.
//!
//! [`oversized_block`], [`out_of_bounds_write`] and [`jit_probe`] show what the library does when a
//! launch is refused, when a GPU faults, and when many kernels are compiled at once.

mod array;
mod evaluate;
mod faults;
mod storage;

pub use array::{
    Array, add, add_scalar, arange_f32, full_like, multiply_scalar, ones, ones_stream,
};
pub use evaluate::{array_to_raw_bytes, try_eval};
pub use faults::{jit_probe, out_of_bounds_write, oversized_block};
