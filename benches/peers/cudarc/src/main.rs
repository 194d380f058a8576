//! The work of `ours.cpp`, done with the crate cudarc, as a user of the crate would write it with care for speed.

mod measure;

use std::fmt::Display;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use measure::{Settings, Worker, measure};

const KERNELS: &str = r#"
extern "C" __global__ void empty_kernel() {}
extern "C" __global__ void arange_kernel(float *out, float start, float step) {
  out[threadIdx.x] = start + (float)threadIdx.x * step;
}
extern "C" __global__ void multiply_kernel(float *values, float by) { values[threadIdx.x] *= by; }
extern "C" __global__ void add_kernel(float *values, float what) { values[threadIdx.x] += what; }
"#;

const COUNT: usize = 256;

/// The exit status that says: this machine has no driver or no GPU, so there was nothing to measure.
const NOTHING_TO_MEASURE: i32 = 77;

fn fail(doing: &str, error: impl Display) -> ! {
    eprintln!("cudarc-peer: {doing}: {error}");
    std::process::exit(1)
}

/// The value, or the end of the process: a figure from a run in which a call failed means nothing.
trait OrFail<T> {
    fn or_fail(self, doing: &str) -> T;
}

impl<T, E: Display> OrFail<T> for Result<T, E> {
    fn or_fail(self, doing: &str) -> T {
        self.unwrap_or_else(|error| fail(doing, error))
    }
}

fn skip(why: impl Display) -> ! {
    eprintln!("cudarc-peer: skipped: {why}");
    std::process::exit(NOTHING_TO_MEASURE)
}

struct Kernels {
    empty: CudaFunction,
    arange: CudaFunction,
    multiply: CudaFunction,
    add: CudaFunction,
}

fn compile(context: &Arc<CudaContext>) -> Kernels {
    let code = cudarc::nvrtc::compile_ptx(KERNELS).or_fail("compiling the kernels");
    let module = context.load_module(code).or_fail("loading the kernels");
    let get = |name: &str| module.load_function(name).or_fail("looking for a kernel");
    Kernels {
        empty: get("empty_kernel"),
        arange: get("arange_kernel"),
        multiply: get("multiply_kernel"),
        add: get("add_kernel"),
    }
}

fn one_block(threads: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn launch_empty(context: &Arc<CudaContext>, kernels: &Kernels, worker: &mut Worker<'_>) {
    let stream = context.new_stream().or_fail("making a stream");
    let config = one_block(1);
    let once = || {
        // SAFETY: the kernel takes no argument and touches no memory.
        unsafe { stream.launch_builder(&kernels.empty).launch(config) }
            .or_fail("launching the empty kernel");
    };
    once();
    worker.start();
    while worker.more() {
        once();
    }
    stream.synchronize().or_fail("waiting for the stream");
    worker.stop();
}

/// arange * 2 + 1, read back and checked. `polls`: the host asks an event of its own until it is done, as the
/// hand-written code does; else it uses what the crate waits with.
fn evaluate(context: &Arc<CudaContext>, kernels: &Kernels, worker: &mut Worker<'_>, polls: bool) {
    let stream: Arc<CudaStream> = context.new_stream().or_fail("making a stream");
    let mut values = stream
        .alloc_zeros::<f32>(COUNT)
        .or_fail("allocating device memory");
    // SAFETY: every value is written by the first copy before any is read. Without the flag for write-combined memory,
    // which the crate sets by default and which is slow to read.
    let mut host = unsafe { context.alloc_pinned_with_flags::<f32>(COUNT, 0) }
        .or_fail("allocating host memory");
    let done = context.new_event(None).or_fail("making an event");
    let config = one_block(COUNT as u32);
    let (start, step, by, what) = (0.0f32, 1.0f32, 2.0f32, 1.0f32);
    stream.synchronize().or_fail("waiting for the allocation");
    let mut once = || {
        let mut wrong = 0;
        // SAFETY: each kernel writes COUNT values with COUNT threads into memory for COUNT of them, and its arguments
        // are those that its source declares.
        unsafe {
            stream
                .launch_builder(&kernels.arange)
                .arg(&mut values)
                .arg(&start)
                .arg(&step)
                .launch(config)
        }
        .or_fail("launching arange");
        // SAFETY: as above.
        unsafe {
            stream
                .launch_builder(&kernels.multiply)
                .arg(&mut values)
                .arg(&by)
                .launch(config)
        }
        .or_fail("launching multiply");
        // SAFETY: as above.
        unsafe {
            stream
                .launch_builder(&kernels.add)
                .arg(&mut values)
                .arg(&what)
                .launch(config)
        }
        .or_fail("launching add");
        stream
            .memcpy_dtoh(&values, &mut host)
            .or_fail("copying back");
        if polls {
            done.record(&stream).or_fail("recording an event");
            while !done.try_is_complete().or_fail("asking for an event") {
                std::hint::spin_loop();
            }
        }
        let read = host.as_slice().or_fail("waiting for the copy");
        for (i, &value) in read.iter().enumerate() {
            wrong += u64::from(value != 2.0 * i as f32 + 1.0);
        }
        wrong
    };
    // The driver may load a kernel with its first launch.
    worker.wrong += once();
    worker.start();
    while worker.more() {
        worker.wrong += once();
    }
    worker.stop();
}

fn run(settings: &Settings, context: &Arc<CudaContext>) -> u64 {
    let kernels = compile(context);
    measure(settings, "device_lookup", |worker| {
        context.bind_to_thread().or_fail("binding the context");
        worker.start();
        while worker.more() {
            context.bind_to_thread().or_fail("binding the context");
        }
        worker.stop();
    });
    measure(settings, "event_create_destroy", |worker| {
        context.bind_to_thread().or_fail("binding the context");
        worker.start();
        while worker.more() {
            drop(context.new_event(None).or_fail("making an event"));
        }
        worker.stop();
    });
    measure(settings, "event_create_record_destroy", |worker| {
        let stream = context.new_stream().or_fail("making a stream");
        worker.start();
        while worker.more() {
            drop(stream.record_event(None).or_fail("recording an event"));
        }
        stream.synchronize().or_fail("waiting for the stream");
        worker.stop();
    });
    measure(settings, "stream_get_put", |worker| {
        context.bind_to_thread().or_fail("binding the context");
        worker.start();
        while worker.more() {
            drop(context.new_stream().or_fail("making a stream"));
        }
        worker.stop();
    });
    measure(settings, "launch_empty", |worker| {
        launch_empty(context, &kernels, worker)
    });
    let wrong = measure(settings, "evaluation_as_documented", |worker| {
        evaluate(context, &kernels, worker, false)
    });
    // SAFETY: from here on each thread's memory is used on that thread's stream alone, so there is nothing to track.
    unsafe { context.disable_event_tracking() };
    wrong
        + measure(settings, "evaluation", |worker| {
            evaluate(context, &kernels, worker, true)
        })
}

fn main() {
    let settings = Settings::from_arguments().or_fail("reading the arguments");
    // SAFETY: these only load the libraries, as the crate's first call would.
    let (driver, compiler) = unsafe {
        (
            cudarc::driver::sys::is_culib_present(),
            cudarc::nvrtc::sys::is_culib_present(),
        )
    };
    if !driver {
        skip("no NVIDIA driver on this machine (libcuda was not found)");
    }
    if !compiler {
        skip(
            "no run-time compiler on this machine (libnvrtc was not found; LD_LIBRARY_PATH may have to name it)",
        );
    }
    let context = match CudaContext::new(0) {
        Ok(context) => context,
        Err(error) => skip(format!("no GPU that can be used: {error}")),
    };
    let wrong = run(&settings, &context);
    context
        .check_err()
        .or_fail("a call that could not say so failed");
    if wrong > 0 {
        fail(
            "checking what was read back",
            format!("{wrong} wrong values"),
        );
    }
}
