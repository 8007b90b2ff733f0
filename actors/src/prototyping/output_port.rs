//! When messages leave: so many in a cycle.

use serde::{Deserialize, Serialize};

/// The departures of one port, in cycles of the unit's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPort {
    /// Messages that leave in a cycle; 0 = any number, and then they also may overtake each other.
    rate: u32,
    /// The cycle of the last departure, and how many leave in it.
    cycle: u64,
    used: u32,
}

impl OutputPort {
    /// A port through which `rate` messages leave in a cycle, in the order in which they ask.
    ///
    /// ```
    /// let mut port = balar_actors::prototyping::OutputPort::new(1);
    /// assert_eq!([port.departure(5), port.departure(5), port.departure(20)], [5, 6, 20]);
    /// // What asks later leaves later.
    /// assert_eq!(port.departure(7), 21);
    /// ```
    pub const fn new(rate: u32) -> OutputPort {
        OutputPort { rate, cycle: 0, used: 0 }
    }

    /// A port through which any number of messages leave in a cycle, each when it likes.
    pub const fn unlimited() -> OutputPort {
        OutputPort::new(0)
    }

    /// The first cycle from `earliest` on in which a message can leave.
    pub fn free_at(&self, earliest: u64) -> u64 {
        if self.rate == 0 || earliest > self.cycle {
            return earliest;
        }
        if self.used < self.rate { self.cycle } else { self.cycle + 1 }
    }

    /// The cycle in which a message leaves that could leave in cycle `earliest`.
    pub fn departure(&mut self, earliest: u64) -> u64 {
        let cycle = self.free_at(earliest);
        if cycle > self.cycle {
            (self.cycle, self.used) = (cycle, 0);
        }
        self.used = self.used.saturating_add(1);
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_leave_in_a_cycle() {
        let mut port = OutputPort::new(2);
        let cycles: Vec<u64> = [0, 0, 0, 4, 1, 1].map(|earliest| port.departure(earliest)).into();
        assert_eq!(cycles, [0, 0, 1, 4, 4, 5]);
        assert_eq!((port.free_at(3), port.free_at(9)), (5, 9));
    }

    #[test]
    fn without_a_limit_they_overtake_each_other() {
        let mut port = OutputPort::unlimited();
        assert_eq!([8, 3, 3, 9].map(|earliest| port.departure(earliest)), [8, 3, 3, 9]);
    }
}
