//! The module cache against a map from (device, name, source, options in order) to a module.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use rocm_device_map::{Device, Module, ModuleSource, Status, sim};

use crate::{Operation, agrees, config, given_operations, operations, run_case};

const DEVICES: i32 = 2;
const COMPILE: &str = "hiprtcCompileProgram";
const NAMES: [&str; 2] = ["first", "second"];
const GOOD: &str = "extern \"C\" __global__ void k(unsigned *out) { out[0] = 1; }";
const BAD: &str = "extern \"C\" __global__ void k(unsigned *out) { out[0] = no_such_name; }";
const OPTIONS: [&[&str]; 3] = [&[], &["-DA=1", "-DB=2"], &["-DB=2", "-DA=1"]];

/// What a code is compiled from; it serves every device.
type Code = (usize, bool, usize);

#[derive(Default)]
struct Model {
    modules: BTreeMap<(i32, Code), u64>,
    codes: Vec<Code>,
    compiles: u64,
}

fn get(device: i32, (name, is_good, options): Code) -> rocm_device_map::Result<u64> {
    let text = if is_good { GOOD } else { BAD };
    let mut source = ModuleSource::new(NAMES[name], text).expect("no NUL is in it");
    for option in OPTIONS[options] {
        source = source.option(option).expect("no NUL is in it");
    }
    let module = Module::get(Device::get(device).expect("a device"), &source)?;
    module.kernel("k").expect("the source has it");
    Ok(module.as_raw().bits)
}

impl Model {
    fn keep(&mut self, device: i32, code: Code, bits: u64) {
        let others = self
            .modules
            .iter()
            .filter(|(key, _)| **key != (device, code));
        assert!(
            others.into_iter().all(|(_, other)| *other != bits),
            "two keys have one module"
        );
        assert_eq!(*self.modules.entry((device, code)).or_insert(bits), bits);
        if !self.codes.contains(&code) {
            self.codes.push(code);
            self.compiles += 1;
        }
    }

    /// A failure is kept for nobody: the next call compiles again.
    fn look_up(&mut self, device: i32, code: Code, next_compile_fails: bool) {
        if next_compile_fails {
            sim::inject(Some(COMPILE), 1, 1, 11, Duration::ZERO).expect("sim is in use");
        }
        let has_code = self.codes.contains(&code);
        match get(device, code) {
            Ok(bits) => {
                assert!(code.1 && (has_code || !next_compile_fails));
                self.keep(device, code, bits);
            }
            Err(error) => {
                assert!(!has_code && (!code.1 || next_compile_fails), "{error}");
                if !next_compile_fails {
                    assert_eq!(error.status(), Status::Compile, "{error}");
                    assert!(error.message().contains("no_such_name"), "{error}");
                }
                self.compiles += 1;
            }
        }
        sim::clear_injections().expect("sim is in use");
    }

    /// Two threads ask for one key at once: one compile, one module.
    fn look_up_twice_at_once(&mut self, device: i32, code: Code) {
        let code = (code.0, true, code.2);
        let other = thread::spawn(move || get(device, code).expect("a good source"));
        let bits = get(device, code).expect("a good source");
        assert_eq!(bits, other.join().expect("no thread panicked"));
        self.keep(device, code, bits);
    }

    fn check(&self) {
        assert_eq!(
            Module::compile_count().expect("it can not fail"),
            self.compiles
        );
        assert_eq!(Module::disk_hit_count().expect("it can not fail"), 0);
        let objects = sim::count_objects().expect("sim is in use");
        let modules = u64::try_from(self.modules.len()).expect("few");
        assert_eq!((objects.modules, objects.programs), (modules, 0));
    }
}

fn run(operations: &[Operation]) {
    crate::common::use_sim(u8::try_from(DEVICES).expect("few"));
    let mut model = Model::default();
    for &(operation, first, second) in operations {
        let device = i32::from(first) % DEVICES;
        let code = (
            usize::from(first / 2) % NAMES.len(),
            second % 6 != 0,
            usize::from(second) % OPTIONS.len(),
        );
        match operation % 4 {
            0 => model.look_up_twice_at_once(device, code),
            1 => model.look_up(device, code, true),
            _ => model.look_up(device, code, false),
        }
        model.check();
    }
}

#[test]
#[ignore = "run by its parent, on one sequence"]
fn module_cache_case() {
    if let Some(operations) = given_operations() {
        run(&operations);
        agrees();
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn module_cache_agrees_with_its_model(operations in operations(16)) {
        run_case("module_cache::module_cache_case", &operations)?;
    }
}
