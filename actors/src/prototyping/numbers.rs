//! Requests under way, by the numbers that they go under.

use serde::{Deserialize, Serialize};

/// Gives numbers to requests that a unit sends, and keeps the unit's notes until the answers come. A number is used again once its answer
/// has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Numbers<T> {
    kept: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers { kept: Vec::new(), free: Vec::new() }
    }
}

impl<T> Numbers<T> {
    /// A number for a request; `kept` comes back with [`Numbers::take`].
    pub fn give(&mut self, kept: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.kept[number as usize] = Some(kept);
            return number;
        }
        self.kept.push(Some(kept));
        self.kept.len() as u32 - 1
    }

    /// The answer to `number` has come: the note; `None` where no request under way has this number.
    pub fn take(&mut self, number: u32) -> Option<T> {
        let kept = self.kept.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(kept)
    }

    /// Requests under way.
    pub fn len(&self) -> usize {
        self.kept.len() - self.free.len()
    }

    /// Is no request under way?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_once_it_is_answered() {
        let mut numbers = Numbers::default();
        let (first, second) = (numbers.give("a"), numbers.give("b"));
        assert_ne!(first, second);
        assert_eq!((numbers.take(first), numbers.take(first), numbers.take(9)), (Some("a"), None, None));
        assert_eq!(numbers.len(), 1);
        assert_eq!(numbers.give("c"), first);
        assert_eq!(numbers.take(second), Some("b"));
    }
}
