//! A server's workers: scheduler, embedding, rerank and audio, each on a thread and a stream of its own.
//!
//! Requests come by channel, HTTP left out. What to copy from here: the thread-local stream that a
//! worker installs first thing ([`Worker::start`]); a failure that is the request's and not the
//! worker's ([`evaluate`]); a wait with a deadline, and what becomes of memory when it passes
//! ([`silence`]); the end of a worker, with its stream drained ([`serve`]).
//!
//! `RDM_DRIVER=sim cargo run --example workers` needs no GPU. docs/integrate.md explains the parts.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rocm_device_map::streams::{
    ThreadLocalStream, gpu_device_count, install_thread_local_default_stream,
    new_thread_local_stream_on_gpu, stream_from_thread_local_stream,
};
use rocm_device_map::{CopyKind, Device, DeviceMemory, Error, Event, HostMemory, Status, Stream};
use rocm_device_map::{choose_driver, probe};

/// The four workers of the server that this is modelled on.
pub(crate) const WORKERS: [&str; 4] = ["scheduler", "embedding", "rerank", "audio"];
/// How long a worker's last work may take once the server ends.
const DRAIN: Duration = Duration::from_secs(10);

/// What a client may ask for.
pub(crate) enum Work {
    /// `factor * i + 1` for each `i` below `len`: stands for a model's evaluation.
    Evaluate { len: usize, factor: f32 },
    /// A launch that no GPU takes: stands for a request that the server should have refused.
    Oversized,
    /// So many samples of silence, within a deadline.
    Silence { samples: usize, within: Duration },
}

pub(crate) type Answer = Result<Vec<f32>, Error>;

struct Request {
    work: Work,
    answer: Sender<Answer>,
}

/// A worker's thread, and the way to it.
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    requests: Sender<Request>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Worker {
    /// Starts a worker on the GPU with this index.
    pub(crate) fn start(name: &'static str, gpu: i32) -> Result<Self, Box<dyn std::error::Error>> {
        // Made here, touches no GPU yet; each thread that installs it gets a stream of its own.
        let stream = new_thread_local_stream_on_gpu(gpu)?;
        let (requests, inbox) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || serve(&stream, &inbox))?;
        Ok(Self {
            name,
            requests,
            thread,
        })
    }

    /// Asks for work, and gives what the answer will come by. A client that lost its patience drops it.
    pub(crate) fn ask(&self, work: Work) -> Receiver<Answer> {
        let (answer, answers) = mpsc::channel();
        // A worker that has ended drops the request, and the client's `recv` says so.
        let _ = self.requests.send(Request { work, answer });
        answers
    }

    /// Lets the worker answer what it was asked, and waits for its end.
    pub(crate) fn finish(self) -> Result<(), Error> {
        // The last sender of its channel: this ends the loop in `serve`.
        drop(self.requests);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A worker's whole life.
fn serve(stream: &ThreadLocalStream, inbox: &Receiver<Request>) -> Result<(), Error> {
    // On this thread and not on the one that made the handle: it resolves to this thread's stream.
    // The first use of the GPU, so this is where a GPU that can not be used shows.
    install_thread_local_default_stream(Some(stream))?;
    let own = stream_from_thread_local_stream(stream)?;
    for Request { work, answer } in inbox {
        let result = match work {
            Work::Evaluate { len, factor } => evaluate(len, factor),
            Work::Oversized => probe::oversized_block().map(|()| Vec::new()),
            Work::Silence { samples, within } => silence(&own, samples, within),
        };
        let lost = matches!(&result, Err(error) if error.status() == Status::DeviceFault);
        let fault = result.as_ref().err().filter(|_| lost).cloned();
        // The client may have given up.
        let _ = answer.send(result);
        if let Some(fault) = fault {
            // No call brings the GPU back: the server ends this process and starts another.
            return Err(fault);
        }
        // Any other error was that request's alone.
    }
    // What was submitted and not waited for, with a bound. The thread's end gives the stream back.
    own.synchronize(Some(DRAIN))
}

/// Evaluates on the thread's default stream, which `serve` has installed.
fn evaluate(len: usize, factor: f32) -> Answer {
    let range = probe::arange_f32(0.0, len as f32, 1.0);
    let result = probe::add(
        &probe::multiply_scalar(&range, factor),
        &probe::full_like(&range, 1.0),
    );
    // An error here is of this evaluation: nothing of it stays behind on the stream.
    let bytes = probe::array_to_raw_bytes(&result)?;
    Ok(floats(&bytes))
}

/// Work that is submitted first and waited for with a deadline, on an event behind it.
fn silence(stream: &Stream, samples: usize, within: Duration) -> Answer {
    let size_bytes = samples * size_of::<f32>();
    let device = Device::get(stream.device_index())?;
    let on_device = DeviceMemory::new(device, size_bytes)?;
    let on_host = HostMemory::new(device, size_bytes)?;
    let encoder = stream.encoder()?;
    // SAFETY: both are of that size, nothing else uses them, and below they live until the copy is
    // known to be done, or for ever.
    let submitted = unsafe {
        encoder
            .fill(on_device.as_ptr(), 0, size_bytes)
            .and_then(|()| {
                encoder.copy(
                    on_host.as_ptr(),
                    on_device.as_ptr(),
                    size_bytes,
                    CopyKind::DeviceToHost,
                )
            })
    };
    let waited = submitted
        .and_then(|()| Event::new(device))
        .and_then(|done| {
            encoder.record_event(&done)?;
            done.wait(Some(within))
        });
    if let Err(error) = waited {
        // The work goes on after a deadline, so what it reads and writes stays where it is. A server
        // with more of it keeps it in a list, and frees it once the event's `query` says done.
        std::mem::forget((on_device, on_host));
        // The stream has kept what the driver refused; it is this request's and not the next one's.
        let _ = stream.take_error();
        return Err(error);
    }
    // SAFETY: the copy has written that many bytes, and is done.
    let bytes = unsafe { std::slice::from_raw_parts(on_host.as_ptr().cast::<u8>(), size_bytes) };
    Ok(floats(bytes))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let each = bytes.chunks_exact(size_of::<f32>());
    each.map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

/// The workers, spread over the GPUs that there are.
pub(crate) fn start_all() -> Result<Vec<Worker>, Box<dyn std::error::Error>> {
    let gpus = gpu_device_count().max(1);
    (0..)
        .zip(WORKERS)
        .map(|(number, name)| Worker::start(name, number % gpus))
        .collect()
}

/// What the workers are asked, with the value that element `i` of the answer has to have.
fn requests(worker: usize) -> Vec<(Work, f32, f32)> {
    let factor = (worker + 2) as f32;
    let evaluate = |len| (Work::Evaluate { len, factor }, factor, 1.0);
    let within = Duration::from_secs(10);
    let middle = match WORKERS[worker] {
        "rerank" => (Work::Oversized, 0.0, 0.0),
        "audio" => (
            Work::Silence {
                samples: 16_000,
                within,
            },
            0.0,
            0.0,
        ),
        _ => evaluate(1000),
    };
    vec![evaluate(256), middle, evaluate(4096)]
}

/// Asks all workers at once, checks each value, and ends them. False where a value was wrong.
pub(crate) fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let workers = start_all()?;
    let asked: Vec<_> = workers
        .iter()
        .enumerate()
        .map(|(number, worker)| {
            let requests = requests(number).into_iter();
            requests
                .map(|(work, factor, addend)| (worker.ask(work), factor, addend))
                .collect::<Vec<_>>()
        })
        .collect();
    let (mut answered, mut failed, mut values, mut wrong) = (0, 0, 0, 0);
    for (worker, answers) in workers.iter().zip(asked) {
        for (answer, factor, addend) in answers {
            match answer.recv()? {
                Ok(got) => {
                    answered += 1;
                    values += got.len();
                    let right = |(i, value): &(usize, f32)| *value == factor * *i as f32 + addend;
                    wrong += got.into_iter().enumerate().filter(|v| !right(v)).count();
                }
                Err(error) => {
                    failed += 1;
                    println!("{}: a request failed: {error}", worker.name);
                }
            }
        }
    }
    for worker in workers {
        let name = worker.name;
        worker.finish()?;
        println!("{name}: ended");
    }
    println!(
        "workers: {answered} answered, {failed} failed, {values} values, {wrong} of them wrong"
    );
    Ok(wrong == 0)
}

fn main() -> ExitCode {
    // A real server leaves this out: then it is a real GPU or an error.
    match choose_driver() {
        Ok(choice) => println!("{choice}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
