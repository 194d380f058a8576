//! The feature `tracing`: log lines are events, and waits are spans.
#![cfg(feature = "tracing")]

use std::fmt::{Debug, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rocm_device_map::{
    Config, Device, DeviceMemory, Event, Module, ModuleSource, Stream, clear_encoders, configure,
    forward_log_to_tracing,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event as TracingEvent, Level, Metadata, Subscriber};

/// What the subscriber was told, in order: the target, the level and a text.
static TOLD: Mutex<Vec<(String, Level, String)>> = Mutex::new(Vec::new());

struct Recorder {
    next_span: AtomicU64,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        } else {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

fn tell(metadata: &Metadata<'_>, text: String) {
    let entry = (metadata.target().to_owned(), *metadata.level(), text);
    TOLD.lock().unwrap().push(entry);
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut text = Text(format!("span {}", attributes.metadata().name()));
        attributes.record(&mut text);
        tell(attributes.metadata(), text.0);
        Id::from_u64(self.next_span.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &TracingEvent<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        tell(event.metadata(), text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn told(level: Level, start: &str) -> usize {
    let told = TOLD.lock().unwrap();
    told.iter()
        .filter(|(target, found, text)| {
            target == "rocm_device_map" && *found == level && text.starts_with(start)
        })
        .count()
}

#[test]
fn lines_are_events_and_waits_are_spans() {
    // SAFETY: no other thread of this process reads the environment yet. A watchdog that is none is
    // the simplest warning.
    unsafe {
        std::env::set_var("RDM_CACHE_DIR", "");
        std::env::set_var("RDM_WATCHDOG_SECS", "soon");
    }
    tracing::subscriber::set_global_default(Recorder {
        next_span: AtomicU64::new(1),
    })
    .unwrap();
    forward_log_to_tracing().unwrap();
    configure(&Config::new().driver("sim").sim_device_count(2)).unwrap();

    for index in [0, 1, 0] {
        Device::get(index).unwrap();
    }
    assert_eq!(told(Level::DEBUG, "driver sim: 2 devices"), 1);
    assert_eq!(told(Level::INFO, "bound HIP device 0: "), 1);
    assert_eq!(told(Level::INFO, "bound HIP device 1: "), 1);

    let source = ModuleSource::new(
        "one.hip",
        r#"extern "C" __global__ void one(int *out) { *out = 1; }"#,
    )
    .unwrap();
    let device = Device::get(0).unwrap();
    for _ in 0..2 {
        Module::get(device, &source).unwrap();
    }
    assert_eq!(told(Level::DEBUG, "compiling one.hip for sim took "), 1);

    let stream = Stream::new(0).unwrap();
    let memory = DeviceMemory::new(device, 64).unwrap();
    let event = Event::new(device).unwrap();
    let encoder = stream.encoder().unwrap();
    // SAFETY: the memory lives until the stream has been waited for.
    unsafe { encoder.fill(memory.as_ptr(), 1, 64) }.unwrap();
    encoder.record_event(&event).unwrap();
    event.wait(None).unwrap();
    stream.synchronize(None).unwrap();
    device.synchronize(None).unwrap();
    clear_encoders().unwrap();
    assert_eq!(told(Level::DEBUG, "span event_wait"), 1);
    assert_eq!(told(Level::DEBUG, "span stream_synchronize device=0"), 1);
    assert_eq!(told(Level::DEBUG, "span device_synchronize"), 1);
    assert_eq!(told(Level::DEBUG, "device 0: 1 encoders cleared"), 1);
    assert_eq!(told(Level::WARN, "RDM_WATCHDOG_SECS is \"soon\""), 1);

    let told = TOLD.lock().unwrap();
    assert!(told.iter().all(|(target, ..)| target == "rocm_device_map"));
    println!("tracing: {} lines and spans, as they should be", told.len());
}
