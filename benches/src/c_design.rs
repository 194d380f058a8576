//! The designs in C: see `bench.h`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::time::Duration;

use crate::measure::{Design, Place, Worker};

pub(crate) const ERROR_BYTES: usize = 512;
/// Two lines of the cache, so that no two threads' states share a pair that is fetched together.
const ALIGNMENT: usize = 128;

/// What each state begins with: `rdm__bench_state`.
#[repr(C)]
pub(crate) struct State {
    pub(crate) thread: i32,
    pub(crate) device_index: i32,
    own_ns: u64,
    error: [c_char; ERROR_BYTES],
}

impl State {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            thread: place.thread as i32,
            device_index: place.device_index,
            own_ns: 0,
            error: [0; ERROR_BYTES],
        }
    }

    pub(crate) fn result(&self) -> Result<(), String> {
        if self.error[0] == 0 {
            return Ok(());
        }
        // SAFETY: the C side ends every text that it writes there.
        let text = unsafe { CStr::from_ptr(self.error.as_ptr()) };
        Err(text.to_string_lossy().into_owned())
    }
}

/// `rdm__bench_design`.
#[repr(C)]
struct RawDesign {
    name: *const c_char,
    state_bytes: usize,
    begin: Option<unsafe extern "C" fn(*mut c_void)>,
    run: unsafe extern "C" fn(*mut c_void, u64),
    end: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: constants of the C side, which never change.
unsafe impl Sync for RawDesign {}

unsafe extern "C" {
    fn rdm__bench_design_at(number: usize) -> *const RawDesign;
}

/// One of them.
pub(crate) struct CDesign {
    raw: &'static RawDesign,
    name: String,
}

/// The design of this name.
pub(crate) fn c_design(name: &str) -> &'static CDesign {
    static ALL: OnceLock<Vec<CDesign>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        (0..)
            // SAFETY: it takes any number, and what it gives is a constant.
            .map_while(|number| unsafe { rdm__bench_design_at(number).as_ref() })
            .map(|raw| CDesign {
                raw,
                // SAFETY: a literal of the C side.
                name: unsafe { CStr::from_ptr(raw.name) }
                    .to_string_lossy()
                    .into_owned(),
            })
            .collect()
    });
    all.iter()
        .find(|design| design.name == name)
        .unwrap_or_else(|| panic!("there is no design {name}"))
}

impl Design for CDesign {
    fn name(&self) -> &str {
        &self.name
    }

    fn worker(&self, place: Place) -> Box<dyn Worker + '_> {
        Box::new(CWorker::new(self.raw, place))
    }
}

struct CWorker {
    raw: &'static RawDesign,
    layout: Layout,
    state: *mut State,
}

impl CWorker {
    fn new(raw: &'static RawDesign, place: Place) -> Self {
        let size = raw.state_bytes.max(size_of::<State>());
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("a state is small");
        // SAFETY: the size is not 0.
        let state = unsafe { alloc_zeroed(layout) }.cast::<State>();
        if state.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory is large enough for what each state begins with, and aligned for it.
        unsafe { state.write(State::new(place)) };
        if let Some(begin) = raw.begin {
            // SAFETY: the state is of the design's size, zeroed but for its beginning.
            unsafe { begin(state.cast()) };
        }
        Self { raw, layout, state }
    }

    fn result(&self) -> Result<(), String> {
        // SAFETY: the state lives as long as this, and nothing else uses it now.
        unsafe { &*self.state }.result()
    }
}

impl Worker for CWorker {
    fn run(&mut self, iterations: u64) -> Option<Duration> {
        if self.result().is_err() {
            return None;
        }
        // SAFETY: the state was begun, and nothing went wrong with it.
        let own_ns = unsafe {
            (self.raw.run)(self.state.cast(), iterations);
            (*self.state).own_ns
        };
        (own_ns > 0).then(|| Duration::from_nanos(own_ns))
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        if let Some(end) = self.raw.end {
            // SAFETY: the state was begun, and this is its last use.
            unsafe { end(self.state.cast()) };
        }
        self.result()
    }
}

impl Drop for CWorker {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and no call is in it.
        unsafe { dealloc(self.state.cast(), self.layout) };
    }
}
