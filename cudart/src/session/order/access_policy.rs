//! Windows of memory whose accesses have a property in the L2 (`cudaAccessPolicyWindow`), as attributes of streams, launches and nodes.

use crate::abi::stream::AttributeValue;
use crate::session::connection::description;
use balar_host::{AccessPolicyWindow, AccessProperty, CudaError, most_access_policy_window};

/// `cudaAccessProperty`.
const PROPERTIES: [AccessProperty; 3] = [AccessProperty::Normal, AccessProperty::Streaming, AccessProperty::Persisting];

/// The window of a value. There is none where the GPU's L2 has no policies: such an attribute is without effect.
pub fn window_of(value: &AttributeValue, device: u32) -> Result<Option<AccessPolicyWindow>, CudaError> {
    let largest = most_access_policy_window(description::device(device)?.compute_capability);
    let window = parse(value)?;
    match window {
        Some(window) if largest > 0 && window.bytes > largest => Err(CudaError::InvalidValue),
        Some(_) if largest == 0 => Ok(None),
        window => Ok(window),
    }
}

/// Base, bytes, the ratio of hits, the properties of hits and of misses: `cudaAccessPolicyWindow` as C lays it out.
fn parse(&[base, bytes, ratio_and_hit, miss, ..]: &AttributeValue) -> Result<Option<AccessPolicyWindow>, CudaError> {
    let property = |number: u32| PROPERTIES.get(number as usize).copied().ok_or(CudaError::InvalidValue);
    let ratio = f32::from_bits(ratio_and_hit as u32);
    let (hit, miss) = (property((ratio_and_hit >> 32) as u32)?, property(miss as u32)?);
    if !(0.0..=1.0).contains(&ratio) || miss == AccessProperty::Persisting {
        return Err(CudaError::InvalidValue);
    }
    let hits = (ratio * AccessPolicyWindow::ALL as f32) as u32;
    Ok((bytes > 0).then_some(AccessPolicyWindow { base, bytes, hits, hit, miss }))
}

/// A window as programs ask for it.
pub fn value_of(window: Option<AccessPolicyWindow>) -> AttributeValue {
    let Some(AccessPolicyWindow { base, bytes, hits, hit, miss }) = window else { return AttributeValue::default() };
    let ratio = (hits as f32 / AccessPolicyWindow::ALL as f32).to_bits();
    [base, bytes, u64::from(ratio) | (hit as u64) << 32, miss as u64, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(ratio: f32, hit: u64, miss: u64) -> AttributeValue {
        [0x7000, 4096, u64::from(ratio.to_bits()) | hit << 32, miss, 0, 0, 0, 0]
    }

    #[test]
    fn windows_are_told_as_they_were_set() {
        let window = parse(&value(0.5, 2, 1)).expect("it is a window").expect("it has bytes");
        assert_eq!((window.base, window.bytes, window.hits), (0x7000, 4096, AccessPolicyWindow::ALL / 2));
        assert_eq!((window.hit, window.miss), (AccessProperty::Persisting, AccessProperty::Streaming));
        assert_eq!(value_of(Some(window)), value(0.5, 2, 1));
        assert_eq!((parse(&[0; 8]), value_of(None)), (Ok(None), [0; 8]));
    }

    /// What misses cannot persist; ratios are shares; there are three properties.
    #[test]
    fn windows_that_cuda_refuses_are_refused() {
        for wrong in [value(0.5, 2, 2), value(1.5, 2, 0), value(-0.5, 2, 0), value(f32::NAN, 2, 0), value(0.5, 3, 0)] {
            assert_eq!(parse(&wrong), Err(CudaError::InvalidValue), "{wrong:x?}");
        }
    }
}
