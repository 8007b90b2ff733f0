//! When memory is short.

use serde::{Deserialize, Serialize};

/// The page frames of a GPU's memory, as UVMSmart (bafab5d) counts them. All counts are pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// All frames for managed pages.
    pub total: u64,
    /// Frames that hold nothing.
    pub free: u64,
    /// Pages that wait to be transferred to the GPU.
    pub waiting_to_arrive: u64,
    /// Pages that wait to be written back, or are being written back.
    pub writing_back: u64,
    /// Percent of all frames that are kept free.
    pub free_buffer_percent: u32,
}

impl Frames {
    /// The frames that are taken, wanted by arriving pages and to be kept free, in hundredths of a frame.
    fn wanted_hundredths(&self) -> u128 {
        let buffer = u128::from(self.total) * u128::from(self.free_buffer_percent);
        buffer + 100 * (u128::from(self.total - self.free) + u128::from(self.waiting_to_arrive))
    }

    /// The frames that there will be when write-backs have ended, in hundredths of a frame.
    fn available_hundredths(&self) -> u128 {
        100 * (u128::from(self.writing_back) + u128::from(self.total))
    }

    /// Is an eviction due? It is asked once a GMMU cycle, and one decision of the policy follows a yes.
    pub fn eviction_is_due(&self) -> bool {
        self.available_hundredths() < self.wanted_hundredths()
    }

    /// Do `scheduled` more pages exceed the memory? The first yes makes a run oversubscribed, until the next device synchronisation.
    pub fn is_oversubscribed_by(&self, scheduled: u64) -> bool {
        100 * u128::from(self.total) < self.wanted_hundredths() + 100 * u128::from(scheduled)
    }

    /// `floor(1 + factor * occupancy)`, with the occupancy as the wanted share of the available frames: the threshold of the adaptive
    /// remote access of UVMSmart.
    pub fn one_and_occupancy_times(&self, factor: u64) -> u64 {
        let available = self.available_hundredths().max(1);
        (1 + u128::from(factor) * self.wanted_hundredths() / available) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: Frames =
        Frames { total: 100, free: 10, waiting_to_arrive: 0, writing_back: 0, free_buffer_percent: 0 };

    #[test]
    fn eviction_is_due_where_more_is_wanted_than_there_is() {
        // Hand computation of section 1.5: W + T < T*b/100 + (T-F) + R.
        let check = |frames: Frames, due: bool| assert_eq!(frames.eviction_is_due(), due, "{frames:?}");
        check(Frames { waiting_to_arrive: 10, ..FRAMES }, false);
        check(Frames { waiting_to_arrive: 11, ..FRAMES }, true);
        check(Frames { waiting_to_arrive: 11, writing_back: 1, ..FRAMES }, false);
        check(Frames { free_buffer_percent: 10, ..FRAMES }, false);
        check(Frames { free_buffer_percent: 11, ..FRAMES }, true);
        // Hundredths of frames count: 1 % of 50 frames is half a frame.
        check(Frames { total: 50, free: 0, free_buffer_percent: 1, ..FRAMES }, true);
    }

    #[test]
    fn oversubscription_counts_what_was_just_scheduled() {
        assert!(!Frames { waiting_to_arrive: 4, ..FRAMES }.is_oversubscribed_by(6));
        assert!(Frames { waiting_to_arrive: 4, ..FRAMES }.is_oversubscribed_by(7));
        // Unlike for eviction, pages that are written back do not count as free.
        assert!(Frames { waiting_to_arrive: 4, writing_back: 50, ..FRAMES }.is_oversubscribed_by(7));
    }

    #[test]
    fn occupancy_scales_a_threshold() {
        assert_eq!(FRAMES.one_and_occupancy_times(8), 8); // floor(1 + 8 * 0.9)
        assert_eq!(Frames { free: 100, ..FRAMES }.one_and_occupancy_times(8), 1);
        assert_eq!(Frames { free: 0, ..FRAMES }.one_and_occupancy_times(8), 9);
        assert_eq!(Frames { free: 0, writing_back: 100, ..FRAMES }.one_and_occupancy_times(8), 5);
    }
}
