//! The map against a set of the indices whose first use went well.

use std::collections::BTreeMap;
use std::thread;

use proptest::prelude::*;
use rocm_device_map::{Device, Status, sim};

use crate::{Operation, agrees, config, given_operations, operations, run_case};

const DEVICES: i32 = 4;
/// The two calls of a first use that make it fail.
const FIRST_USE: [&str; 2] = ["hipSetDevice", "hipGetDeviceProperties"];

#[derive(Default)]
struct Model {
    constructed: BTreeMap<i32, u64>,
    next_use_fails: bool,
}

impl Model {
    fn look_up(&mut self, index: i32) {
        match Device::get(index) {
            Ok(device) => {
                let bits = device.as_raw().bits;
                if let Some(known) = self.constructed.get(&index) {
                    assert_eq!(*known, bits, "device {index} is another one now");
                } else {
                    assert!(
                        (0..DEVICES).contains(&index) && !self.next_use_fails,
                        "{index}"
                    );
                    assert!(!self.constructed.values().any(|known| *known == bits));
                    self.constructed.insert(index, bits);
                }
            }
            Err(error) if !(0..DEVICES).contains(&index) => {
                assert_eq!(error.status(), Status::InvalidDevice, "{error}");
                let (named, count) = (format!("index {index} "), format!("{DEVICES} devices"));
                assert!(error.message().contains(&named), "{error}");
                assert!(error.message().contains(&count), "{error}");
            }
            Err(error) => {
                assert_eq!(error.status(), Status::Driver, "{error}");
                assert!(
                    self.next_use_fails && !self.constructed.contains_key(&index),
                    "{error}"
                );
                self.next_use_fails = false;
                sim::clear_injections().expect("sim is in use");
            }
        }
    }

    /// Two threads ask for one index at once: both get it, and it is constructed once.
    fn look_up_twice_at_once(&mut self, index: i32) {
        self.forget_failure();
        let get = move || {
            Device::get(index)
                .expect("its first use goes well")
                .as_raw()
                .bits
        };
        let other = thread::spawn(get);
        let bits = get();
        assert_eq!(bits, other.join().expect("no thread panicked"));
        assert_eq!(*self.constructed.entry(index).or_insert(bits), bits);
    }

    fn fail_next_use(&mut self, call: &str) {
        self.forget_failure();
        sim::inject(Some(call), 1, 1, 999, std::time::Duration::ZERO).expect("sim is in use");
        self.next_use_fails = true;
    }

    fn forget_failure(&mut self) {
        sim::clear_injections().expect("sim is in use");
        self.next_use_fails = false;
    }

    fn check(&self) {
        for index in 0..DEVICES {
            let expected = u64::from(self.constructed.contains_key(&index));
            assert_eq!(
                Device::construction_count(index).expect("a valid index"),
                expected
            );
        }
    }
}

fn run(operations: &[Operation]) {
    crate::common::use_sim(u8::try_from(DEVICES).expect("few"));
    let mut model = Model::default();
    for &(operation, first, second) in operations {
        // Two below and two above the valid ones.
        let index = i32::from(first) % (DEVICES + 4) - 2;
        match operation % 4 {
            0 | 1 => model.look_up(index),
            2 => model.look_up_twice_at_once(i32::from(first) % DEVICES),
            _ => model.fail_next_use(FIRST_USE[usize::from(second) % 2]),
        }
        model.check();
    }
    let constructed: Vec<String> = model.constructed.keys().map(i32::to_string).collect();
    println!("constructed: {}", constructed.join(","));
}

#[test]
#[ignore = "run by its parent, on one sequence"]
fn device_map_case() {
    if let Some(operations) = given_operations() {
        run(&operations);
        agrees();
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// And one line is logged for each device, ever.
    #[test]
    fn device_map_agrees_with_its_model(operations in operations(24)) {
        let outcome = run_case("device_map::device_map_case", &operations)?;
        let line = outcome.stdout.lines().find_map(|line| line.split_once("constructed: "));
        let constructed = line.expect("the child prints it").1.split(',').filter(|index| !index.is_empty());
        let mut expected: Vec<i32> = constructed.map(|index| index.parse().expect("an index")).collect();
        let mut bound = outcome.bound_indices();
        expected.sort_unstable();
        bound.sort_unstable();
        prop_assert_eq!(bound, expected);
    }
}
