//! Many short queues in one allocation: nodes that are given out again, and chains through them.
//!
//! A node that is taken out is used again for the next that comes in, so a unit that is under way allocates nothing.

use super::NONE;
use balar_protocol::prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// A node lies in as few lines of the host's cache as it can.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Node<T> {
    value: T,
    /// The next of the same chain, or of the free nodes.
    next: u32,
}

/// First come, first served: one queue of a [`Chains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    /// Is nothing in it?
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { first: NONE, last: NONE }
    }
}

/// The nodes of any number of chains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chains<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

impl<T> Default for Chains<T> {
    fn default() -> Chains<T> {
        Chains { nodes: Vec::new(), free: NONE }
    }
}

impl<T: Copy> Chains<T> {
    /// Adds `value` at the end of `chain`.
    #[inline]
    pub fn push(&mut self, chain: &mut Chain, value: T) {
        let node = Node { value, next: NONE };
        let index = match self.nodes.get_mut(self.free as usize) {
            Some(free) => {
                let index = std::mem::replace(&mut self.free, free.next);
                *free = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        if chain.first == NONE {
            chain.first = index;
        } else {
            self.nodes[chain.last as usize].next = index;
        }
        chain.last = index;
    }

    /// Brings the first of `chain` closer.
    #[inline]
    pub fn prefetch(&self, chain: &Chain) {
        if let Some(node) = self.nodes.get(chain.first as usize) {
            prefetch(node);
        }
    }

    /// The first of `chain`.
    #[inline]
    pub fn front(&self, chain: &Chain) -> Option<&T> {
        self.nodes.get(chain.first as usize).map(|node| &node.value)
    }

    /// Drops the first of `chain`, if there is one.
    #[inline]
    pub fn drop_front(&mut self, chain: &mut Chain) {
        if let Some(node) = self.nodes.get_mut(chain.first as usize) {
            let index = std::mem::replace(&mut chain.first, std::mem::replace(&mut node.next, self.free));
            self.free = index;
        }
    }

    /// Takes the first of `chain` out.
    #[inline]
    pub fn pop(&mut self, chain: &mut Chain) -> Option<T> {
        let value = *self.front(chain)?;
        self.drop_front(chain);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two chains keep their own order, and nodes that are free are used before new ones are made.
    #[test]
    fn chains_keep_their_order_and_share_nodes() {
        let mut chains = Chains::default();
        let (mut odd, mut even) = (Chain::default(), Chain::default());
        for round in 0..3 {
            for value in 0..10 {
                chains.push(if value % 2 == 0 { &mut even } else { &mut odd }, round * 10 + value);
            }
            assert_eq!(chains.front(&odd), Some(&(round * 10 + 1)));
            let odds: Vec<_> = std::iter::from_fn(|| chains.pop(&mut odd)).collect();
            assert_eq!(odds, [1, 3, 5, 7, 9].map(|value| round * 10 + value));
            assert_eq!((chains.pop(&mut even), chains.pop(&mut odd)), (Some(round * 10), None));
            for value in [2, 4, 6, 8] {
                assert_eq!(chains.pop(&mut even), Some(round * 10 + value));
            }
            assert!(even.is_empty() && odd.is_empty());
        }
        assert_eq!(chains.nodes.len(), 10);
    }
}
