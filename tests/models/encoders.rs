//! Streams and their encoders against a list of what each stream was given, in order.

use proptest::prelude::*;
use rocm_device_map::{
    CopyKind, Device, DeviceMemory, Encoder, HostMemory, Status, Stream, clear_encoders,
};

use crate::{Operation, agrees, config, given_operations, operations, run_case};

const DEVICES: i32 = 2;
const MOST_STEPS: usize = 64;
const MOST_STREAMS: usize = 6;

/// Each step writes its value to the first byte, and keeps a copy of that in a byte of its own.
struct Known {
    stream: Stream,
    encoder: Option<Encoder>,
    memory: DeviceMemory,
    host: HostMemory,
    steps: Vec<u8>,
}

#[derive(Default)]
struct Model {
    streams: Vec<Known>,
    stale: Vec<Encoder>,
}

impl Model {
    fn create(&mut self, device_index: i32) {
        if self.streams.len() == MOST_STREAMS {
            return;
        }
        let device = Device::get(device_index).expect("a device");
        self.streams.push(Known {
            stream: Stream::new(device_index).expect("a stream"),
            encoder: None,
            memory: DeviceMemory::new(device, MOST_STEPS + 1).expect("memory"),
            host: HostMemory::new(device, MOST_STEPS + 1).expect("memory"),
            steps: Vec::new(),
        });
    }

    /// The same until it is cleared, and then one that is none of those before it.
    fn encoder(&mut self, which: usize) -> Encoder {
        let known = &mut self.streams[which];
        let found = known.stream.encoder().expect("an encoder");
        match &known.encoder {
            Some(encoder) => assert_eq!(encoder.as_raw().bits, found.as_raw().bits),
            None => assert!(
                self.stale
                    .iter()
                    .all(|old| old.as_raw().bits != found.as_raw().bits)
            ),
        }
        known.encoder = Some(found);
        found
    }

    fn step(&mut self, which: usize, value: u8) {
        let encoder = self.encoder(which);
        let known = &mut self.streams[which];
        if known.steps.len() == MOST_STEPS {
            return;
        }
        let first = known.memory.as_ptr();
        known.steps.push(value);
        // SAFETY: both bytes lie in the memory, which lives until the stream was synchronized.
        unsafe {
            encoder.fill(first, value, 1).expect("the device is well");
            let own = first.cast::<u8>().add(known.steps.len());
            encoder
                .copy(own.cast(), first, 1, CopyKind::DeviceToDevice)
                .expect("the device is well");
        }
    }

    fn clear(&mut self) {
        clear_encoders().expect("it can not fail");
        for known in &mut self.streams {
            self.stale.extend(known.encoder.take());
        }
    }

    fn synchronize(&mut self, which: usize) {
        let encoder = self.encoder(which);
        let known = &self.streams[which];
        let (to, from) = (known.host.as_ptr(), known.memory.as_ptr());
        // SAFETY: both are this long, and live on.
        unsafe { encoder.copy(to, from, MOST_STEPS + 1, CopyKind::DeviceToHost) }.expect("a copy");
        known.stream.synchronize(None).expect("the device is well");
        // SAFETY: the copy into it is done.
        let bytes = unsafe { std::slice::from_raw_parts(to.cast::<u8>(), MOST_STEPS + 1) };
        assert_eq!(&bytes[1..=known.steps.len()], known.steps, "out of order");
    }

    fn end(&mut self, which: usize) {
        self.synchronize(which);
        let known = self.streams.swap_remove(which);
        self.stale.extend(known.encoder);
    }

    fn check(&self) {
        for encoder in &self.stale {
            let error = encoder
                .commit()
                .expect_err("it was cleared, or its stream has ended");
            assert_eq!(error.status(), Status::StaleHandle, "{error}");
        }
        for known in &self.streams {
            if let Some(encoder) = &known.encoder {
                encoder.commit().expect("a live encoder");
            }
        }
    }
}

fn run(operations: &[Operation]) {
    crate::common::use_sim(u8::try_from(DEVICES).expect("few"));
    let mut model = Model::default();
    for &(operation, first, second) in operations {
        let count = model.streams.len();
        let which = usize::from(first) % count.max(1);
        match operation % 8 {
            0 => model.create(i32::from(first) % DEVICES),
            1 => model.clear(),
            _ if count == 0 => {}
            2 => model.end(which),
            3 => model.synchronize(which),
            4 => {
                model.encoder(which);
            }
            _ => model.step(which, second),
        }
        model.check();
    }
    while !model.streams.is_empty() {
        model.end(0);
    }
    model.check();
}

#[test]
#[ignore = "run by its parent, on one sequence"]
fn encoders_case() {
    if let Some(operations) = given_operations() {
        run(&operations);
        agrees();
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn encoders_agree_with_their_model(operations in operations(80)) {
        run_case("encoders::encoders_case", &operations)?;
    }
}
