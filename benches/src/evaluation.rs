//! The library's evaluation of `arange * 2 + 1`, read back and checked.

use std::time::Duration;

use rocm_device_map::probe::{add_scalar, arange_f32, array_to_raw_bytes, multiply_scalar};
use rocm_device_map::streams::{
    ThreadLocalStream, install_thread_local_default_stream, new_thread_local_stream_on_gpu,
};

use crate::measure::{Design, Place, Worker};

const ELEMENTS: u16 = 256;

pub(crate) const NAME: &str = "evaluation";

pub(crate) struct Evaluation;

struct EvaluationWorker {
    /// Kept for as long as it is the thread's default.
    stream: Option<ThreadLocalStream>,
    result: Result<(), String>,
}

impl Design for Evaluation {
    fn name(&self) -> &str {
        NAME
    }

    fn worker(&self, place: Place) -> Box<dyn Worker + '_> {
        let mut worker = EvaluationWorker {
            stream: None,
            result: Ok(()),
        };
        worker.result = worker.begin(place);
        Box::new(worker)
    }
}

impl EvaluationWorker {
    fn begin(&mut self, place: Place) -> Result<(), String> {
        let text = |error| format!("making a stream: {error}");
        let stream = new_thread_local_stream_on_gpu(place.device_index)
            .map_err(|error| format!("making a stream: {error}"))?;
        install_thread_local_default_stream(Some(&stream)).map_err(text)?;
        self.stream = Some(stream);
        Ok(())
    }
}

fn evaluate() -> Result<(), String> {
    let range = arange_f32(0.0, f32::from(ELEMENTS), 1.0);
    let result = add_scalar(&multiply_scalar(&range, 2.0), 1.0);
    let bytes = array_to_raw_bytes(&result).map_err(|error| error.to_string())?;
    let expected = (0..ELEMENTS).map(|index| f32::from(index) * 2.0 + 1.0);
    let found = bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    if expected.eq(found) {
        Ok(())
    } else {
        Err("an evaluation has a wrong element".to_owned())
    }
}

impl Worker for EvaluationWorker {
    fn run(&mut self, iterations: u64) -> Option<Duration> {
        for _ in 0..iterations {
            if self.result.is_err() {
                break;
            }
            self.result = evaluate();
        }
        None
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        let removed = install_thread_local_default_stream(None).map_err(|error| error.to_string());
        self.result.and(removed)
    }
}
