//! Run-time compiled modules with every thread at once: one compile for each source, and lookups that
//! no compile delays.
//!
//! Where compiles are counted the body runs in a fresh child process without a cache on disk, so that
//! nothing was compiled before. A child has to end on its own with exit code 0 and print its done
//! marker within 120 seconds.
//!
//! The driver is `RDM_DRIVER` where it is set: asked for by name and no device there, the tests skip
//! with a message that names it. Else it is AMD's where it has a GPU, else `sim`; a line of the output
//! says which. `tests/rocm_hiprtc_concurrency.rs` has the compile half for AMD's compiler without a GPU.

#![cfg(feature = "rocm")]

mod common;
#[path = "common/jit.rs"]
mod jit;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{driver_with_device, is_child, tell, values};
use jit::{CountDownOnDrop, DONE, THREADS, WARM, run_children, source, tail, time_hits};
use rocm_device_map::{
    CopyKind, Device, DeviceMemory, HostMemory, KernelArgument, LaunchConfig, Module, Status,
    Stream, choose_driver, driver_info, sim,
};

const CHILD_RUNS: usize = 3;
const ROUNDS: usize = 16;
const ELEMENTS: u16 = 256;
const COMPILE: &str = "hiprtcCompileProgram";

/// What one thread launches with.
struct Bench {
    stream: Stream,
    device_memory: DeviceMemory,
    host_memory: HostMemory,
}

impl Bench {
    fn new() -> Self {
        let device = Device::get(0).expect("there is a device");
        let size = usize::from(ELEMENTS) * size_of::<f32>();
        Self {
            stream: Stream::new(0).expect("a stream"),
            device_memory: DeviceMemory::new(device, size).expect("memory"),
            host_memory: HostMemory::new(device, size).expect("memory"),
        }
    }

    /// Gets the module, launches its kernel and checks every element.
    fn launch_and_check(&self, number: usize) {
        let device = Device::get(0).expect("there is a device");
        let kernel = Module::get(device, &source(number))
            .and_then(|module| module.kernel("fill"))
            .unwrap_or_else(|error| panic!("source {number}: {error}"));
        let pointer: *mut f32 = self.device_memory.as_ptr().cast();
        let (step, count) = (2.0f32, u32::from(ELEMENTS));
        let arguments = [
            KernelArgument::new(&pointer),
            KernelArgument::new(&step),
            KernelArgument::new(&count),
        ];
        let size = self.host_memory.size_bytes();
        let encoder = self.stream.encoder().expect("the stream is ours");
        // SAFETY: the arguments are the kernel's, both memories are as large as it says, and nothing
        // else uses them until the stream is through.
        let bytes = unsafe {
            encoder
                .launch(kernel, &LaunchConfig::linear(4, 64), &arguments)
                .expect("the launch is right");
            encoder
                .copy(
                    self.host_memory.as_ptr(),
                    self.device_memory.as_ptr(),
                    size,
                    CopyKind::DeviceToHost,
                )
                .expect("the copy is right");
            self.stream.synchronize(None).expect("the device works");
            std::slice::from_raw_parts(self.host_memory.as_ptr().cast::<u8>(), size)
        };
        for (index, found) in (0..ELEMENTS).zip(values(bytes)) {
            let expected = f32::from(index) * 2.0 + number as f32;
            assert_eq!(found, expected, "source {number}, element {index}");
        }
    }
}

fn start_child() -> bool {
    if is_child() {
        choose_driver().expect("the parent found a device");
    }
    is_child()
}

// ---- First launches ------------------------------------------------------------------------------

#[test]
fn same_kernel_first_launch_from_many_threads() {
    if driver_with_device("same_kernel_first_launch_from_many_threads").is_some() {
        run_children(
            "child_same_kernel_first_launch_from_many_threads",
            &[],
            CHILD_RUNS,
        );
    }
}

#[test]
#[ignore = "the child of same_kernel_first_launch_from_many_threads"]
fn child_same_kernel_first_launch_from_many_threads() {
    if !start_child() {
        return;
    }
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let bench = Bench::new();
                for round in 0..ROUNDS {
                    barrier.wait();
                    bench.launch_and_check(round);
                    barrier.wait();
                    // All threads see the same count: nobody begins the next round before.
                    assert_eq!(Module::compile_count().unwrap(), round as u64 + 1);
                    barrier.wait();
                }
            });
        }
    });
    println!("{DONE}");
}

#[test]
fn distinct_kernels_first_launch_while_others_hit_cache() {
    if driver_with_device("distinct_kernels_first_launch_while_others_hit_cache").is_some() {
        run_children(
            "child_distinct_kernels_first_launch_while_others_hit_cache",
            &[],
            CHILD_RUNS,
        );
    }
}

#[test]
#[ignore = "the child of distinct_kernels_first_launch_while_others_hit_cache"]
fn child_distinct_kernels_first_launch_while_others_hit_cache() {
    const DISTINCT_ROUNDS: usize = 4;
    if !start_child() {
        return;
    }
    Bench::new().launch_and_check(WARM);
    let hits = AtomicUsize::new(0);
    let running = AtomicUsize::new(THREADS);
    let barrier = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, running) = (&barrier, &running);
            scope.spawn(move || {
                // Also when this thread fails, the one that hits ends, and the child says what was wrong.
                let _count_out = CountDownOnDrop(running);
                let bench = Bench::new();
                barrier.wait();
                for round in 0..DISTINCT_ROUNDS {
                    bench.launch_and_check(1000 + round * THREADS + thread);
                }
            });
        }
        scope.spawn(|| {
            let bench = Bench::new();
            barrier.wait();
            while running.load(Ordering::Acquire) > 0 {
                bench.launch_and_check(WARM);
                hits.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    let compiles = 1 + THREADS * DISTINCT_ROUNDS;
    assert_eq!(Module::compile_count().unwrap(), compiles as u64);
    // Far more launches than compiles: one that waits for a compile comes to about as many.
    let hits = hits.into_inner();
    assert!(
        hits > 2 * compiles,
        "{hits} launches of the warm kernel while {compiles} were compiled"
    );
    println!("{DONE}");
}

// ---- Arguments -----------------------------------------------------------------------------------

#[test]
fn wrong_arguments_are_refused_where_the_driver_can_tell() {
    if let Some(choice) =
        driver_with_device("wrong_arguments_are_refused_where_the_driver_can_tell")
    {
        if choice.driver == "hip" {
            tell(
                "wrong_arguments_are_refused_where_the_driver_can_tell is skipped: hip can not tell",
            );
            return;
        }
        run_children(
            "child_wrong_arguments_are_refused_where_the_driver_can_tell",
            &[],
            1,
        );
    }
}

#[test]
#[ignore = "the child of wrong_arguments_are_refused_where_the_driver_can_tell"]
fn child_wrong_arguments_are_refused_where_the_driver_can_tell() {
    if !start_child() {
        return;
    }
    let device = Device::get(0).unwrap();
    let kernel = Module::get(device, &source(1)).unwrap().kernel("fill");
    let kernel = kernel.unwrap();
    let bench = Bench::new();
    let encoder = bench.stream.encoder().unwrap();
    let pointer: *mut f32 = bench.device_memory.as_ptr().cast();
    let (step, double_step, count) = (2.0f32, 2.0f64, u32::from(ELEMENTS));
    let wrong_size = [
        KernelArgument::new(&pointer),
        KernelArgument::new(&double_step),
        KernelArgument::new(&count),
    ];
    let too_few = [KernelArgument::new(&pointer), KernelArgument::new(&step)];
    let cases: [(&[KernelArgument<'_>], &[&str]); 2] = [
        (&wrong_size, &["fill", "argument 1", "4 bytes", "is 8"]),
        (&too_few, &["fill", "3 arguments", "is 2"]),
    ];
    for (arguments, parts) in cases {
        // SAFETY: this driver tells what the kernel takes, and so the launch is refused.
        let result = unsafe { encoder.launch(kernel, &LaunchConfig::linear(4, 64), arguments) };
        let error = result.expect_err("the driver can tell");
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "no \"{part}\": {error}");
        }
    }
    // The stream is as good as before.
    bench.launch_and_check(1);
    println!("{DONE}");
}

// ---- The tail of a hit ---------------------------------------------------------------------------

#[test]
fn a_hits_tail_does_not_move_while_compiles_run() {
    if driver_with_device("a_hits_tail_does_not_move_while_compiles_run").is_some() {
        run_children("child_a_hits_tail_does_not_move_while_compiles_run", &[], 1);
    }
}

#[test]
#[ignore = "the child of a_hits_tail_does_not_move_while_compiles_run"]
fn child_a_hits_tail_does_not_move_while_compiles_run() {
    const TRIES: usize = 8;
    if !start_child() {
        return;
    }
    let driver = driver_info().unwrap().name;
    let device = Device::get(0).unwrap();
    let warm = source(WARM);
    let module = Module::get(device, &warm).unwrap();
    let hit = || assert_eq!(Module::get(device, &warm).unwrap(), module);
    // On simulated GPUs the compiles stall inside the driver and leave the processors alone, so that
    // what is measured is waiting and nothing else; on real ones they run.
    let most = if driver == "sim" { 2.0 } else { 4.0 };
    let mut told = Vec::new();
    for attempt in 0..TRIES {
        let idle = tail(&mut time_hits(hit, || true));
        let mut times = if driver == "sim" {
            hits_while_compiles_stall(device, attempt, hit)
        } else {
            hits_while_compiles_run(device, attempt, hit)
        };
        let busy = tail(&mut times);
        let ratio = busy as f64 / idle as f64;
        told.push(format!(
            "99.9 % of hits took at most {idle} ns when idle and {busy} ns while others compiled \
             ({} hits then): {ratio:.2} times",
            times.len()
        ));
        if ratio <= most {
            tell(&format!("{driver}: a hit: {}", told[attempt]));
            println!("{DONE}");
            return;
        }
    }
    panic!("never at most {most} times:\n{}", told.join("\n"));
}

const COMPILERS: usize = 4;

fn hits_while_compiles_stall(device: Device, attempt: usize, hit: impl Fn()) -> Vec<u64> {
    const STALL: Duration = Duration::from_millis(400);
    sim::inject(Some(COMPILE), 1, COMPILERS as u64, 0, STALL).unwrap();
    let start = Instant::now();
    let times = thread::scope(|scope| {
        for compiler in 0..COMPILERS {
            let cold = source(2000 + attempt * COMPILERS + compiler);
            scope.spawn(move || Module::get(device, &cold).expect("it compiles"));
        }
        let all_are_inside = || {
            let calls = sim::calls().unwrap();
            let inside = |call: &&sim::Call| call.entry_point == COMPILE && call.result.is_none();
            calls.iter().filter(inside).count() == COMPILERS
        };
        while !all_are_inside() {
            assert!(
                start.elapsed() < STALL,
                "the compiles did not begin in time"
            );
            thread::sleep(Duration::from_millis(1));
        }
        time_hits(hit, || start.elapsed() < STALL)
    });
    sim::clear_injections().unwrap();
    times
}

fn hits_while_compiles_run(device: Device, attempt: usize, hit: impl Fn()) -> Vec<u64> {
    const EACH: usize = 16;
    let running = AtomicUsize::new(COMPILERS);
    thread::scope(|scope| {
        for compiler in 0..COMPILERS {
            let running = &running;
            scope.spawn(move || {
                let _count_out = CountDownOnDrop(running);
                for number in 0..EACH {
                    let cold = source(2000 + (attempt * COMPILERS + compiler) * EACH + number);
                    Module::get(device, &cold).expect("it compiles");
                }
            });
        }
        thread::sleep(Duration::from_millis(5));
        time_hits(hit, || running.load(Ordering::Acquire) > 0)
    })
}
