//! The check that many workloads need: the copied results are, bit by bit, the results of the host's computation.

use crate::numeric::{Bits, compare_exactly};
use crate::script::{Check, Outcome, Transfer};

/// Values of a type that workloads compute with.
pub(crate) enum Values {
    U8(Vec<u8>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
}

impl From<Vec<u8>> for Values {
    fn from(values: Vec<u8>) -> Self {
        Values::U8(values)
    }
}

impl From<Vec<u32>> for Values {
    fn from(values: Vec<u32>) -> Self {
        Values::U32(values)
    }
}

impl From<Vec<i32>> for Values {
    fn from(values: Vec<i32>) -> Self {
        Values::I32(values)
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Values::F32(values)
    }
}

/// The expected contents of each copy from the device.
#[derive(Default)]
pub(crate) struct Comparisons {
    expected: Vec<(Transfer, String, Values)>,
}

impl Comparisons {
    /// `what` names a value in an error; the error puts the value's index behind the name where there are several.
    pub fn add(&mut self, transfer: Transfer, what: &str, expected: impl Into<Values>) {
        self.expected.push((transfer, what.to_owned(), expected.into()));
    }
}

/// Compares the contents of one copy.
fn compare<T: Bits + bytemuck::AnyBitPattern>(
    outcome: &Outcome,
    transfer: Transfer,
    what: &str,
    expected: &[T],
) -> Result<(), String> {
    let actual = outcome.values::<T>(transfer, expected.len())?;
    compare_exactly(expected.iter().copied(), &actual, |index| match expected.len() {
        1 => what.to_owned(),
        _ => format!("{what} {index}"),
    })
}

impl Check for Comparisons {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        self.expected.iter().try_for_each(|(transfer, what, expected)| match expected {
            Values::U8(values) => compare(outcome, *transfer, what, values),
            Values::U32(values) => compare(outcome, *transfer, what, values),
            Values::I32(values) => compare(outcome, *transfer, what, values),
            Values::F32(values) => compare(outcome, *transfer, what, values),
        })
    }
}
