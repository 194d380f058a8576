//! What kind of GPU this process computes on.

use crate::device::Device;
use crate::runtime::driver_info;

/// The kind of GPU backend in use.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuBackendKind {
    /// No driver could be loaded, or it has no device.
    None,
    /// AMD's, through HIP.
    Rocm,
    /// NVIDIA's, through CUDA.
    Cuda,
    /// GPUs that are simulated inside the process.
    Sim,
}

/// The kind of GPU backend in use. The first call loads the driver; no device is touched.
pub fn gpu_backend_kind() -> GpuBackendKind {
    if !Device::count().is_ok_and(|count| count > 0) {
        return GpuBackendKind::None;
    }
    match driver_info().as_ref().map(|info| info.name.as_str()) {
        Ok("hip") => GpuBackendKind::Rocm,
        Ok("cuda") => GpuBackendKind::Cuda,
        Ok("sim") => GpuBackendKind::Sim,
        _ => GpuBackendKind::None,
    }
}
