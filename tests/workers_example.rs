//! The example `workers`, compiled in: what it prints, and what becomes of its requests when one fails, a deadline
//! passes, or a GPU faults. On `sim`, each in a process of its own.

mod common;
#[allow(dead_code)]
#[path = "../examples/workers.rs"]
mod workers;

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use common::{is_child, run_child, use_sim};
use rocm_device_map::{Status, sim};
use workers::Work;

const DONE: &str = "WORKERS done";
const LONG: Duration = Duration::from_secs(60);

#[test]
fn the_example_answers_all_and_ends() {
    let outcome = run_child("child_runs_the_example", &[]);
    outcome.expect_done(DONE);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let failed: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("a request failed"))
        .collect();
    assert_eq!(failed.len(), 1, "{}", outcome.stdout);
    assert!(
        failed[0].contains("rerank: ") && failed[0].contains("2048"),
        "{failed:?}"
    );
    let end = lines
        .iter()
        .position(|line| line.contains(DONE))
        .expect("it is there");
    let values = 4 * (256 + 4096) + 2 * 1000 + 16_000;
    let summary = format!("workers: 11 answered, 1 failed, {values} values, 0 of them wrong");
    assert_eq!(
        &lines[end - 5..end],
        [
            "scheduler: ended",
            "embedding: ended",
            "rerank: ended",
            "audio: ended",
            summary.as_str()
        ]
    );
    // Both GPUs were used, and each was built once by the workers that share it.
    assert_eq!((outcome.bound_lines(0), outcome.bound_lines(1)), (1, 1));
}

#[test]
#[ignore = "a child"]
fn child_runs_the_example() {
    if !is_child() {
        return;
    }
    use_sim(2);
    println!();
    assert!(workers::run().unwrap());
    println!("{DONE}");
}

#[test]
fn a_deadline_fails_one_request_and_the_worker_goes_on() {
    run_child("child_deadline_of_a_request", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child"]
fn child_deadline_of_a_request() {
    if !is_child() {
        return;
    }
    use_sim(2);
    // Audio is on GPU 1, as embedding is; the others are on GPU 0.
    let all = workers::start_all().unwrap();
    let silence = |within| Work::Silence {
        samples: 100,
        within,
    };
    let evaluate = || Work::Evaluate {
        len: 10,
        factor: 3.0,
    };
    let expected: Vec<f32> = (0..10).map(|i| 3.0 * i as f32 + 1.0).collect();
    let (scheduler, embedding, audio) = (&all[0], &all[1], &all[3]);
    for worker in &all {
        assert_eq!(
            worker.ask(evaluate()).recv_timeout(LONG).unwrap().unwrap(),
            expected
        );
    }

    sim::hold(1, true).unwrap();
    let answer = audio.ask(silence(Duration::from_millis(50)));
    let error = answer.recv_timeout(LONG).unwrap().unwrap_err();
    assert_eq!(error.status(), Status::Timeout, "{error}");
    // An evaluation has no deadline of its own: the client's is the channel's, and the answer is not lost.
    let late = embedding.ask(evaluate());
    assert_eq!(
        late.recv_timeout(Duration::from_millis(50)).unwrap_err(),
        RecvTimeoutError::Timeout
    );
    // The other GPU's workers go on.
    let answer = scheduler.ask(evaluate());
    assert_eq!(answer.recv_timeout(LONG).unwrap().unwrap(), expected);

    sim::hold(1, false).unwrap();
    assert_eq!(late.recv_timeout(LONG).unwrap().unwrap(), expected);
    let answer = audio.ask(silence(LONG));
    assert_eq!(answer.recv_timeout(LONG).unwrap().unwrap(), [0.0; 100]);
    for worker in all {
        worker.finish().unwrap();
    }
    println!("{DONE}");
}

#[test]
fn a_fault_ends_its_gpus_workers_alone() {
    run_child("child_fault_of_a_gpu", &[]).expect_done(DONE);
}

#[test]
#[ignore = "a child"]
fn child_fault_of_a_gpu() {
    if !is_child() {
        return;
    }
    use_sim(2);
    let all = workers::start_all().unwrap();
    let evaluate = || Work::Evaluate {
        len: 10,
        factor: 3.0,
    };
    for worker in &all {
        worker.ask(evaluate()).recv_timeout(LONG).unwrap().unwrap();
    }
    sim::fault(1, 700).unwrap();
    for (number, worker) in all.iter().enumerate() {
        let answer = worker.ask(evaluate()).recv_timeout(LONG).unwrap();
        assert_eq!(
            answer.map_err(|error| error.status()).err(),
            (number % 2 == 1).then_some(Status::DeviceFault)
        );
        // A worker that has told of a fault takes no more requests.
        let next = worker.ask(evaluate()).recv_timeout(LONG);
        assert_eq!(
            next.err(),
            (number % 2 == 1).then_some(RecvTimeoutError::Disconnected)
        );
    }
    for (number, worker) in all.into_iter().enumerate() {
        let end = worker.finish().map_err(|error| error.status());
        assert_eq!(end.err(), (number % 2 == 1).then_some(Status::DeviceFault));
    }
    println!("{DONE}");
}
