//! Sets of addresses, as spans that do not touch each other.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of addresses: by first address, the first address after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// Adds a span.
    pub fn insert(&mut self, mut span: Range<u64>) {
        // From the last one backwards that begins at or before its end, as long as they overlap or touch it.
        while let Some((&start, &end)) = self.0.range(..=span.end).next_back() {
            if end < span.start {
                break;
            }
            self.0.remove(&start);
            span = span.start.min(start)..span.end.max(end);
        }
        if !span.is_empty() {
            self.0.insert(span.start, span.end);
        }
    }

    /// Takes a span out.
    pub fn remove(&mut self, span: &Range<u64>) {
        while let Some((&start, &end)) = self.0.range(..span.end).next_back() {
            if end <= span.start {
                return;
            }
            self.0.remove(&start);
            if start < span.start {
                self.0.insert(start, span.start);
            }
            if span.end < end {
                self.0.insert(span.end, end);
            }
        }
    }

    /// The parts of a span that are not in the set, ascending.
    pub fn missing(&self, span: &Range<u64>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let mut at = span.start;
        let before = self.0.range(..=span.start).next_back().map(|(start, end)| (*start, *end));
        let later = self.0.range(span.start..span.end).map(|(start, end)| (*start, *end));
        for (start, end) in before.into_iter().chain(later) {
            if at < start {
                found.push(at..start);
            }
            at = at.max(end);
        }
        if at < span.end {
            found.push(at..span.end);
        }
        found
    }

    /// Takes all spans out, ascending.
    pub fn take(&mut self) -> impl Iterator<Item = Range<u64>> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(start, end)| start..end)
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set of small numbers as a mask of bits, and as spans.
    fn masks() -> impl Iterator<Item = (u8, Spans)> {
        (0..=u8::MAX).map(|mask| {
            let mut spans = Spans::default();
            // In an order in which some are joined from both sides.
            for bit in [1, 3, 2, 0, 7, 5, 4, 6] {
                if mask & 1 << bit != 0 {
                    spans.insert(bit..bit + 1);
                }
            }
            (mask, spans)
        })
    }

    fn mask_of(spans: impl IntoIterator<Item = Range<u64>>) -> u8 {
        spans.into_iter().flatten().fold(0, |mask, bit| mask | 1 << bit)
    }

    #[test]
    fn spans_are_sets() {
        for (mask, spans) in masks() {
            assert_eq!(spans.is_empty(), mask == 0);
            let all: Vec<Range<u64>> = spans.clone().take().collect();
            assert_eq!(mask_of(all.clone()), mask);
            assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "{all:?} are joined");
            for start in 0..8 {
                for end in start..=8 {
                    let span = mask_of(std::iter::once(start..end));
                    assert_eq!(mask_of(spans.missing(&(start..end))), span & !mask, "{all:?} {start} {end}");
                    let (mut more, mut less) = (spans.clone(), spans.clone());
                    more.insert(start..end);
                    less.remove(&(start..end));
                    assert_eq!((mask_of(more.take()), mask_of(less.take())), (mask | span, mask & !span));
                }
            }
        }
    }
}
