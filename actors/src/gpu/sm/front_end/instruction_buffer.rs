//! The instruction cache of a sub-core (NVIDIA's L0), with a stream buffer that fetches the lines after a missing one.

use super::lines::{Lines, UNDER_WAY};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Lines that a sub-core's warps came to, and those that they will probably come to next.
///
/// A stream buffer has the lines behind the one that was missing last. The line at which code goes on leaves it for the cache, another one
/// is fetched behind the last, and those that were passed are dropped. Source: Huerta et al., MICRO 2025, section 5.2.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstructionBuffer {
    lines: Lines,
    stream: VecDeque<(u64, u64)>,
    /// Lines of the stream buffer.
    length: u64,
}

impl InstructionBuffer {
    /// A buffer of so many lines, with so many in the stream buffer.
    pub fn new(lines: u64, length: u32) -> InstructionBuffer {
        InstructionBuffer { lines: Lines::new(lines), stream: VecDeque::new(), length: u64::from(length) }
    }

    /// The cycle from which on a line is there; [`UNDER_WAY`] where that is not known. `ask` the next level for missing lines, up to the
    /// program's `last` line.
    pub fn look(&mut self, line: u64, last: u64, mut ask: impl FnMut(u64) -> u64) -> u64 {
        if let Some(from) = self.lines.find(line) {
            return from;
        }
        let from = match self.stream.iter().position(|&(number, _)| number == line) {
            Some(at) => {
                let (_, from) = self.stream[at];
                self.stream.drain(..=at);
                from
            }
            None => {
                self.stream.clear();
                ask(line)
            }
        };
        self.lines.insert(line, from);
        let next = self.stream.back().map_or(line, |&(number, _)| number) + 1;
        for wanted in next..=last.min(line + self.length) {
            let from = ask(wanted);
            self.stream.push_back((wanted, from));
        }
        from
    }

    /// No line is there or expected any more.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.stream.clear();
    }

    /// A line that was under way will be there.
    pub fn arrives(&mut self, line: u64, from: u64) {
        self.lines.arrives(line, from);
        for (number, known) in &mut self.stream {
            if *number == line && *known == UNDER_WAY {
                *known = from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(buffer: &mut InstructionBuffer, line: u64) -> (u64, Vec<u64>) {
        let mut asked = Vec::new();
        let from = buffer.look(line, 12, |line| {
            asked.push(line);
            if line < 3 { 100 + line } else { UNDER_WAY }
        });
        (from, asked)
    }

    #[test]
    fn a_miss_fetches_the_lines_behind_it() {
        let mut buffer = InstructionBuffer::new(96, 2);
        assert_eq!(look(&mut buffer, 0), (100, vec![0, 1, 2]));
        assert_eq!(look(&mut buffer, 0), (100, vec![]));
        assert_eq!(look(&mut buffer, 1), (101, vec![3]), "the stream goes on");
        assert_eq!(look(&mut buffer, 3), (UNDER_WAY, vec![4, 5]), "line 2 was passed");
        buffer.arrives(3, 200);
        buffer.arrives(4, 201);
        assert_eq!(look(&mut buffer, 3), (200, vec![]));
        assert_eq!(look(&mut buffer, 2), (102, vec![2, 3, 4]), "another stream begins");
        assert_eq!(look(&mut buffer, 11), (UNDER_WAY, vec![11, 12]), "the program ends");
    }
}
