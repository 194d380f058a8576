//! Hits on a compiled module, one by one: idle, and while another module is compiled.

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;

use crate::c_design::State;
use crate::measure::Place;
use crate::report::{Chart, Report, Series};
use crate::statistics::percentile;
use crate::{Options, Progress};

/// `rdm__bench_modules`.
#[repr(C)]
struct RawModules {
    name: *const c_char,
    begin: unsafe extern "C" fn(*mut State),
    hit: unsafe extern "C" fn(*mut State),
    compile: unsafe extern "C" fn(*mut State, *const c_char, *const AtomicI32),
}

// SAFETY: constants of the C side, which never change.
unsafe impl Sync for RawModules {}

unsafe extern "C" {
    fn rdm__bench_modules_at(number: usize) -> *const RawModules;
    fn rdm__bench_sample_hits(
        modules: *const RawModules,
        state: *mut State,
        phase: *const AtomicI32,
        samples_ns: *mut u32,
        capacity: usize,
    ) -> usize;
}

const WAITING: i32 = 0;
const RUNNING: i32 = 1;
const OVER: i32 = 2;

const SAMPLES_OF_A_THREAD: usize = 1 << 17;
/// How many are compiled in a round.
const COMPILES: u32 = 2;

const SHARES: [(f64, &str); 2] = [(0.5, "median"), (0.999, "p99.9")];

pub(crate) fn steps(options: &Options<'_>) -> u64 {
    options.threads.len() as u64 * u64::from(options.rounds) * 4
}

/// Hits of one round, of all threads, sorted.
struct Hits(Vec<u32>);

fn modules_at(number: usize) -> &'static RawModules {
    // SAFETY: it takes any number, and what it gives is a constant.
    unsafe { rdm__bench_modules_at(number).as_ref() }.expect("there are two")
}

fn name_of(modules: &RawModules) -> &'static str {
    // SAFETY: a literal of the C side.
    let name = unsafe { CStr::from_ptr(modules.name) };
    name.to_str().expect("a literal in ASCII")
}

/// A source that no process has compiled before.
fn new_source() -> CString {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let text = format!(
        "extern \"C\" __global__ void bench_{process}_{number}(float *out) {{\n  \
         out[threadIdx.x] = (float)threadIdx.x * {number}.5f;\n}}\n"
    );
    CString::new(text).expect("no NUL in it")
}

/// Compiles new modules while the threads hit theirs.
fn compile_some(
    modules: &'static RawModules,
    place: Place,
    phase: &AtomicI32,
) -> Result<(), String> {
    for _ in 0..COMPILES {
        let mut state = State::new(place);
        let source = new_source();
        // SAFETY: all three live until the call returns.
        unsafe { (modules.compile)(&mut state, source.as_ptr(), phase) };
        state.result()?;
    }
    Ok(())
}

fn run_round(
    modules: &'static RawModules,
    options: &Options<'_>,
    threads: u32,
    compiles: bool,
) -> Result<Hits, String> {
    let phase = AtomicI32::new(WAITING);
    let device_index = options.device_index;
    let place = |thread| Place {
        thread,
        device_index,
    };
    let mut state = State::new(place(threads));
    // SAFETY: the state lives until the call returns.
    unsafe { (modules.begin)(&mut state) };
    state.result()?;
    let mut hits = Vec::new();
    thread::scope(|scope| {
        let phase = &phase;
        let hitters: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut state = State::new(place(thread));
                    let mut samples = vec![0; SAMPLES_OF_A_THREAD];
                    // SAFETY: all live until the call returns, and there is room for so many.
                    let count = unsafe {
                        rdm__bench_sample_hits(
                            modules,
                            &mut state,
                            phase,
                            samples.as_mut_ptr(),
                            samples.len(),
                        )
                    };
                    samples.truncate(count);
                    state.result().map(|()| samples)
                })
            })
            .collect();
        let done = if compiles {
            compile_some(modules, place(threads), phase)
        } else {
            phase.store(RUNNING, Ordering::Release);
            thread::sleep(options.round_time);
            Ok(())
        };
        phase.store(OVER, Ordering::Release);
        for hitter in hitters {
            let samples = hitter
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".to_owned()))?;
            hits.extend(samples);
        }
        done
    })
    .map_err(|error| format!("{}, {threads} threads: {error}", name_of(modules)))?;
    hits.sort_unstable();
    Ok(Hits(hits))
}

fn series_name(design: &str, compiles: bool, share: &str) -> String {
    let when = if compiles { "compiling" } else { "idle" };
    format!("{design}, {when}, {share}")
}

pub(crate) fn run(
    options: &Options<'_>,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), String> {
    let designs = [modules_at(0), modules_at(1)];
    // In the order of the rounds' figures below.
    let mut chart = Chart {
        title: "A hit on a compiled module".to_owned(),
        series: designs
            .iter()
            .enumerate()
            .flat_map(|(number, modules)| {
                [false, true].into_iter().flat_map(move |compiles| {
                    SHARES.iter().map(move |(_, share)| {
                        Series::new(&series_name(name_of(modules), compiles, share), number == 0)
                    })
                })
            })
            .collect(),
    };
    for &threads in &options.threads {
        for series in &mut chart.series {
            series.points.push((threads, Vec::new()));
        }
        for _ in 0..options.rounds {
            let mut place = 0;
            for modules in designs {
                for compiles in [false, true] {
                    let hits = run_round(modules, options, threads, compiles)?;
                    for (share, _) in SHARES {
                        if let Some((_, rounds)) = chart.series[place].points.last_mut() {
                            rounds.push(percentile(&hits.0, share));
                        }
                        place += 1;
                    }
                    progress.step(name_of(modules));
                }
            }
        }
    }
    let first_row = report.rows.len();
    let [ours, lock] = designs.map(name_of);
    for (_, share) in SHARES {
        for compiles in [false, true] {
            report.compare(
                options,
                chart.series(&series_name(ours, compiles, share)),
                chart.series(&series_name(lock, compiles, share)),
            );
        }
        report.compare(
            options,
            chart.series(&series_name(ours, true, share)),
            chart.series(&series_name(ours, false, share)),
        );
    }
    for row in &mut report.rows[first_row..] {
        // Of a percentile that would be nobody's rate.
        row.per_second = None;
    }
    report.charts.push(chart);
    Ok(())
}
