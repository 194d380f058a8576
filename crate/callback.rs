//! Handlers in Rust that C calls, which no panic may leave.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a user's handler and ends a panic of it here.
pub(crate) fn call_from_c(handler: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(handler)) else {
        return;
    };
    // What a panic carries may itself panic when dropped; what that one carries is left.
    if let Err(another) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(another);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::call_from_c;

    static DROPPED: AtomicU32 = AtomicU32::new(0);

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose, from a payload");
        }
    }

    #[test]
    fn what_a_panic_carries_is_dropped_and_may_panic_too() {
        call_from_c(|| std::panic::panic_any(PanicsWhenDropped));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
        let mut called = false;
        call_from_c(|| called = true);
        assert!(called);
    }
}
