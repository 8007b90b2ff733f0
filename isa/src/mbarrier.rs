//! `mbarrier` objects: 64 bits in shared memory that count arrivals and bytes under way, phase by phase.
//!
//! PTX leaves the format open; machine code of Hopper makes objects and takes states apart itself, which tells where its counts are (own
//! finding; where the bytes are counted no code sees: the bits that are left). Programs of PTX have the same format:
//!
//! | bits | what |
//! |---|---|
//! | 1 to 20 | arrivals that the next phase will wait for, taken from 2^20 |
//! | 21 to 42 | bytes that the current phase still waits for (tx-count), in two's complement |
//! | 43 to 62 | arrivals that the current phase still waits for, taken from 2^20 |
//! | 63 | parity of the current phase: 0 in the first |
//!
//! A phase is complete once it waits neither for arrivals nor for bytes; the next phase begins at once. An arrival returns the object
//! as it was before the arrival. Bit 63 of such a state therefore tells its phase, as long as that is the current phase or the one
//! before; PTX asks for no more.

use serde::{Deserialize, Serialize};

/// The operation of an instruction on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierOperation {
    /// `init`: phase 0, which waits for `operand` arrivals, as all later ones.
    Initialize,
    /// `arrive`, and `arrive.expect_tx`: `replacement` more bytes are expected, then `operand` arrivals happen.
    Arrive,
    /// The same, and later phases wait for `operand` arrivals fewer.
    ArriveDrop,
    /// `expect_tx`: the phase waits for `operand` more bytes.
    Expect,
    /// `complete_tx`: `operand` bytes have come.
    Complete,
    /// An arrival that will follow: the phase waits for one more.
    Pend,
    /// An arrival at an object that machine code of Ampere made.
    ArriveOfAmpere,
}

const COUNT: u64 = (1 << 20) - 1;
const NEXT_SHIFT: u32 = 1;
const BYTES_SHIFT: u32 = 21;
const BYTES: u64 = (1 << 22) - 1;
const PENDING_SHIFT: u32 = 43;
const PHASE: u64 = 1 << 63;

/// A count of arrivals as it is stored, and back.
const fn taken_from_all(count: u64) -> u64 {
    count.wrapping_neg() & COUNT
}

/// The counts of an object.
struct Counts {
    pending: u64,
    next: u64,
    bytes: u64,
    phase: u64,
}

impl Counts {
    const fn of(object: u64) -> Counts {
        Counts {
            pending: taken_from_all(object >> PENDING_SHIFT),
            next: taken_from_all(object >> NEXT_SHIFT),
            bytes: object >> BYTES_SHIFT & BYTES,
            phase: object & PHASE,
        }
    }

    const fn object(&self) -> u64 {
        taken_from_all(self.pending) << PENDING_SHIFT
            | taken_from_all(self.next) << NEXT_SHIFT
            | (self.bytes & BYTES) << BYTES_SHIFT
            | self.phase
    }
}

/// The object after an operation.
pub fn update(operation: BarrierOperation, object: u64, operand: u64, replacement: u64) -> u64 {
    let mut counts = Counts::of(object);
    match operation {
        BarrierOperation::Initialize if operand == 0 => return 0,
        BarrierOperation::Initialize => {
            return Counts { pending: operand, next: operand, bytes: 0, phase: 0 }.object();
        }
        BarrierOperation::Arrive | BarrierOperation::ArriveDrop => {
            if operation == BarrierOperation::ArriveDrop {
                counts.next = counts.next.wrapping_sub(operand) & COUNT;
            }
            counts.bytes = counts.bytes.wrapping_add(replacement) & BYTES;
            counts.pending = counts.pending.wrapping_sub(operand) & COUNT;
        }
        BarrierOperation::Expect => counts.bytes = counts.bytes.wrapping_add(operand) & BYTES,
        BarrierOperation::Complete => counts.bytes = counts.bytes.wrapping_sub(operand) & BYTES,
        BarrierOperation::ArriveOfAmpere => return arrive_of_ampere(object),
        BarrierOperation::Pend => {
            counts.pending = counts.pending.wrapping_add(1) & COUNT;
            return counts.object();
        }
    }
    if counts.pending == 0 && counts.bytes == 0 {
        counts = Counts { pending: counts.next, next: counts.next, bytes: 0, phase: counts.phase ^ PHASE };
    }
    counts.object()
}

/// The object after an arrival, in the format that machine code of Ampere gives it (own finding from the code that makes and asks objects).
/// The upper word counts arrivals up to the change of its highest bit, the parity of the phase; then it begins again at as many below that
/// change as the lower word is below `0x4000_0000`.
fn arrive_of_ampere(object: u64) -> u64 {
    const PARITY: u32 = 1 << 31;
    let (low, high) = (object as u32, (object >> 32) as u32);
    let next = high.wrapping_add(1);
    let next = if (next ^ high) & PARITY == 0 { next } else { next & PARITY | low.wrapping_add(1 << 30) & !PARITY };
    u64::from(low) | u64::from(next) << 32
}

/// Arrivals that the phase of a state still waited for.
pub const fn pending_count(state: u64) -> u32 {
    Counts::of(state).pending as u32
}

/// Whether the phase of a state, or the phase of a parity given as bit 63, is complete.
pub const fn is_complete(object: u64, state: u64) -> bool {
    (object ^ state) & PHASE != 0
}

/// A state of the phase with this parity.
pub const fn state_of_parity(parity: u32) -> u64 {
    (parity as u64 & 1) << 63
}

#[cfg(test)]
mod tests {
    use super::BarrierOperation::*;
    use super::*;

    fn run(operations: &[(BarrierOperation, u64, u64)]) -> u64 {
        operations
            .iter()
            .fold(0xdead_beef, |object, &(operation, operand, bytes)| update(operation, object, operand, bytes))
    }

    #[test]
    fn objects_of_ampere_count_up_to_the_next_phase() {
        // Two arrivals a phase: what `mbarrier.init` of 2 becomes.
        let first = 0x7fff_fffe_3fff_fffe;
        let arrive = |object| update(ArriveOfAmpere, object, 1, 0);
        assert_eq!(arrive(first), 0x7fff_ffff_3fff_fffe);
        assert_eq!(arrive(arrive(first)), 0xffff_fffe_3fff_fffe, "the phase of the other parity waits for two again");
        assert_eq!(arrive(arrive(arrive(arrive(first)))), first);
        // One arrival fewer from the next phase on.
        assert_eq!(arrive(arrive(first + 1)), 0xffff_ffff_3fff_ffff);
    }

    #[test]
    fn objects_are_those_that_machine_code_of_hopper_makes() {
        // What its code stores for `mbarrier.init` of 5, and how it finds the arrivals that a state waits for.
        let object = run(&[(Initialize, 5, 0)]);
        let less = (1 << 20) - 5;
        assert_eq!(object, less << 1 | less << 11 << 32);
        let state = update(Arrive, object, 2, 0);
        assert_eq!((1 << 20) - (state >> 32 >> 11 & 0xf_ffff), 3);
    }

    #[test]
    fn phases() {
        for (operations, phase, pending) in [
            (&[(Initialize, 3, 0)][..], 0, 3),
            (&[(Initialize, 3, 0), (Arrive, 1, 0)], 0, 2),
            (&[(Initialize, 3, 0), (Arrive, 2, 0), (Arrive, 1, 0)], 1, 3),
            (&[(Initialize, 1, 0), (Arrive, 1, 0), (Arrive, 1, 0)], 0, 1),
            // Bytes hold a phase open, in whichever order they are expected and come.
            (&[(Initialize, 1, 0), (Arrive, 1, 64)], 0, 0),
            (&[(Initialize, 1, 0), (Arrive, 1, 64), (Complete, 60, 0), (Complete, 4, 0)], 1, 1),
            (&[(Initialize, 1, 0), (Complete, 8, 0), (Arrive, 1, 8)], 1, 1),
            (&[(Initialize, 2, 0), (Expect, 8, 0), (Arrive, 2, 0)], 0, 0),
            // Threads that leave are not waited for later.
            (&[(Initialize, 3, 0), (ArriveDrop, 1, 0), (Arrive, 2, 0)], 1, 2),
            // An announced arrival.
            (&[(Initialize, 1, 0), (Pend, 0, 0), (Arrive, 1, 0)], 0, 1),
            (&[(Initialize, 1, 0), (Pend, 0, 0), (Arrive, 1, 0), (Arrive, 1, 0)], 1, 1),
        ] {
            let object = run(operations);
            assert_eq!((object >> 63, pending_count(object)), (phase, pending), "{operations:?}");
            assert_eq!(is_complete(object, state_of_parity(0)), phase == 1, "{operations:?}");
        }
    }
}
