//! The cache of compiled kernels on disk, which the processes of one user share.
//!
//! It is at `RDM_CACHE_DIR` (empty: no cache; else an absolute path), else in the folder
//! `rocm-device-map` of `XDG_CACHE_HOME`, else of `~/.cache`. The folder has to belong to this user and
//! be writable by nobody else; a process that can not use it works without it and says so once. It
//! holds at most `RDM_CACHE_MAX_BYTES`, 1 GiB where that is not set; the least recently used entries
//! go first. Nothing here loads a driver.
//!
//! ```
//! use rocm_device_map::{Config, ModuleSource, cache, configure};
//!
//! let folder = std::env::temp_dir().join(format!("rdm-doc-cache-{}", std::process::id()));
//! // SAFETY: no other thread runs yet.
//! unsafe { std::env::set_var("RDM_CACHE_DIR", &folder) };
//! configure(&Config::new().driver("sim"))?;
//! ModuleSource::new("one.hip", r#"extern "C" __global__ void one(int *out) { *out = 1; }"#)?
//!     .code_for("sim")?;
//!
//! let info = cache::info()?;
//! assert_eq!(info.path, folder);
//! assert_eq!(info.entry_count, 1);
//! let damaged = cache::check(false, |_| ())?;
//! assert_eq!(damaged, 0);
//! assert_eq!(cache::prune(0)?.entry_count, 1);
//! assert_eq!(cache::info()?.entry_count, 0);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), rocm_device_map::Error>(())
//! ```

use std::any::Any;
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use crate::error::{Result, check as check_status, field_text};
use crate::sys;

/// The cache on disk, as [`info`] found it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheInfo {
    /// Whether there is a folder that can be used, or can be made.
    pub enabled: bool,
    /// How many kernels are in it.
    pub entry_count: u64,
    /// How much they take.
    pub size_bytes: u64,
    /// How much they may take.
    pub limit_bytes: u64,
    /// The folder; empty where there is none.
    pub path: PathBuf,
    /// Why there is none, or it can not be used or written to.
    pub problem: Option<String>,
}

/// One file of the cache, as [`check()`] found it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// The file's name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether it is whole and undamaged, and nobody else can write to it.
    pub is_valid: bool,
}

/// What [`prune`] removed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many kernels.
    pub entry_count: u64,
    /// How much they took.
    pub size_bytes: u64,
}

/// Describes the cache. Makes no folder.
///
/// # Errors
///
/// [`Status::Forked`](crate::Status::Forked), [`Status::ShuttingDown`](crate::Status::ShuttingDown). A
/// cache that can not be used is no error here: see [`CacheInfo::problem`].
pub fn info() -> Result<CacheInfo> {
    let mut raw = sys::rdm_cache_info {
        struct_size: size_of::<sys::rdm_cache_info>() as u32,
        enabled: 0,
        entry_count: 0,
        size_bytes: 0,
        limit_bytes: 0,
        path: [0; 1024],
        problem: [0; 1024],
    };
    // SAFETY: the struct says its size.
    check_status(unsafe { sys::rdm_cache_get_info(&mut raw) })?;
    let problem = field_text(&raw.problem);
    Ok(CacheInfo {
        enabled: raw.enabled != 0,
        entry_count: raw.entry_count,
        size_bytes: raw.size_bytes,
        limit_bytes: raw.limit_bytes,
        path: field_path(&raw.path),
        problem: (!problem.is_empty()).then_some(problem),
    })
}

/// A path need not be text in UTF-8.
fn field_path(field: &[c_char]) -> PathBuf {
    let bytes: Vec<u8> = field
        .iter()
        .take_while(|&&character| character != 0)
        .map(|&character| character as u8)
        .collect();
    Path::new(OsStr::from_bytes(&bytes)).to_owned()
}

/// What the library calls for each entry has to bring along.
struct Visitor<F> {
    function: F,
    damaged: u64,
    /// A panic of the function, which must not cross the C library.
    panic: Option<Box<dyn Any + Send>>,
}

extern "C" fn visit<F: FnMut(&CacheEntry)>(
    name: *const c_char,
    size_bytes: u64,
    valid: i32,
    user_data: *mut c_void,
) {
    // SAFETY: it is the visitor of `check`, which nobody else uses while the library calls this.
    let visitor = unsafe { &mut *user_data.cast::<Visitor<F>>() };
    if valid == 0 {
        visitor.damaged += 1;
    }
    if visitor.panic.is_some() {
        return;
    }
    let entry = CacheEntry {
        // SAFETY: the library gives a text that lasts until this returns.
        name: unsafe { std::ffi::CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
        size_bytes,
        is_valid: valid != 0,
    };
    visitor.panic = catch_unwind(AssertUnwindSafe(|| (visitor.function)(&entry))).err();
}

/// Reads every entry and calls `each` for it, the least recently used first. Removes those that are
/// damaged where `remove_damaged` asks for it. Gives how many were damaged.
///
/// # Errors
///
/// [`Status::Unsupported`](crate::Status::Unsupported) where there is no folder that can be used.
pub fn check<F: FnMut(&CacheEntry)>(remove_damaged: bool, each: F) -> Result<u64> {
    let mut visitor = Visitor {
        function: each,
        damaged: 0,
        panic: None,
    };
    // SAFETY: the function fits the visitor, which lives until the call returns.
    check_status(unsafe {
        sys::rdm_cache_check(
            remove_damaged.into(),
            Some(visit::<F>),
            std::ptr::from_mut(&mut visitor).cast(),
        )
    })?;
    if let Some(payload) = visitor.panic {
        resume_unwind(payload);
    }
    Ok(visitor.damaged)
}

/// Removes the least recently used entries until the rest is at most `limit_bytes`, 0: all.
///
/// # Errors
///
/// As [`check()`].
pub fn prune(limit_bytes: u64) -> Result<Pruned> {
    let mut pruned = Pruned {
        entry_count: 0,
        size_bytes: 0,
    };
    // SAFETY: both are places to write to.
    check_status(unsafe {
        sys::rdm_cache_prune(limit_bytes, &mut pruned.entry_count, &mut pruned.size_bytes)
    })?;
    Ok(pruned)
}
