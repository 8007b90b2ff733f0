//! Who accesses managed memory, and how.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A processor with a memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Processor {
    /// The host.
    Host,
    /// A GPU, 0 to 62.
    Gpu(u8),
}

impl Processor {
    fn index(self) -> u32 {
        match self {
            Processor::Host => 0,
            Processor::Gpu(gpu) => 1 + u32::from(gpu),
        }
    }
}

/// How memory is accessed, from the weakest to the strongest: where one page is accessed in several ways, the strongest counts (the driver).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Access {
    /// A prefetch: nobody waits for the value.
    Prefetch,
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic operation.
    Atomic,
}

impl Access {
    /// Does it change the value?
    pub fn writes(self) -> bool {
        self >= Access::Write
    }
}

/// A set of processors.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorSet(u64);

impl ProcessorSet {
    /// No processor.
    pub const EMPTY: ProcessorSet = ProcessorSet(0);

    /// One processor.
    ///
    /// # Panics
    ///
    /// Beyond GPU 62.
    pub fn only(processor: Processor) -> ProcessorSet {
        assert!(processor.index() < u64::BITS, "{processor:?} is beyond GPU 62");
        ProcessorSet(1 << processor.index())
    }

    /// Adds a processor.
    ///
    /// # Panics
    ///
    /// Beyond GPU 62.
    pub fn insert(&mut self, processor: Processor) {
        self.0 |= ProcessorSet::only(processor).0;
    }

    /// Takes a processor out.
    pub fn remove(&mut self, processor: Processor) {
        if self.contains(processor) {
            self.0 ^= ProcessorSet::only(processor).0;
        }
    }

    /// Is it in the set?
    pub fn contains(self, processor: Processor) -> bool {
        processor.index() < u64::BITS && self.0 >> processor.index() & 1 == 1
    }

    /// Is every processor of `other` in this set?
    pub fn contains_all(self, other: ProcessorSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// The processors in both sets.
    #[must_use]
    pub fn intersection(self, other: ProcessorSet) -> ProcessorSet {
        ProcessorSet(self.0 & other.0)
    }

    /// Is there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The processors: the host, then the GPUs by number.
    pub fn iter(self) -> impl Iterator<Item = Processor> {
        (0..u64::BITS as u8).filter(move |&index| self.0 >> index & 1 == 1).map(|index| match index {
            0 => Processor::Host,
            _ => Processor::Gpu(index - 1),
        })
    }
}

impl FromIterator<Processor> for ProcessorSet {
    /// # Panics
    ///
    /// Beyond GPU 62.
    fn from_iter<T: IntoIterator<Item = Processor>>(processors: T) -> ProcessorSet {
        let mut set = ProcessorSet::EMPTY;
        for processor in processors {
            set.insert(processor);
        }
        set
    }
}

impl fmt::Debug for ProcessorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_form_sets() {
        let gpu = Processor::Gpu;
        let mut set: ProcessorSet = [gpu(62), Processor::Host, gpu(3)].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [Processor::Host, gpu(3), gpu(62)]);
        set.remove(Processor::Host);
        set.remove(gpu(200));
        assert_eq!(
            (set.len(), set.contains(Processor::Host), set.contains(gpu(3)), set.contains(gpu(63))),
            (2, false, true, false)
        );
        assert!(set.contains_all(ProcessorSet::only(gpu(3))) && !ProcessorSet::only(gpu(3)).contains_all(set));
        assert_eq!(set.intersection(ProcessorSet::only(gpu(62))), ProcessorSet::only(gpu(62)));
    }

    #[test]
    fn the_strongest_access_is_the_greatest() {
        let order = [Access::Prefetch, Access::Read, Access::Write, Access::Atomic];
        assert!(order.is_sorted());
        assert_eq!(order.map(Access::writes), [false, false, true, true]);
    }
}
