//! Where the library's log lines go.

use std::ffi::{CStr, c_char, c_void};

use crate::callback::call_from_c;
use crate::error::{Result, check};
use crate::sys;

/// How severe a log line is. A greater one is less severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Something failed that no caller is told of otherwise.
    Error,
    /// Something is not as it should be, and the library goes on.
    Warning,
    /// The one line `bound HIP device N: ...` for each device, and the like. The default.
    Info,
    /// Detail for those who look for a fault.
    Debug,
}

impl LogLevel {
    fn to_raw(self) -> sys::rdm_log_level {
        (match self {
            Self::Error => sys::RDM_LOG_ERROR,
            Self::Warning => sys::RDM_LOG_WARNING,
            Self::Info => sys::RDM_LOG_INFO,
            Self::Debug => sys::RDM_LOG_DEBUG,
        }) as sys::rdm_log_level
    }

    fn from_raw(raw: sys::rdm_log_level) -> Self {
        match raw as u32 {
            sys::RDM_LOG_ERROR => Self::Error,
            sys::RDM_LOG_WARNING => Self::Warning,
            sys::RDM_LOG_INFO => Self::Info,
            _ => Self::Debug,
        }
    }
}

type Handler = Box<dyn Fn(LogLevel, &str) + Send + Sync>;

extern "C" fn call_handler(
    level: sys::rdm_log_level,
    message: *const c_char,
    user_data: *mut c_void,
) {
    // SAFETY: `user_data` is the handler that `set_log_handler` leaked, so it lives for ever, and it
    // may be called from several threads at once. `message` is a text that lives during the call.
    let (handler, message) = unsafe { (&*user_data.cast::<Handler>(), CStr::from_ptr(message)) };
    call_from_c(|| handler(LogLevel::from_raw(level), &message.to_string_lossy()));
}

/// Sends log lines of `max_level` and more severe to `handler` in place of standard error.
///
/// The handler may be called from any thread, from several at once, and shortly after it was
/// replaced; so each one that is set stays in memory for the life of the process. It must not call
/// this library. A panic in it ends at its boundary.
pub fn set_log_handler(
    max_level: LogLevel,
    handler: impl Fn(LogLevel, &str) + Send + Sync + 'static,
) -> Result<()> {
    let handler: Handler = Box::new(handler);
    let user_data: *mut Handler = Box::into_raw(Box::new(handler));
    // SAFETY: the handler is never freed, and `call_handler` takes it from any thread.
    check(unsafe {
        sys::rdm_set_log_handler(Some(call_handler), user_data.cast(), max_level.to_raw())
    })
}

/// The level that `RDM_LOG_LEVEL` names (`error`, `warning`, `info` or `debug`), else
/// [`Info`](LogLevel::Info). It is what standard error gets until a handler is set; a program's own
/// handler may go by it too.
///
/// ```
/// use rocm_device_map::{default_log_level, set_log_handler};
///
/// set_log_handler(default_log_level(), |level, line| println!("{level:?}: {line}"))?;
/// # Ok::<(), rocm_device_map::Error>(())
/// ```
pub fn default_log_level() -> LogLevel {
    // SAFETY: the function takes nothing and can not fail.
    LogLevel::from_raw(unsafe { sys::rdm_default_log_level() })
}

/// Sends every log line to `tracing`, as an event with the target `rocm_device_map`, in place of
/// standard error. Which of them are kept, and where they go, is then the subscriber's to say.
///
/// Lines of the level [`Debug`](LogLevel::Debug) are sent too, and put into words before the
/// subscriber is asked; there are none on paths that are taken for each kernel. A subscriber must not
/// call this library. Each call leaves a few bytes in memory for the life of the process, so once is
/// enough.
///
/// ```
/// rocm_device_map::forward_log_to_tracing()?;
/// # Ok::<(), rocm_device_map::Error>(())
/// ```
#[cfg(feature = "tracing")]
pub fn forward_log_to_tracing() -> Result<()> {
    const TARGET: &str = "rocm_device_map";
    set_log_handler(LogLevel::Debug, |level, line| match level {
        LogLevel::Error => tracing::error!(target: TARGET, "{line}"),
        LogLevel::Warning => tracing::warn!(target: TARGET, "{line}"),
        LogLevel::Info => tracing::info!(target: TARGET, "{line}"),
        LogLevel::Debug => tracing::debug!(target: TARGET, "{line}"),
    })
}

/// Sends log lines of `max_level` and more severe to standard error, as at the start.
pub fn reset_log_handler(max_level: LogLevel) -> Result<()> {
    // SAFETY: a null handler takes no user data.
    check(unsafe { sys::rdm_set_log_handler(None, std::ptr::null_mut(), max_level.to_raw()) })
}
