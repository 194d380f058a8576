//! A program that has the published crate and nothing else: sums of 0 to 499, on a simulated GPU.

use std::error::Error;

use rocm_device_map::{
    Config, CopyKind, Device, DeviceMemory, KernelArgument, LaunchConfig, Module, ModuleSource,
    Stream, configure,
};

const COUNT: u32 = 500;
const BLOCK: u32 = 64;
const SOURCE: &str = r#"
extern "C" __global__ void sum(float *out, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 0.5f * (float)i * (float)(i + 1);
}
"#;

fn main() -> Result<(), Box<dyn Error>> {
    configure(&Config::new().driver("sim").sim_device_count(1))?;
    let device = Device::get(0)?;
    let stream = Stream::new(0)?;
    let kernel = Module::get(device, &ModuleSource::new("sum.hip", SOURCE)?)?.kernel("sum")?;
    let memory = DeviceMemory::new(device, COUNT as usize * size_of::<f32>())?;
    let encoder = stream.encoder()?;
    let pointer = memory.as_ptr();
    let mut values = vec![0.0_f32; COUNT as usize];
    // SAFETY: the arguments are the kernel's, and `n` keeps it inside the memory; both ends of the copy
    // have room for all of it and live until it is waited for.
    unsafe {
        encoder.launch(
            kernel,
            &LaunchConfig::linear(COUNT.div_ceil(BLOCK), BLOCK),
            &[KernelArgument::new(&pointer), KernelArgument::new(&COUNT)],
        )?;
        encoder.copy(
            values.as_mut_ptr().cast(),
            pointer,
            memory.size_bytes(),
            CopyKind::DeviceToHost,
        )?;
    }
    stream.synchronize(None)?;
    for (i, value) in (0..COUNT).zip(&values) {
        let expected = (0..=i).sum::<u32>() as f32;
        if *value != expected {
            return Err(format!("value {i} is {value}").into());
        }
    }
    println!("rust consumer: {COUNT} values are right");
    Ok(())
}
