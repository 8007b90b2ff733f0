//! What the scheduler knows of an instruction.

use crate::execution::Space;

/// How freely an instruction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As its operands and its memory access allow.
    Free,
    /// And not across another of its kind: stores, atomics, volatile accesses.
    Chained,
    /// It stays, and no instruction moves across it.
    Pinned,
}

/// What an instruction accesses in memory that can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Spaces that it may reach, a bit each; see [`spaces`].
    pub spaces: u8,
    /// Whether accesses of the same space may not pass it.
    pub writes: bool,
}

/// An instruction as the scheduler sees it, beyond its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub order: Order,
    pub access: Option<Access>,
    /// Whether it reads or writes the carry flag.
    pub carries: bool,
    /// Cycles that its result is expected to take.
    pub latency: u32,
}

/// The spaces that an access may reach: all where the address is generic, none where the memory never changes.
pub(crate) fn spaces(space: Option<Space>) -> u8 {
    match space {
        Some(Space::Global) => 1,
        Some(Space::Shared) => 2,
        Some(Space::Local) => 4,
        Some(Space::Constant | Space::Parameter) => 0,
        None => 7,
    }
}

/// The spaces that [`spaces`] tells apart.
pub(super) const SPACES: usize = 3;
