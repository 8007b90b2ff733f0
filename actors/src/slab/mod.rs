//! Values under small keys that are given out again: a unit's requests under way, without an allocation for each.

pub mod chains;

use balar_protocol::prefetch::prefetch;
use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// No key.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Entry<T> {
    /// The next free entry, or [`NONE`].
    Free(u32),
    Used(T),
}

/// A table of values whose free entries are a list. Memory is taken only when more values are held than ever before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    used: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: NONE, used: 0 }
    }
}

impl<T> Slab<T> {
    /// Values held.
    #[inline]
    pub fn len(&self) -> u32 {
        self.used
    }

    /// The key that the next value gets.
    #[inline]
    pub fn next_key(&self) -> u32 {
        if self.free == NONE { self.entries.len() as u32 } else { self.free }
    }

    /// Holds a value, and gives its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        self.used += 1;
        let key = self.next_key();
        match self.entries.get_mut(key as usize) {
            Some(entry) => {
                if let Entry::Free(next) = *entry {
                    self.free = next;
                }
                *entry = Entry::Used(value);
            }
            None => self.entries.push(Entry::Used(value)),
        }
        key
    }

    /// The value under a key; `None` where it is free.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&T> {
        match self.entries.get(key as usize)? {
            Entry::Used(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    /// Brings the value under a key closer, if there is such a key.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        if let Some(entry) = self.entries.get(key as usize) {
            prefetch(entry);
        }
    }

    /// Gives a value back; its key is free.
    ///
    /// # Panics
    ///
    /// Where nothing is held under the key.
    #[inline]
    pub fn remove(&mut self, key: u32) -> T {
        match std::mem::replace(&mut self.entries[key as usize], Entry::Free(self.free)) {
            Entry::Used(value) => {
                self.free = key;
                self.used -= 1;
                value
            }
            Entry::Free(_) => panic!("nothing is held under key {key}"),
        }
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, key: u32) -> &T {
        match &self.entries[key as usize] {
            Entry::Used(value) => value,
            Entry::Free(_) => panic!("nothing is held under key {key}"),
        }
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, key: u32) -> &mut T {
        match &mut self.entries[key as usize] {
            Entry::Used(value) => value,
            Entry::Free(_) => panic!("nothing is held under key {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_given_out_again() {
        let mut slab = Slab::default();
        let keys = ['a', 'b', 'c'].map(|value| slab.insert(value));
        assert_eq!((keys, slab.len(), slab.next_key()), ([0, 1, 2], 3, 3));
        assert_eq!((slab.remove(1), slab.remove(0), slab.len()), ('b', 'a', 1));
        assert_eq!(slab.get(1), None);
        // The last one freed comes first.
        let next = slab.next_key();
        assert_eq!((slab.insert('d'), slab.insert('e'), slab.insert('f')), (next, 1, 3));
        assert_eq!((slab[next], slab[1], slab[2]), ('d', 'e', 'c'));
    }

    #[test]
    #[should_panic(expected = "nothing is held under key 0")]
    fn a_value_is_given_back_once() {
        let mut slab = Slab::default();
        let key = slab.insert(());
        slab.remove(key);
        slab.remove(key);
    }
}
