//! Events and their pool against a list of states, and a count for each device and kind.

use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use rocm_device_map::{Device, Event, Status, Stream, sim};

use crate::{Operation, agrees, config, given_operations, operations, run_case};

const DEVICES: usize = 2;
const KINDS: usize = 2;
const SHORT: Option<Duration> = Some(Duration::from_micros(200));

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    NeverRecorded,
    Pending,
    Done,
    Failed,
}

struct Known {
    event: Event,
    device: usize,
    kind: usize,
    state: State,
}

/// How many driver events of a device and kind there are, and how many of them nobody has.
#[derive(Default, Clone, Copy)]
struct Pool {
    made: u64,
    idle: u64,
}

struct Model {
    streams: Vec<Stream>,
    held: [bool; DEVICES],
    events: Vec<Known>,
    pools: [[Pool; KINDS]; DEVICES],
}

impl Model {
    fn new() -> Self {
        let streams = (0..DEVICES).map(|i| Stream::new(i32::try_from(i).expect("few")));
        let streams: Vec<Stream> = streams.map(|stream| stream.expect("a device")).collect();
        for stream in &streams {
            // A wait for a stream that has an encoder is one for the driver's.
            stream.encoder().expect("an encoder");
        }
        Self {
            streams,
            held: [false; DEVICES],
            events: Vec::new(),
            pools: Default::default(),
        }
    }

    /// What the pool has idle is taken; only where it has none is one made.
    fn take(&mut self, device: usize, kind: usize) {
        let pool = &mut self.pools[device][kind];
        if pool.idle > 0 {
            pool.idle -= 1;
        } else {
            pool.made += 1;
        }
    }

    fn create(&mut self, device: usize, kind: usize) {
        let on = Device::get(i32::try_from(device).expect("few")).expect("a device");
        let made = if kind == 1 {
            Event::with_timing(on)
        } else {
            Event::new(on)
        };
        let event = made.expect("an event");
        self.take(device, kind);
        assert!(!event.query().expect("a new event can be asked"));
        self.events.push(Known {
            event,
            device,
            kind,
            state: State::NeverRecorded,
        });
    }

    fn release(&mut self, which: usize) {
        let known = self.events.swap_remove(which);
        let raw = known.event.as_raw();
        drop(known.event);
        let stale = Event::from_raw(raw);
        assert_eq!(
            stale.query().expect_err("it was released").status(),
            Status::StaleHandle
        );
        self.pools[known.device][known.kind].idle += 1;
    }

    fn record(&mut self, which: usize, fails: bool) {
        let known = &mut self.events[which];
        if fails {
            sim::inject(Some("hipEventRecord"), 1, 1, 999, Duration::ZERO).expect("sim is in use");
        }
        let stream = &self.streams[known.device];
        let recorded = stream
            .encoder()
            .expect("an encoder")
            .record_event(&known.event);
        sim::clear_injections().expect("sim is in use");
        assert_eq!(recorded.is_err(), fails, "{recorded:?}");
        stream.take_error().expect("a live stream");
        known.state = if fails { State::Failed } else { State::Pending };
        if !fails && !self.held[known.device] {
            known.event.wait(None).expect("nothing holds the device");
            known.state = State::Done;
        }
    }

    fn record_on_another_device(&mut self, which: usize) {
        let known = &self.events[which];
        let encoder = self.streams[(known.device + 1) % DEVICES]
            .encoder()
            .expect("an encoder");
        let error = encoder
            .record_event(&known.event)
            .expect_err("another device");
        assert_eq!(error.status(), Status::WrongDevice, "{error}");
    }

    fn hold(&mut self, device: usize, held: bool) {
        sim::hold(i32::try_from(device).expect("few"), held).expect("sim is in use");
        self.held[device] = held;
        if held {
            return;
        }
        // A wait for a stream has a driver event of its own while it lasts.
        self.streams[device]
            .synchronize(None)
            .expect("nothing holds the device");
        if self.pools[device][0].idle == 0 {
            self.pools[device][0].made += 1;
            self.pools[device][0].idle += 1;
        }
        for known in self
            .events
            .iter_mut()
            .filter(|known| known.device == device)
        {
            if known.state == State::Pending {
                known.state = State::Done;
            }
        }
    }

    fn time(&self, first: usize, second: usize) {
        let (start, end) = (&self.events[first], &self.events[second]);
        let elapsed = end.event.elapsed_since(&start.event);
        let states = [start.state, end.state];
        let expected = if start.device != end.device {
            Err(Status::WrongDevice)
        } else if start.kind == 0 || end.kind == 0 {
            Err(Status::InvalidArgument)
        } else if states
            .iter()
            .any(|state| matches!(state, State::NeverRecorded | State::Failed))
        {
            Err(Status::NotRecorded)
        } else if states.contains(&State::Pending) {
            Err(Status::NotReady)
        } else {
            Ok(())
        };
        // One recorded after the other may be timed the other way round: that is the driver's to judge.
        let found = elapsed.map(|_| ()).map_err(|error| error.status());
        if expected.is_err() {
            assert_eq!(found, expected, "{states:?}");
        }
    }

    fn check(&self) {
        for known in &self.events {
            let asked = known.event.query().map_err(|error| error.status());
            let waited = known.event.wait(SHORT).map_err(|error| error.status());
            let (query, wait) = match known.state {
                State::NeverRecorded => (Ok(false), Err(Status::NotRecorded)),
                State::Pending => (Ok(false), Err(Status::Timeout)),
                State::Done => (Ok(true), Ok(())),
                State::Failed => (Err(Status::NotRecorded), Err(Status::NotRecorded)),
            };
            assert_eq!((asked, waited), (query, wait), "{:?}", known.state);
        }
        let made: u64 = self.pools.iter().flatten().map(|pool| pool.made).sum();
        assert_eq!(sim::count_objects().expect("sim is in use").events, made);
    }
}

fn run(operations: &[Operation]) {
    crate::common::use_sim(u8::try_from(DEVICES).expect("few"));
    let mut model = Model::new();
    for &(operation, first, second) in operations {
        let (first, second) = (usize::from(first), usize::from(second));
        let count = model.events.len();
        match operation % 8 {
            0 | 1 => model.create(first % DEVICES, second % KINDS),
            2 => model.hold(first % DEVICES, second % 2 == 0),
            _ if count == 0 => {}
            3 => model.release(first % count),
            4 => model.record(first % count, second % 4 == 0),
            5 => model.record(first % count, false),
            6 => model.record_on_another_device(first % count),
            _ => model.time(first % count, second % count),
        }
        model.check();
    }
    for device in 0..DEVICES {
        model.hold(device, false);
    }
    model.check();
}

/// Two threads create and release events of one kind; once they have ended, all of their driver events
/// can be had again: none is lost, and there are no more than the two had at once.
fn run_two_threads(operations: &[Operation]) {
    crate::common::use_sim(1);
    let device = Device::get(0).expect("a device");
    let halves = operations.split_at(operations.len() / 2);
    let work = |operations: &[Operation]| {
        let mut events: Vec<Event> = Vec::new();
        let mut most = 0;
        for &(operation, first, _) in operations {
            if operation % 3 != 0 || events.is_empty() {
                events.push(Event::new(device).expect("an event"));
            } else {
                events.swap_remove(usize::from(first) % events.len());
            }
            most = most.max(events.len());
        }
        most
    };
    let most = thread::scope(|scope| {
        let other = scope.spawn(|| work(halves.1));
        let own = scope.spawn(|| work(halves.0));
        own.join().expect("no thread panicked") + other.join().expect("no thread panicked")
    });
    let live = sim::count_objects().expect("sim is in use").events;
    assert!(
        live <= u64::try_from(most).expect("few"),
        "{live} driver events for {most}"
    );
    let again: Vec<Event> = (0..live)
        .map(|_| Event::new(device).expect("an event"))
        .collect();
    let after = sim::count_objects().expect("sim is in use").events;
    assert_eq!(
        after, live,
        "driver events were lost by the threads that ended"
    );
    drop(again);
}

#[test]
#[ignore = "run by its parent, on one sequence"]
fn event_pool_case() {
    if let Some(operations) = given_operations() {
        run(&operations);
        agrees();
    }
}

#[test]
#[ignore = "run by its parent, on one sequence"]
fn event_pool_case_of_two_threads() {
    if let Some(operations) = given_operations() {
        run_two_threads(&operations);
        agrees();
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn event_pool_agrees_with_its_model(operations in operations(40)) {
        run_case("event_pool::event_pool_case", &operations)?;
    }

    #[test]
    fn event_pool_of_two_threads_loses_nothing(operations in operations(200)) {
        run_case("event_pool::event_pool_case_of_two_threads", &operations)?;
    }
}
