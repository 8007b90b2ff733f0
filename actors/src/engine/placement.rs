//! Which shard hosts which unit. Placement never changes a result.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// How units are spread over shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Every shard gets about the same sum of weights.
    #[default]
    Balanced,
    /// Anywhere, drawn with this seed: for tests that show that placement does not matter.
    Shuffled(u64),
}

/// Where a unit lives: its shard and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub shard: u32,
    pub slot: u32,
}

impl Placement {
    /// A seat for each unit. Slots of a shard are in the order of units.
    pub(super) fn seats(self, weights: &[u32], shards: usize) -> Vec<Seat> {
        let mut shard_of = vec![0; weights.len()];
        match self {
            Placement::Balanced => {
                let mut heaviest_first: Vec<usize> = (0..weights.len()).collect();
                heaviest_first.sort_by_key(|&unit| std::cmp::Reverse(weights[unit]));
                let mut load = vec![0_u64; shards];
                for unit in heaviest_first {
                    let lightest = (0..shards).min_by_key(|&shard| load[shard]).unwrap_or(0);
                    load[lightest] += u64::from(weights[unit].max(1));
                    shard_of[unit] = lightest;
                }
            }
            Placement::Shuffled(seed) => {
                let mut random = Pcg64Mcg::new(u128::from(seed));
                for shard in &mut shard_of {
                    *shard = (random.next_u64() % shards as u64) as usize;
                }
            }
        }
        let mut taken = vec![0; shards];
        let seat = |shard: usize| {
            taken[shard] += 1;
            Seat { shard: shard as u32, slot: taken[shard] - 1 }
        };
        shard_of.into_iter().map(seat).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_placement_spreads_weight() {
        let weights: Vec<u32> = (0..84).map(|_| 10).chain((0..40).map(|_| 1)).collect();
        let seats = Placement::Balanced.seats(&weights, 2);
        let load = |shard| -> u32 {
            seats.iter().zip(&weights).filter(|(seat, _)| seat.shard == shard).map(|(_, weight)| weight).sum()
        };
        assert_eq!((load(0), load(1)), (440, 440));
    }

    #[test]
    fn slots_are_dense_and_in_order() {
        for placement in [Placement::Balanced, Placement::Shuffled(5)] {
            let seats = placement.seats(&[1; 50], 3);
            for shard in 0..3 {
                let slots: Vec<u32> = seats.iter().filter(|seat| seat.shard == shard).map(|seat| seat.slot).collect();
                assert_eq!(slots, (0..slots.len() as u32).collect::<Vec<_>>());
            }
        }
    }
}
