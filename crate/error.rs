//! What a call that failed came to.

use std::ffi::{CStr, c_char};
use std::fmt;

use crate::sys;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $constant:ident,)*) => {
        /// The kind of an [`Error`]: the status codes of the C ABI.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Status {
            $($(#[$doc])* $name,)*
            /// A code that this version of the crate does not know.
            Other(i32),
        }

        impl From<i32> for Status {
            fn from(code: i32) -> Self {
                $(if code == sys::$constant as i32 {
                    return Self::$name;
                })*
                Self::Other(code)
            }
        }

        impl Status {
            /// The code of the C ABI.
            pub fn code(self) -> i32 {
                match self {
                    $(Self::$name => sys::$constant as i32,)*
                    Self::Other(code) => code,
                }
            }
        }
    };
}

statuses! {
    /// Success. No [`Error`] has it.
    Ok = RDM_OK,
    /// An argument is outside what the function takes; the message names it.
    InvalidArgument = RDM_ERROR_INVALID_ARGUMENT,
    /// The handle is null.
    NullHandle = RDM_ERROR_NULL_HANDLE,
    /// The handle was released, or its encoder was cleared.
    StaleHandle = RDM_ERROR_STALE_HANDLE,
    /// The value is a handle of another kind, or was never a handle of this process.
    ForeignHandle = RDM_ERROR_FOREIGN_HANDLE,
    /// The device index is negative or not below the device count.
    InvalidDevice = RDM_ERROR_INVALID_DEVICE,
    /// The driver works and reports no device.
    NoDevice = RDM_ERROR_NO_DEVICE,
    /// The driver's library was not found, or lacks a symbol.
    NoDriver = RDM_ERROR_NO_DRIVER,
    /// `RDM_DRIVER` or the configuration names a driver that does not exist or was not built in.
    UnknownDriver = RDM_ERROR_UNKNOWN_DRIVER,
    /// The driver's library is of a version that is not supported.
    DriverVersion = RDM_ERROR_DRIVER_VERSION,
    /// The user may not open the GPU's device nodes.
    Permission = RDM_ERROR_PERMISSION,
    /// The work is still running. The safe API says so with a value and not with an error.
    NotReady = RDM_NOT_READY,
    /// The event was never recorded, or its last record failed.
    NotRecorded = RDM_ERROR_NOT_RECORDED,
    /// The deadline given by the caller passed. The wait can be taken up again.
    Timeout = RDM_ERROR_TIMEOUT,
    /// The wait outlasted `RDM_WATCHDOG_SECS`.
    Watchdog = RDM_ERROR_WATCHDOG,
    /// The device has faulted. Every later call on it fails with this at once.
    DeviceFault = RDM_ERROR_DEVICE_FAULT,
    /// The driver refused a launch; the device stays usable.
    Launch = RDM_ERROR_LAUNCH,
    /// The driver returned an error with no status of its own here; see [`Error::driver_code`].
    Driver = RDM_ERROR_DRIVER,
    /// Memory ran out, the device's or the host's.
    OutOfMemory = RDM_ERROR_OUT_OF_MEMORY,
    /// The run-time compiler refused the source; the message ends with the tail of its log.
    Compile = RDM_ERROR_COMPILE,
    /// The module has no kernel of that name.
    KernelNotFound = RDM_ERROR_KERNEL_NOT_FOUND,
    /// The process is exiting.
    ShuttingDown = RDM_ERROR_SHUTTING_DOWN,
    /// This process was forked after its parent had loaded the driver.
    Forked = RDM_ERROR_FORKED,
    /// The function waits and was called from a completion handler.
    InCallback = RDM_ERROR_IN_CALLBACK,
    /// [`configure`](crate::configure) came after the driver was chosen.
    AlreadyConfigured = RDM_ERROR_ALREADY_CONFIGURED,
    /// Two things that must be on one device are on two.
    WrongDevice = RDM_ERROR_WRONG_DEVICE,
    /// The driver or the build can not do this.
    Unsupported = RDM_ERROR_UNSUPPORTED,
    /// A system resource other than memory ran out (threads, handles).
    Resource = RDM_ERROR_RESOURCE,
    /// A stream is being captured into a graph, and the driver does not let this happen meanwhile.
    Capturing = RDM_ERROR_CAPTURING,
}

impl Status {
    /// The name of the constant in the C ABI, such as `RDM_ERROR_TIMEOUT`.
    pub fn name(self) -> &'static str {
        // SAFETY: the function takes any value and gives a text of static storage.
        unsafe { static_text(sys::rdm_status_name(self.code())) }
    }

    /// One sentence on the status.
    pub fn description(self) -> &'static str {
        // SAFETY: as in `name`.
        unsafe { static_text(sys::rdm_status_description(self.code())) }
    }
}

/// # Safety
///
/// `text` must be null or a text of static storage that ends with a NUL.
pub(crate) unsafe fn static_text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: the caller promises it.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}

/// Why a call failed: the status, the whole message, and where a driver call was the cause, which
/// call it was and what the driver said.
///
/// A failed call changes nothing, unless its documentation says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    driver_code: i32,
    device_index: i32,
    driver_name: String,
    call: String,
    message: String,
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            driver_code: 0,
            device_index: -1,
            driver_name: String::new(),
            call: String::new(),
            message: message.into(),
        }
    }

    /// The calling thread's last error, where it is one of this status; else the status alone.
    pub(crate) fn last(status: i32) -> Self {
        let mut raw = empty_error();
        // SAFETY: the pointer is to a struct that says its own size.
        unsafe { sys::rdm_last_error(&mut raw) };
        if raw.status == status {
            return Self::from_raw(&raw);
        }
        let status = Status::from(status);
        Self::new(status, status.description())
    }

    /// An error as the C ABI gives it, for code that calls [`sys`] itself.
    pub fn from_raw(raw: &sys::rdm_error) -> Self {
        Self {
            status: Status::from(raw.status),
            driver_code: raw.driver_code,
            device_index: raw.device_index,
            driver_name: field_text(&raw.driver_name),
            call: field_text(&raw.call),
            message: field_text(&raw.message),
        }
    }

    /// The same error with another message.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// The kind of the error.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The driver's own error number (HIP numbering), where a driver call failed.
    pub fn driver_code(&self) -> Option<i32> {
        (self.driver_code != 0).then_some(self.driver_code)
    }

    /// The driver's name for its error number, such as `hipErrorInvalidValue`.
    pub fn driver_name(&self) -> Option<&str> {
        (!self.driver_name.is_empty()).then_some(self.driver_name.as_str())
    }

    /// The driver entry point that failed, such as `hipModuleLaunchKernel`.
    pub fn call(&self) -> Option<&str> {
        (!self.call.is_empty()).then_some(self.call.as_str())
    }

    /// The index of the device it happened on.
    pub fn device_index(&self) -> Option<i32> {
        (self.device_index >= 0).then_some(self.device_index)
    }

    /// The whole message: one line, but for a compiler's log.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            formatter.write_str(self.status.description())
        } else {
            formatter.write_str(&self.message)
        }
    }
}

impl std::error::Error for Error {}

/// A struct for the C ABI to fill.
pub(crate) fn empty_error() -> sys::rdm_error {
    sys::rdm_error {
        struct_size: size_of::<sys::rdm_error>() as u32,
        ..Default::default()
    }
}

/// The text in a fixed field of a struct of the C ABI, up to its NUL.
pub(crate) fn field_text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .take_while(|&&character| character != 0)
        .map(|&character| character as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Turns a status into a result, with the thread's last error where it is a failure.
pub(crate) fn check(status: i32) -> Result<()> {
    if status == sys::RDM_OK as i32 {
        Ok(())
    } else {
        Err(Error::last(status))
    }
}
