//! Memory for messages on their way, shared by the units of a shard.
//!
//! A buffer that one unit has read takes the next unit's messages: it is still in the processor's cache.

use balar_protocol::Message;

/// Messages in the order in which they were sent; one that was taken leaves a hole.
pub(super) type Messages = Vec<Option<Message>>;

/// Messages that the smallest buffer holds.
const SMALLEST: usize = 16;
/// Sizes of buffers: each holds twice as many as the one before, the last as many as are wanted.
const SIZES: usize = 16;

/// How many messages a buffer should hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size(u8);

impl Size {
    /// The smallest that holds `messages`.
    pub fn of(messages: usize) -> Size {
        let doublings = messages.div_ceil(SMALLEST).next_power_of_two().trailing_zeros() as usize;
        Size(doublings.min(SIZES - 1) as u8)
    }
}

/// Empty buffers, by size; the one that came last goes first.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    empty: [Vec<Messages>; SIZES],
}

impl Buffers {
    /// A buffer of about `size`.
    #[inline]
    pub fn take(&mut self, size: Size) -> Messages {
        let size = usize::from(size.0);
        self.empty[size].pop().unwrap_or_else(|| Vec::with_capacity(SMALLEST << size))
    }

    /// Takes back a buffer, whose messages are gone.
    #[inline]
    pub fn give(&mut self, mut buffer: Messages) {
        buffer.clear();
        if let Some(doublings) = (buffer.capacity() / SMALLEST).checked_ilog2() {
            self.empty[(doublings as usize).min(SIZES - 1)].push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_to_those_of_its_size() {
        let sizes = [0, 1, 16, 17, 32, 33, usize::MAX / 2].map(|messages| Size::of(messages).0);
        assert_eq!(sizes, [0, 0, 0, 1, 1, 2, 15]);
        let mut buffers = Buffers::default();
        let (small, large) = (buffers.take(Size::of(1)), buffers.take(Size::of(100)));
        assert_eq!((small.capacity(), large.capacity()), (16, 128));
        buffers.give(small);
        buffers.give(large);
        buffers.give(Vec::new());
        assert_eq!(buffers.take(Size::of(128)).capacity(), 128);
        assert_eq!(buffers.empty.iter().map(Vec::len).sum::<usize>(), 1);
    }
}
