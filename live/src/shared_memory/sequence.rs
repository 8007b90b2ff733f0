//! A sequence lock: one writer that never waits, and readers that change nothing and read again where the writer wrote meanwhile.
//!
//! The counter is odd while the writer writes. A reader takes the counter, the words, and the counter again. Where both counters are the
//! same and even, the words belong together. All words are atomic: a reader that reads during a write gets wrong words, which it throws
//! away, and no undefined ones.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How often a reader looks before it gives up: the writer takes microseconds, unless it was killed or stopped as it wrote.
const TRIES: u32 = 10_000;

/// Lets `write` store words, by relaxed stores, that readers see all of or nothing of. Only one thread writes.
pub fn write(sequence: &AtomicU64, write: impl FnOnce()) {
    let before = sequence.load(Ordering::Relaxed);
    sequence.store(before.wrapping_add(1), Ordering::Relaxed);
    // No word is written before the counter is odd, ...
    fence(Ordering::Release);
    write();
    // ... and all are before it is even again.
    sequence.store(before.wrapping_add(2), Ordering::Release);
}

/// Lets `read` load words, by relaxed loads, until they belong together. `None` where the writer does not finish.
pub fn read<T>(sequence: &AtomicU64, mut read: impl FnMut() -> T) -> Option<T> {
    for tried in 0..TRIES {
        let before = sequence.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            let taken = read();
            // The counter is looked at again after all words.
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return Some(taken);
            }
        }
        if tried < 100 {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn readers_never_see_words_of_two_writes() {
        let sequence = AtomicU64::new(0);
        let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let is_over = AtomicBool::new(false);
        let take = || words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let seen: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let reader = || {
                let (mut reads, mut last) = (0u64, 0);
                while !is_over.load(Ordering::Relaxed) || reads == 0 {
                    let taken = read(&sequence, take).expect("the writer finishes");
                    assert!(taken.iter().all(|word| *word == taken[0]), "{taken:?}");
                    assert!(taken[0] >= last, "what was written earlier was read later");
                    (last, reads) = (taken[0], reads + 1);
                }
                (reads, last)
            };
            let readers = [scope.spawn(reader), scope.spawn(reader)];
            for value in 1..=20_000 {
                write(&sequence, || words.iter().for_each(|word| word.store(value, Ordering::Relaxed)));
                if value % 64 == 0 {
                    std::thread::yield_now();
                }
            }
            is_over.store(true, Ordering::Relaxed);
            readers.into_iter().map(|reader| reader.join().expect("no words of two writes")).collect()
        });
        assert!(seen.iter().all(|(reads, _)| *reads > 0), "{seen:?}");
        assert_eq!(read(&sequence, take), Some(vec![20_000; 64]));
    }

    #[test]
    fn a_read_across_a_write_is_taken_again() {
        let sequence = AtomicU64::new(6);
        let mut reads = 0;
        let taken = read(&sequence, || {
            reads += 1;
            if reads == 1 {
                // Somebody writes between the words of the first read.
                write(&sequence, || {});
            }
            reads
        });
        assert_eq!((taken, sequence.load(Ordering::Relaxed)), (Some(2), 8));
    }

    #[test]
    fn a_writer_that_died_as_it_wrote_is_not_waited_for_for_ever() {
        assert_eq!(read(&AtomicU64::new(3), || ()), None);
    }
}
