//! The counters of the process: exact when threads have ended, and never less than they were.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rocm_device_map::{
    Config, CounterKind, Counters, Device, DeviceMemory, Event, Stream, configure, counters,
};

const THREADS: u64 = 6;
const WAVES: u64 = 5;
const ROUNDS: u64 = 200;

fn totals(counters: &Counters) -> HashMap<&'static str, u64> {
    counters
        .entries()
        .filter(|entry| entry.kind == CounterKind::Total)
        .map(|entry| (entry.name, entry.value))
        .collect()
}

/// Each total of `before` is at least as much in `after`.
fn assert_grown(before: &Counters, after: &Counters) {
    let after = totals(after);
    for (name, value) in totals(before) {
        assert!(
            after[name] >= value,
            "{name} was {value}, and is {}",
            after[name]
        );
    }
}

fn work(device_index: i32) {
    let stream = Stream::new(device_index).unwrap();
    let memory = DeviceMemory::new(Device::get(device_index).unwrap(), 64).unwrap();
    for _ in 0..ROUNDS {
        let device = Device::get(device_index).unwrap();
        let event = Event::new(device).unwrap();
        let encoder = stream.encoder().unwrap();
        // SAFETY: the memory lives until the stream has been waited for.
        unsafe { encoder.fill(memory.as_ptr(), 1, 64) }.unwrap();
        encoder.record_event(&event).unwrap();
    }
    stream.synchronize(None).unwrap();
}

#[test]
fn sums_are_exact_and_totals_only_grow() {
    configure(&Config::new().driver("sim").sim_device_count(2)).unwrap();
    let before = counters().unwrap();
    assert_eq!(before.device_lookups, 0);
    let over = AtomicBool::new(false);
    let reads = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            let mut before = counters().unwrap();
            while !over.load(Ordering::Relaxed) {
                let after = counters().unwrap();
                assert_grown(&before, &after);
                assert!(
                    after.events_alive <= THREADS,
                    "{} events",
                    after.events_alive
                );
                before = after;
                reads += 1;
            }
            reads
        });
        for _ in 0..WAVES {
            thread::scope(|scope| {
                for number in 0..THREADS {
                    scope.spawn(move || work((number % 2) as i32));
                }
            });
        }
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    let after = counters().unwrap();
    assert_grown(&before, &after);
    let threads = THREADS * WAVES;
    let rounds = threads * ROUNDS;
    assert!(reads > 0);
    // Two more lookups for each thread: for the stream, and for the memory.
    assert_eq!(after.device_lookups, rounds + 2 * threads);
    assert_eq!(after.device_hits, rounds + threads);
    assert_eq!(after.device_constructions, 2);
    assert_eq!(after.encoder_lookups, rounds);
    assert_eq!(after.encoder_hits, rounds - threads);
    assert_eq!(after.events_created, rounds);
    assert_eq!(after.events_released, rounds);
    assert_eq!(after.events_alive, 0);
    assert_eq!(after.events_pooled, after.driver_events);
    assert_eq!(after.fills, rounds);
    assert_eq!(after.event_records, rounds);
    assert_eq!(after.streams_created, threads);
    assert_eq!(after.streams_alive, 0);
    assert_eq!(after.device_allocations, threads);
    assert_eq!(after.device_frees, threads);
    assert_eq!(after.wait_time().as_nanos(), u128::from(after.wait_time_ns));
    assert_eq!(after.compile_time().as_nanos(), 0);
    println!("counters: {rounds} rounds on {threads} threads, {reads} reads meanwhile, all exact");
}

#[test]
fn entries_are_the_fields() {
    let entries: Vec<_> = Counters::default().entries().collect();
    let debug = format!("{:?}", Counters::default());
    assert_eq!(entries.len(), debug.matches(": 0").count());
    for entry in &entries {
        assert!(
            debug.contains(&format!("{}: 0", entry.name)),
            "{}",
            entry.name
        );
    }
    let now: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == CounterKind::Now)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(
        now,
        [
            "encoders_alive",
            "streams_alive",
            "graphs_alive",
            "batches_pending",
            "events_alive",
            "events_pooled",
            "driver_events",
            "waits_running",
            "compiles_running",
        ]
    );
}
