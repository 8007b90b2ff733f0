//! Conditions of graphs: words in device memory that kernels write, and that choose the next part of a graph.
//!
//! The driver's part is done by the host CPU, which reads the word when the graph has come to its node. (A GPU's driver leaves that to
//! the device.)

use super::HostCpu;
use crate::engine::Outbox;
use balar_driver::OperationNumber;
use balar_protocol::SimTime;
use std::collections::VecDeque;

/// A word that is to be read.
#[derive(Debug)]
struct Condition {
    /// When all can be seen that was written before the graph came to its node.
    at: SimTime,
    operation: OperationNumber,
    address: u64,
}

/// Words that are to be read, in the order in which they are.
#[derive(Debug, Default)]
pub(super) struct Conditions(VecDeque<Condition>);

impl Conditions {
    /// When the next one is.
    pub fn next(&self) -> Option<SimTime> {
        self.0.front().map(|condition| condition.at)
    }
}

impl HostCpu {
    /// A graph has come to a conditional node.
    pub(super) fn condition_wanted(&mut self, now: SimTime, operation: OperationNumber, address: u64) {
        let at = self.writer.visible_at(now);
        self.conditions.0.push_back(Condition { at, operation, address });
    }

    /// Reads the next word.
    pub(super) fn read_condition(&mut self, now: SimTime, out: &mut Outbox) {
        let Some(Condition { operation, address, .. }) = self.conditions.0.pop_front() else { return };
        let mut word = [0; 4];
        // Memory that has been freed since holds nothing: its condition is false.
        let _is_there = self.memory.read(address, &mut word);
        self.driver.condition_read(operation, u32::from_le_bytes(word));
        self.work_done(now, out);
    }
}
