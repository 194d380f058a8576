//! The structs of `rocm_device_map::sys` have the sizes and offsets that are committed in
//! `abi/layout.txt`, which the C compilers are held against too (`make abi-check`).

use std::fmt::Write;
use std::mem::{align_of, offset_of, size_of};

use rocm_device_map::sys::*;

fn size_of_value<T>(_: &T) -> usize {
    size_of::<T>()
}

/// A table in the form of `abi/layout.txt` of the structs and all of their fields. The patterns name
/// each field, so that one which is not listed here does not compile.
macro_rules! layout {
    ($($name:ident { $($field:ident),* })*) => {{
        let mut table = String::new();
        $({
            writeln!(
                table,
                "struct {} size {} align {}",
                stringify!($name),
                size_of::<$name>(),
                align_of::<$name>()
            )
            .unwrap();
            // SAFETY: plain data, of numbers, texts and pointers, for which zeros are a value.
            let value: $name = unsafe { std::mem::zeroed() };
            let $name { $($field),* } = &value;
            $(
                writeln!(
                    table,
                    "field {}.{} offset {} size {}",
                    stringify!($name),
                    stringify!($field),
                    offset_of!($name, $field),
                    size_of_value($field)
                )
                .unwrap();
            )*
        })*
        table
    }};
}

#[test]
fn structs_are_as_committed() {
    let now = layout! {
        rdm_error { struct_size, status, driver_code, device_index, driver_name, call, message }
        rdm_device { bits }
        rdm_stream { bits }
        rdm_thread_local_stream { bits }
        rdm_encoder { bits }
        rdm_event { bits }
        rdm_module { bits }
        rdm_kernel { bits }
        rdm_graph { bits }
        rdm_config { struct_size, driver, sim_device_count }
        rdm_driver_info { struct_size, driver_version, runtime_version, compiler_version, name, runtime_path, compiler_path }
        rdm_device_info { struct_size, device_index, total_memory_bytes, multiprocessor_count, warp_size, max_threads_per_block, faulted, name, architecture }
        rdm_stream_info { struct_size, device_index, stream_index }
        rdm_launch_config { struct_size, grid, block, shared_memory_bytes, argument_sizes_bytes }
        rdm_module_source { struct_size, option_count, name, source, options }
        rdm_cache_info { struct_size, enabled, entry_count, size_bytes, limit_bytes, path, problem }
        rdm_device_node { struct_size, exists, accessible, mode, owner_id, group_id, driver, path, group, problem }
        rdm_counters { struct_size, reserved, device_lookups, device_hits, device_constructions, faults, encoder_lookups, encoder_hits, encoders_created, encoders_alive, streams_created, streams_alive, driver_streams, launches, copies, copied_bytes, fills, graphs_created, graphs_alive, graph_launches, launches_refused, batches_committed, batches_pending, events_created, events_released, events_alive, events_pooled, driver_events, event_pool_visits, event_records, event_waits, waits, waits_running, wait_time_ns, wait_timeouts, wait_watchdogs, modules_loaded, module_lookups, module_hits, compiles, compile_failures, compiles_running, compile_time_ns, disk_cache_hits, disk_cache_misses, device_allocations, device_frees, host_allocations, host_frees, driver_errors, stream_errors, log_errors, log_warnings }
        rdm_sim_call { time_ns, thread, handle, current_device, named_device, result, in_callback, entry_point }
        rdm_sim_objects { struct_size, reserved, streams, events, modules, programs, device_allocations, host_allocations, graphs }
    };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/abi/layout.txt");
    let committed = std::fs::read_to_string(path).expect("the committed table is there");
    // A field's line ends with its type in C, which Rust has no word for.
    let committed: Vec<String> = committed
        .lines()
        .filter(|line| line.starts_with("struct ") || line.starts_with("field "))
        .map(|line| line.split(" type ").next().unwrap_or(line).to_owned())
        .collect();
    let now: Vec<&str> = now.lines().collect();
    for line in &now {
        assert!(
            committed.iter().any(|other| other == line),
            "Rust has `{line}`, which abi/layout.txt has not; `make abi-update` where it is new"
        );
    }
    for line in &committed {
        assert!(
            now.contains(&line.as_str()),
            "abi/layout.txt has `{line}`, and Rust has not; where it is new, list it in this test"
        );
    }
    println!(
        "abi layout: {} structs and fields are as committed",
        now.len()
    );
}

#[test]
fn constants_are_as_committed() {
    let committed = include_str!("../abi/layout.txt");
    let bindings = include_str!("../crate/sys/bindings.rs");
    let mut checked = 0;
    for line in committed.lines() {
        let Some((name, value)) = line
            .strip_prefix("constant ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        // Of an expression bindgen makes no constant; `RDM_WAIT_FOREVER` is `u64::MAX`.
        if name == "RDM_WAIT_FOREVER" {
            assert_eq!(value, "-1");
            continue;
        }
        let start = format!("pub const {name}: ");
        let found = bindings.lines().find_map(|line| {
            line.strip_prefix(&start)?
                .strip_suffix(';')?
                .split_once(" = ")
        });
        assert_eq!(found.map(|(_, value)| value), Some(value), "{name}");
        checked += 1;
    }
    assert!(checked > 30, "only {checked} constants were found");
    println!("abi layout: {checked} constants are as committed");
}
