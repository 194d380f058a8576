//! Random sequences of calls against simple reference models of the device map, the event pool, the
//! command encoders and the module cache, on `sim`.
//!
//! What the process has is process-wide, so each case runs in a fresh child process: the parent makes
//! up the sequence, and shrinks it where the child and its model disagree. `PROPTEST_CASES` sets how
//! many cases each property has.

#[path = "../common/mod.rs"]
mod common;

mod device_map;
mod encoders;
mod event_pool;
mod module_cache;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError};

const OPERATIONS: &str = "RDM_TEST_OPERATIONS";
const DONE: &str = "the model agrees";

/// An operation and its arguments; what the numbers mean is each model's own.
pub type Operation = (u8, u8, u8);

/// So many cases unless `PROPTEST_CASES` says otherwise. What failed once is kept beside the source.
fn config(cases: u32) -> Config {
    let chosen = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: chosen.and_then(|text| text.parse().ok()).unwrap_or(cases),
        max_shrink_iters: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    }
}

/// Sequences of operations; models take the first number modulo how many they have.
fn operations(longest: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(any::<Operation>(), 0..longest)
}

/// Runs the body of a model's ignored test on a sequence, in a fresh process.
fn run_case(test: &str, operations: &[Operation]) -> Result<common::Outcome, TestCaseError> {
    let bytes: Vec<String> = operations
        .iter()
        .map(|(operation, first, second)| format!("{operation}.{first}.{second}"))
        .collect();
    let outcome = common::run_child(
        test,
        &[(OPERATIONS, &bytes.join(",")), ("RDM_SIM_COMPILER", "cc")],
    );
    if outcome.status.success() && outcome.stdout.contains(DONE) {
        return Ok(outcome);
    }
    Err(TestCaseError::fail(format!(
        "{test} ended with {}\n{}\n{}",
        outcome.status, outcome.stdout, outcome.stderr
    )))
}

/// The child's side: the sequence that its parent made up, none where this is no child.
fn given_operations() -> Option<Vec<Operation>> {
    if !common::is_child() {
        return None;
    }
    let text = std::env::var(OPERATIONS).expect("the parent set it");
    let number = |text: Option<&str>| -> u8 {
        text.expect("three numbers")
            .parse()
            .expect("a number below 256")
    };
    let operations = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let mut parts = part.split('.');
        (
            number(parts.next()),
            number(parts.next()),
            number(parts.next()),
        )
    });
    Some(operations.collect())
}

/// The child's last word.
fn agrees() {
    println!("{DONE}");
}
