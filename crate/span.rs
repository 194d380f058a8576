//! Spans of the crate `tracing` around what takes time, with the feature of that name; else nothing.

/// Enters a span, which ends with the block that this is in.
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)?) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "rocm_device_map", $name $(, $field = $value)?).entered();
    };
}

pub(crate) use span;
