//! What programs say about the residency of lines in the L2, as launches tell it to the SMs.

use balar_protocol::GpuDescription;
use balar_protocol::limits::most_persisting_l2;
use balar_protocol::residency::{AccessPolicyWindow, L2Policy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What programs have said about the L2 of each GPU, by its number; nothing of GPUs that are not here.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct L2Residency {
    said: BTreeMap<usize, Said>,
}

/// What programs have said about the L2 of a GPU.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Said {
    is_after_odd_resets: bool,
    /// Whether a kernel has been launched since the last reset: none has told of that reset before.
    has_told: bool,
}

impl L2Residency {
    /// All persisting lines of the GPU become normal (`cudaCtxResetPersistingL2Cache`): for launches from now on.
    pub fn reset(&mut self, gpu: usize) {
        let said = self.said.entry(gpu).or_default();
        if std::mem::take(&mut said.has_told) {
            said.is_after_odd_resets = !said.is_after_odd_resets;
        }
    }

    /// The policy of a launch with this window on a GPU of which so many parts are set aside.
    pub fn of_launch(&mut self, gpu: usize, window: Option<AccessPolicyWindow>, set_aside: u8) -> Option<L2Policy> {
        let window = window.filter(|window| window.bytes > 0);
        let said = if window.is_some() || set_aside > 0 {
            self.said.entry(gpu).or_default()
        } else {
            self.said.get_mut(&gpu)?
        };
        said.has_told = true;
        Some(L2Policy { window, set_aside, is_after_odd_resets: said.is_after_odd_resets })
    }
}

/// The parts of the GPU's L2 that are set aside where a program asks for so many bytes: as many as are needed, up to the most that can be.
pub(crate) fn set_aside_parts(bytes: u64, gpu: &GpuDescription) -> u8 {
    let part = (gpu.l2_bytes / u64::from(L2Policy::PARTS)).max(1);
    bytes.min(most_persisting_l2(gpu.compute_capability, gpu.l2_bytes)).div_ceil(part) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::residency::AccessProperty;

    const WINDOW: AccessPolicyWindow = AccessPolicyWindow {
        base: 0,
        bytes: 1 << 20,
        hits: AccessPolicyWindow::ALL,
        hit: AccessProperty::Persisting,
        miss: AccessProperty::Normal,
    };

    /// Launches say nothing until a program of the GPU has said something.
    #[test]
    fn silence_ends_with_the_first_word() {
        let mut said = L2Residency::default();
        assert_eq!(said.of_launch(0, None, 0), None);
        assert_eq!(said.of_launch(0, Some(AccessPolicyWindow { bytes: 0, ..WINDOW }), 0), None);
        let policy = L2Policy { window: Some(WINDOW), ..L2Policy::default() };
        assert_eq!(said.of_launch(0, Some(WINDOW), 0), Some(policy));
        assert_eq!((said.of_launch(0, None, 0), said.of_launch(1, None, 0)), (Some(L2Policy::default()), None));
        assert_eq!(said.of_launch(1, None, 3), Some(L2Policy { set_aside: 3, ..L2Policy::default() }));
    }

    /// The bit changes once between two launches, however many resets there are.
    #[test]
    fn launches_tell_of_resets() {
        let mut said = L2Residency::default();
        let mut is_odd = |resets: u32| {
            (0..resets).for_each(|_| said.reset(0));
            said.of_launch(0, Some(WINDOW), 4).map(|policy| policy.is_after_odd_resets)
        };
        // Before the first launch nothing persists.
        let odd = [2, 0, 1, 0, 2, 1].map(|resets| is_odd(resets).expect("the window says something"));
        assert_eq!(odd, [false, false, true, true, false, true]);
    }
}
