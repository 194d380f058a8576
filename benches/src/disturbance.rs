//! Whether other work on the machine kept threads from running at once.

use std::time::{Duration, Instant};

/// More than this share of the time, and a run is disturbed.
const LARGEST_SHARE: f64 = 0.05;

/// What the calling thread has waited for a processor so far; none where the system does not tell.
pub(crate) fn time_without_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    parse(&text)
}

/// The time on a processor, the time of waiting for one, and how many turns.
fn parse(text: &str) -> Option<Duration> {
    let waited = text.split_whitespace().nth(1)?;
    waited.parse().ok().map(Duration::from_nanos)
}

/// When a thread ran, and for how much of that it waited for a processor.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) waited: Duration,
}

/// Whether one of the threads waited, or they did not run at the same time.
pub(crate) fn is_disturbed(spans: &[Span]) -> bool {
    let (Some(first_start), Some(last_end)) = (
        spans.iter().map(|span| span.start).min(),
        spans.iter().map(|span| span.end).max(),
    ) else {
        return false;
    };
    let allowed = (last_end - first_start).mul_f64(LARGEST_SHARE);
    spans.iter().any(|span| {
        let apart = (span.start - first_start) + (last_end - span.end);
        span.waited > allowed || apart > allowed * 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(u64, u64, u64)]) -> Vec<Span> {
        let origin = Instant::now();
        of.iter()
            .map(|&(start, end, waited)| Span {
                start: origin + Duration::from_micros(start),
                end: origin + Duration::from_micros(end),
                waited: Duration::from_micros(waited),
            })
            .collect()
    }

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("100 2500 3\n"), Some(Duration::from_nanos(2500)));
        assert_eq!(parse("100"), None);
        assert_eq!(parse("100 x 3"), None);
    }

    #[test]
    fn threads_that_run_at_once_are_not_disturbed() {
        assert!(!is_disturbed(&[]));
        assert!(!is_disturbed(&spans(&[(0, 1000, 0)])));
        assert!(!is_disturbed(&spans(&[(0, 990, 40), (20, 1000, 0)])));
    }

    #[test]
    fn one_that_waits_for_a_processor_is() {
        assert!(is_disturbed(&spans(&[(0, 1000, 0), (0, 1000, 60)])));
    }

    #[test]
    fn those_that_run_one_after_the_other_are() {
        assert!(is_disturbed(&spans(&[(0, 500, 0), (500, 1000, 0)])));
        assert!(is_disturbed(&spans(&[(0, 850, 0), (0, 1000, 0)])));
    }

    #[test]
    fn a_thread_that_sleeps_waits_for_no_processor() {
        // Where the system tells; a sleep is not a wait for a processor, whatever else goes on.
        if let Some(before) = time_without_processor() {
            std::thread::sleep(Duration::from_millis(50));
            let waited = time_without_processor().expect("it told before") - before;
            assert!(waited < Duration::from_millis(45), "{waited:?}");
        }
    }
}
