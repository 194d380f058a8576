//! The graph: what an array is made of until it is evaluated.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::storage::Buffer;
use crate::stream::Stream;

/// A one-dimensional array of `f32`, computed when it is first asked for.
///
/// Clones are the same array. It may be used from any thread.
#[derive(Clone)]
pub struct Array {
    pub(super) node: Arc<Node>,
}

pub(super) struct Node {
    pub(super) len: usize,
    /// Where it is evaluated; none: on the default stream of the thread that does it.
    pub(super) stream: Option<Stream>,
    /// What it is made of; taken once it is evaluated. Held while it is, so that it is once.
    operation: Mutex<Option<Operation>>,
    pub(super) value: OnceLock<Buffer>,
}

pub(super) enum Operation {
    Arange {
        start: f32,
        step: f32,
    },
    Full {
        value: f32,
    },
    MultiplyScalar {
        input: Arc<Node>,
        factor: f32,
    },
    AddScalar {
        input: Arc<Node>,
        addend: f32,
    },
    Add {
        left: Arc<Node>,
        right: Arc<Node>,
    },
    /// What was asked for makes no sense; said when it is evaluated.
    Invalid {
        message: String,
    },
}

impl Operation {
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Arc<Node>> {
        let (first, second) = match self {
            Self::Arange { .. } | Self::Full { .. } | Self::Invalid { .. } => (None, None),
            Self::MultiplyScalar { input, .. } | Self::AddScalar { input, .. } => {
                (Some(input), None)
            }
            Self::Add { left, right } => (Some(left), Some(right)),
        };
        first.into_iter().chain(second)
    }

    fn into_inputs(self) -> impl Iterator<Item = Arc<Node>> {
        let (first, second) = match self {
            Self::Arange { .. } | Self::Full { .. } | Self::Invalid { .. } => (None, None),
            Self::MultiplyScalar { input, .. } | Self::AddScalar { input, .. } => {
                (Some(input), None)
            }
            Self::Add { left, right } => (Some(left), Some(right)),
        };
        first.into_iter().chain(second)
    }
}

impl Node {
    pub(super) fn operation(&self) -> MutexGuard<'_, Option<Operation>> {
        self.operation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Node {
    /// Takes a long chain apart without recursion.
    fn drop(&mut self) {
        let own = self
            .operation
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut left: Vec<Arc<Node>> = own.into_iter().flat_map(Operation::into_inputs).collect();
        while let Some(node) = left.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                let operation = node
                    .operation
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                left.extend(operation.into_iter().flat_map(Operation::into_inputs));
            }
        }
    }
}

impl Array {
    fn new(len: usize, stream: Option<Stream>, operation: Operation) -> Self {
        Self {
            node: Arc::new(Node {
                len,
                stream,
                operation: Mutex::new(Some(operation)),
                value: OnceLock::new(),
            }),
        }
    }

    fn invalid(message: String) -> Self {
        Self::new(0, None, Operation::Invalid { message })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.node.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has been evaluated. Its computation may still be running.
    pub fn is_evaluated(&self) -> bool {
        self.node.value.get().is_some()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Array")
            .field("len", &self.len())
            .field("is_evaluated", &self.is_evaluated())
            .finish_non_exhaustive()
    }
}

/// `start`, `start + step`, and so on, up to but not including `stop`.
///
/// A range that has no end, or bounds that are not finite, give an array whose evaluation fails with
/// [`Status::InvalidArgument`](crate::Status::InvalidArgument).
pub fn arange_f32(start: f32, stop: f32, step: f32) -> Array {
    let len = ((f64::from(stop) - f64::from(start)) / f64::from(step)).ceil();
    if !start.is_finite() || !stop.is_finite() || !step.is_finite() || step == 0.0 {
        return Array::invalid(format!(
            "arange_f32({start}, {stop}, {step}): start and stop are finite, and step is finite and not 0"
        ));
    }
    // A negative length becomes 0, and one beyond any memory the greatest.
    Array::new(len as usize, None, Operation::Arange { start, step })
}

/// `len` ones.
pub fn ones(len: usize) -> Array {
    Array::new(len, None, Operation::Full { value: 1.0 })
}

/// `len` ones, evaluated on this stream whatever the thread's default is.
pub fn ones_stream(len: usize, stream: &Stream) -> Array {
    Array::new(len, Some(stream.clone()), Operation::Full { value: 1.0 })
}

/// As many elements as `array` has, each of them `value`. Does not evaluate `array`.
pub fn full_like(array: &Array, value: f32) -> Array {
    Array::new(array.len(), None, Operation::Full { value })
}

/// Each element times `factor`.
pub fn multiply_scalar(array: &Array, factor: f32) -> Array {
    let input = Arc::clone(&array.node);
    Array::new(
        array.len(),
        None,
        Operation::MultiplyScalar { input, factor },
    )
}

/// Each element plus `addend`.
pub fn add_scalar(array: &Array, addend: f32) -> Array {
    let input = Arc::clone(&array.node);
    Array::new(array.len(), None, Operation::AddScalar { input, addend })
}

/// The sums of two arrays' elements.
///
/// Arrays of different lengths give an array whose evaluation fails with
/// [`Status::InvalidArgument`](crate::Status::InvalidArgument).
pub fn add(left: &Array, right: &Array) -> Array {
    if left.len() != right.len() {
        return Array::invalid(format!(
            "add: the arrays have {} and {} elements; they need to have as many",
            left.len(),
            right.len()
        ));
    }
    let operation = Operation::Add {
        left: Arc::clone(&left.node),
        right: Arc::clone(&right.node),
    };
    Array::new(left.len(), None, operation)
}
