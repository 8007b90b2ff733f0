//! Things in the order of their last use, with places by number.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Keys with weights in the order in which they were last put at the end, the oldest first.
///
/// Every operation takes logarithmic time, also finding the key at a place: used keys leave holes behind, and a Fenwick tree over the
/// weights skips them. Holes are closed when there are as many as keys, so that it costs each operation nothing more on average.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RecencyOrder<K: Ord> {
    /// The key in each slot; slots are in the order of use.
    keys: Vec<Option<K>>,
    weights: Vec<u32>,
    /// Entry `i` is the sum of the weights of the `i & -i` slots that end before slot `i` (a Fenwick tree; entry 0 is unused).
    sums: Vec<u32>,
    slots: BTreeMap<K, u32>,
    /// Slots given out.
    used: u32,
    total: u32,
}

/// Fewest slots: a power of two, as all their numbers are.
const FEWEST_SLOTS: usize = 64;

impl<K: Copy + Ord> Default for RecencyOrder<K> {
    fn default() -> Self {
        let (keys, weights, slots) = (vec![None; FEWEST_SLOTS], vec![0; FEWEST_SLOTS], BTreeMap::new());
        RecencyOrder { keys, weights, sums: vec![0; FEWEST_SLOTS + 1], slots, used: 0, total: 0 }
    }
}

impl<K: Copy + Ord> RecencyOrder<K> {
    /// The sum of all weights.
    pub fn total(&self) -> usize {
        self.total as usize
    }

    /// Puts a key at the end, with this weight.
    pub fn touch(&mut self, key: K, weight: u32) {
        self.remove(key);
        if self.used as usize == self.keys.len() {
            self.close_holes();
        }
        let slot = self.used as usize;
        self.used += 1;
        self.slots.insert(key, slot as u32);
        self.keys[slot] = Some(key);
        self.add(slot, weight);
    }

    /// Gives a key another weight where it stands; nothing where it is absent.
    pub fn set_weight(&mut self, key: K, weight: u32) {
        if let Some(&slot) = self.slots.get(&key) {
            let slot = slot as usize;
            self.subtract(slot);
            self.add(slot, weight);
        }
    }

    /// Takes a key out, where it is.
    pub fn remove(&mut self, key: K) {
        if let Some(slot) = self.slots.remove(&key) {
            self.subtract(slot as usize);
            self.keys[slot as usize] = None;
        }
    }

    /// The key at a place: the one within whose weight the place falls when weights are laid end to end, and how far into it.
    pub fn at(&self, place: usize) -> Option<(K, usize)> {
        if place >= self.total() {
            return None;
        }
        let (mut slot, mut rest) = (0, place as u32);
        let mut step = self.keys.len();
        while step > 0 {
            let next = slot + step;
            if next <= self.keys.len() && self.sums[next] <= rest {
                slot = next;
                rest -= self.sums[next];
            }
            step /= 2;
        }
        Some((self.keys[slot]?, rest as usize))
    }

    /// The keys from a place on, each with its number of the place within it (0 but for the first) and its weight.
    pub fn from(&self, place: usize) -> impl Iterator<Item = (K, usize)> {
        let mut next = place;
        std::iter::from_fn(move || {
            let (key, within) = self.at(next)?;
            next += self.weights[self.slots[&key] as usize] as usize - within;
            Some((key, within))
        })
    }

    fn add(&mut self, slot: usize, weight: u32) {
        self.weights[slot] = weight;
        self.total += weight;
        self.update(slot, |sum| sum + weight);
    }

    fn subtract(&mut self, slot: usize) {
        let weight = std::mem::take(&mut self.weights[slot]);
        self.total -= weight;
        self.update(slot, |sum| sum - weight);
    }

    /// Applies a change to all sums that a slot is part of.
    fn update(&mut self, slot: usize, change: impl Fn(u32) -> u32) {
        let mut entry = slot + 1;
        while entry < self.sums.len() {
            self.sums[entry] = change(self.sums[entry]);
            entry += entry & entry.wrapping_neg();
        }
    }

    /// Moves all keys to the first slots, and makes room for as many again.
    fn close_holes(&mut self) {
        let old = std::mem::take(self);
        let capacity = (2 * old.slots.len()).next_power_of_two().max(FEWEST_SLOTS);
        self.keys = vec![None; capacity];
        self.weights = vec![0; capacity];
        self.sums = vec![0; capacity + 1];
        for (key, weight) in old.keys.into_iter().zip(old.weights).filter_map(|(key, weight)| Some((key?, weight))) {
            let slot = self.used as usize;
            self.used += 1;
            self.slots.insert(key, slot as u32);
            self.keys[slot] = Some(key);
            self.add(slot, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    #[test]
    fn an_order_is_a_list_with_moves_to_the_end() {
        let mut random = Pcg32::seed_from_u64(1);
        let (mut order, mut list) = (RecencyOrder::default(), Vec::<(u32, u32)>::new());
        for step in 0..20_000 {
            let (key, weight) = (random.next_u32() % 300, 1 + random.next_u32() % 4);
            match random.next_u32() % 8 {
                0 => {
                    order.remove(key);
                    list.retain(|entry| entry.0 != key);
                }
                1 => {
                    order.set_weight(key, weight);
                    list.iter_mut().filter(|entry| entry.0 == key).for_each(|entry| entry.1 = weight);
                }
                _ => {
                    order.touch(key, weight);
                    list.retain(|entry| entry.0 != key);
                    list.push((key, weight));
                }
            }
            let laid_out: Vec<_> =
                list.iter().flat_map(|&(key, weight)| (0..weight as usize).map(move |at| (key, at))).collect();
            assert_eq!(order.total(), laid_out.len());
            let place = random.next_u32() as usize % (laid_out.len() + 2);
            assert_eq!(order.at(place), laid_out.get(place).copied());
            if step % 100 == 0 {
                let rest = laid_out.get(place..).unwrap_or_default();
                let expected: Vec<_> =
                    rest.iter().enumerate().filter(|(index, at)| *index == 0 || at.1 == 0).map(|(_, at)| *at).collect();
                assert_eq!(order.from(place).collect::<Vec<_>>(), expected);
            }
        }
    }
}
