//! A warp's products of matrices that its group's tensor cores are at work on (`wgmma`). When each will be done is known as soon as it has
//! issued; memory is taken only when more groups are under way than ever before.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The products of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Products {
    /// The cycle from which on each group is done, in the order in which groups end.
    groups: VecDeque<u64>,
    /// The same of all products so far.
    latest: u64,
}

impl Products {
    /// A product has issued, which will be done in a cycle.
    pub fn begin(&mut self, done: u64) {
        self.latest = self.latest.max(done);
    }

    /// In `cycle`, the products since the last group are one.
    pub fn end_group(&mut self, cycle: u64) {
        while self.groups.front().is_some_and(|done| *done <= cycle) {
            self.groups.pop_front();
        }
        self.groups.push_back(self.latest);
    }

    /// The cycle from which on at most that many of the groups are under way.
    pub fn done(&self, groups: u32) -> u64 {
        let done = self.groups.len().checked_sub(groups as usize);
        done.and_then(|count| self.groups.get(count.checked_sub(1)?)).copied().unwrap_or(0)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.latest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_for_the_groups_before_the_latest() {
        let mut products = Products::default();
        assert_eq!(products.done(0), 0, "nothing is under way");
        for (issue, done) in [(10, 100), (20, 160)] {
            products.begin(done);
            products.end_group(issue);
        }
        // A group without a product is done with the one before it.
        products.end_group(30);
        products.begin(220);
        assert_eq!([0, 1, 2, 3, 4, u32::MAX].map(|groups| products.done(groups)), [160, 160, 100, 0, 0, 0]);
        products.end_group(130);
        assert_eq!([0, 1, 2, 3].map(|groups| products.done(groups)), [220, 160, 160, 0]);
        products.clear();
        products.end_group(5);
        assert_eq!(products.done(0), 0);
    }
}
