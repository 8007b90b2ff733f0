//! The common part of calls that do several things at once.

use crate::abi::arguments::In;
use crate::abi::stream::StreamHandle;
use crate::session::order::stream;
use balar_host::CudaError;

/// Refuses the legacy default stream, in which there are no batches, and a handle that is no stream.
pub fn check_stream(stream: StreamHandle) -> Result<(), CudaError> {
    if stream::number(stream)? == 0 { Err(CudaError::InvalidValue) } else { Ok(()) }
}

/// The operations, of `count`, from which on each of `kinds` attributes or locations holds: from the first operation on, and ascending.
pub fn firsts(firsts: In<usize>, kinds: usize, count: usize) -> Result<Vec<usize>, CudaError> {
    // An array that is too long is not looked at.
    let firsts = if kinds <= count { firsts.array(kinds)? } else { Vec::new() };
    if are_firsts(&firsts, count) { Ok(firsts) } else { Err(CudaError::InvalidValue) }
}

fn are_firsts(firsts: &[usize], count: usize) -> bool {
    firsts.first() == Some(&0) && firsts.is_sorted_by(|a, b| a < b) && firsts.iter().all(|first| *first < count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_begins_at_an_operation_of_its_own() {
        assert!(are_firsts(&[0], 1) && are_firsts(&[0, 1, 3], 4));
        for (firsts, count) in [(&[][..], 4), (&[1], 4), (&[0, 4], 4), (&[0, 2, 2], 4), (&[0, 3, 1], 4), (&[0], 0)] {
            assert!(!are_firsts(firsts, count), "{firsts:?} of {count}");
        }
    }
}
