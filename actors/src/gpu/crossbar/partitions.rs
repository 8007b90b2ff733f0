//! Which slice an SM asks for a line, where the L2 has partitions: one of its own partition.

/// The partitions of an L2. Copy engines belong to none: they ask the slice that a line belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partitions {
    slices_of_each: u32,
    /// By SM: the first slice of its partition, where there are several.
    first: Vec<u32>,
}

impl Partitions {
    /// So many partitions, of neighbouring SMs and neighbouring slices each.
    ///
    /// # Errors
    ///
    /// Slices that cannot be dealt out evenly.
    pub fn new(count: u32, sms: usize, slices: usize) -> Result<Partitions, String> {
        if !slices.is_multiple_of(count as usize) {
            return Err(format!("expected a divisor of the {slices} slices, found {count}"));
        }
        let slices_of_each = slices as u32 / count;
        let partition = |sm: usize| (sm * count as usize / sms) as u32;
        let sms = if count > 1 { 0..sms } else { 0..0 };
        Ok(Partitions { slices_of_each, first: sms.map(|sm| partition(sm) * slices_of_each).collect() })
    }

    /// Slices of a partition.
    pub fn slices_of_each(&self) -> u32 {
        self.slices_of_each
    }

    /// The slice that a requester asks for a line that belongs to slice `owner`.
    #[inline]
    pub fn slice_for(&self, requester: u16, owner: u32) -> u32 {
        match self.first.get(usize::from(requester)) {
            Some(first) => first + owner % self.slices_of_each,
            None => owner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sm_asks_its_own_partition_and_a_copy_engine_the_owner() {
        let partitions = Partitions::new(2, 5, 8).expect("partitions");
        let asked = |owner| (0..6).map(|requester| partitions.slice_for(requester, owner)).collect::<Vec<_>>();
        assert_eq!(asked(6), [2, 2, 2, 6, 6, 6]);
        assert_eq!(asked(1), [1, 1, 1, 5, 5, 1]);
        let one = Partitions::new(1, 5, 8).expect("one partition");
        assert!((0..6).all(|requester| one.slice_for(requester, 7) == 7));
        assert!(Partitions::new(2, 5, 7).is_err());
    }
}
