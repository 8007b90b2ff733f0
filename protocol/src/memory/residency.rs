//! Residency in the L2: the lines that a program says it will use again, and those that it will not (CUDA C++ Programming Guide, "L2
//! Cache Control").

use super::LINE_BYTES;
use serde::{Deserialize, Serialize};

/// How long a line is to stay in the L2 (`cudaAccessProperty`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessProperty {
    /// As any other: a line that was persisting is so no longer.
    #[default]
    Normal,
    /// Not long: it goes before others.
    Streaming,
    /// Long: it has a part of the L2 to itself.
    Persisting,
}

/// Memory whose accesses have a property (`cudaAccessPolicyWindow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPolicyWindow {
    /// Its first byte.
    pub base: u64,
    /// Its bytes; 0: there is no window.
    pub bytes: u64,
    /// The share of its lines that have the property `hit`, of [`AccessPolicyWindow::ALL`].
    pub hits: u32,
    /// The property of these lines.
    pub hit: AccessProperty,
    /// The property of the others.
    pub miss: AccessProperty,
}

impl AccessPolicyWindow {
    /// The value of `hits` where all lines have the property `hit`.
    pub const ALL: u32 = 1 << 16;

    /// The property of accesses to a line, where the window has the line. Which lines are those of `hit` is drawn by their addresses, so
    /// that they are the same ones in each launch; NVIDIA does not say how it draws them.
    pub fn property(&self, line: u64) -> Option<AccessProperty> {
        let first = self.base / LINE_BYTES;
        let end = self.base.saturating_add(self.bytes).div_ceil(LINE_BYTES);
        let number = line / LINE_BYTES;
        if self.bytes == 0 || !(first..end).contains(&number) {
            return None;
        }
        // Fibonacci hashing: the fractions of multiples of the golden ratio are spread evenly, for any run of lines.
        let drawn = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        Some(if drawn < u64::from(self.hits) { self.hit } else { self.miss })
    }
}

/// What the L2 is told about the accesses of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L2Policy {
    /// The launch's window.
    pub window: Option<AccessPolicyWindow>,
    /// The part of the L2 that is set aside for persisting lines, of [`L2Policy::PARTS`].
    pub set_aside: u8,
    /// Whether the program has made all lines normal an odd number of times before.
    pub is_after_odd_resets: bool,
}

impl L2Policy {
    /// The parts of the L2 that can be set aside one by one.
    pub const PARTS: u8 = 16;

    /// What requests for a line carry.
    #[inline]
    pub fn residency(&self, line: u64) -> Residency {
        let property = match self.window.and_then(|window| window.property(line)) {
            None => 0,
            Some(AccessProperty::Normal) => 1,
            Some(AccessProperty::Streaming) => 2,
            Some(AccessProperty::Persisting) => 3,
        };
        Residency(property | u8::from(self.is_after_odd_resets) << 2 | (self.set_aside + 1) << 3)
    }
}

/// What a request says about the residency of its line: the property of the access, and the policy of its launch, in a byte. By default it
/// says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency(u8);

impl Residency {
    /// Says nothing: its launch is of a program that says nothing about the L2.
    #[inline]
    pub const fn is_silent(self) -> bool {
        self.0 == 0
    }

    /// The property of the access; `None` where the line keeps the one that it has.
    #[inline]
    pub const fn property(self) -> Option<AccessProperty> {
        match self.0 & 3 {
            0 => None,
            1 => Some(AccessProperty::Normal),
            2 => Some(AccessProperty::Streaming),
            _ => Some(AccessProperty::Persisting),
        }
    }

    /// The part of the L2 that is set aside for persisting lines, of [`L2Policy::PARTS`].
    #[inline]
    pub const fn set_aside(self) -> u8 {
        (self.0 >> 3).saturating_sub(1)
    }

    /// Whether all lines were made normal an odd number of times before the launch.
    #[inline]
    pub const fn is_after_odd_resets(self) -> bool {
        self.0 & 4 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessProperty::{Normal, Persisting, Streaming};

    const WINDOW: AccessPolicyWindow = AccessPolicyWindow {
        base: 0x1040,
        bytes: 0x100,
        hits: AccessPolicyWindow::ALL,
        hit: Persisting,
        miss: Streaming,
    };

    /// A window begins and ends anywhere: lines that it has bytes of are in it.
    #[test]
    fn a_window_has_the_lines_of_its_bytes() {
        let properties = |window: AccessPolicyWindow| [0xf80, 0x1000, 0x1100, 0x1180].map(|line| window.property(line));
        assert_eq!(properties(WINDOW), [None, Some(Persisting), Some(Persisting), None]);
        assert_eq!(properties(AccessPolicyWindow { hits: 0, ..WINDOW })[1], Some(Streaming));
        assert_eq!(properties(AccessPolicyWindow { bytes: 0, ..WINDOW }), [None; 4]);
        assert_eq!(AccessPolicyWindow { bytes: u64::MAX, ..WINDOW }.property(u64::MAX - 127), Some(Persisting));
    }

    /// Of any run of lines, and of lines at any stride, the ratio's share has the first property.
    #[test]
    fn the_ratio_is_that_of_the_lines() {
        let window = AccessPolicyWindow { bytes: 1 << 40, hits: AccessPolicyWindow::ALL * 6 / 10, ..WINDOW };
        for stride in [1, 3, 32, 80, 4096] {
            let lines = (0..1000).map(|line| 0x2000 + line * stride * LINE_BYTES);
            let hits = lines.filter(|&line| window.property(line) == Some(Persisting)).count();
            assert!((560..=640).contains(&hits), "{hits} of 1000 lines, every {stride}");
        }
    }

    #[test]
    fn a_byte_says_all() {
        assert!(Residency::default().is_silent());
        for property in [Normal, Streaming, Persisting] {
            for set_aside in [0, 12, L2Policy::PARTS] {
                for is_after_odd_resets in [false, true] {
                    let window = Some(AccessPolicyWindow { hit: property, ..WINDOW });
                    let policy = L2Policy { window, set_aside, is_after_odd_resets };
                    let inside = policy.residency(0x1080);
                    assert_eq!((inside.property(), inside.set_aside()), (Some(property), set_aside));
                    let outside = policy.residency(0);
                    assert_eq!((outside.property(), outside.is_silent()), (None, false));
                    assert_eq!(outside.is_after_odd_resets(), is_after_odd_resets);
                }
            }
        }
    }
}
