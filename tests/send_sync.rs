//! What may cross threads, and what may not.

use rocm_device_map::probe::Array;
use rocm_device_map::streams::{DefaultStreamGuard, InvalidGpuIndex, ThreadLocalStream};
use rocm_device_map::{
    Device, DeviceMemory, DriverChoice, Encoder, Error, Event, Graph, HostMemory, Kernel,
    KernelArgument, Module, ModuleSource, Status, Stream,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Array: Send, Sync, Clone);
assert_impl_all!(Device: Send, Sync, Copy);
assert_impl_all!(DeviceMemory: Send, Sync);
assert_impl_all!(DriverChoice: Send, Sync);
assert_impl_all!(Encoder: Send, Sync, Copy);
assert_impl_all!(Error: Send, Sync, Clone, std::error::Error);
assert_impl_all!(Event: Send, Sync);
assert_impl_all!(Graph: Send, Sync);
assert_impl_all!(HostMemory: Send, Sync);
assert_impl_all!(InvalidGpuIndex: Send, Sync, std::error::Error);
assert_impl_all!(Kernel: Send, Sync, Copy);
assert_impl_all!(Module: Send, Sync, Copy);
assert_impl_all!(ModuleSource: Send, Sync);
assert_impl_all!(Status: Send, Sync, Copy);
assert_impl_all!(Stream: Send, Sync, Clone);
assert_impl_all!(ThreadLocalStream: Send, Sync);

// It restores the default stream of the thread that it was made on.
assert_not_impl_any!(DefaultStreamGuard: Send, Sync, Clone);
// It points to a value on its maker's stack.
assert_not_impl_any!(KernelArgument<'static>: Send, Sync);
// Each owns what it gives back when dropped.
assert_not_impl_any!(DeviceMemory: Clone);
assert_not_impl_any!(Event: Clone);
assert_not_impl_any!(Graph: Clone);
assert_not_impl_any!(HostMemory: Clone);
assert_not_impl_any!(ThreadLocalStream: Clone);
