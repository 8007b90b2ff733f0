//! Bursts whose lines the channels still work on.

use crate::engine::Outbox;
use balar_protocol::memory::{MemoryBurst, MemoryMessage};
use balar_protocol::{Payload, PortId, SimTime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OpenBurst {
    burst: MemoryBurst,
    port: PortId,
    /// Bursts that arrived before.
    number: u64,
    /// Lines not yet done.
    unfinished: u32,
    /// When the last of the others is.
    done: SimTime,
}

/// Bursts whose lines the channels still work on, and those whose answer is not yet due.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bursts {
    /// By slot.
    open: Vec<OpenBurst>,
    free: Vec<u32>,
    arrived: u64,
    /// Every line is done, as (time, number of the burst): answered when that time has come, in this order.
    done: Vec<(SimTime, u64, PortId, MemoryBurst)>,
}

impl Bursts {
    /// A burst of so many lines, at least one, has arrived; returns its slot.
    pub fn open(&mut self, port: PortId, burst: MemoryBurst, lines: u32) -> u32 {
        let open = OpenBurst { burst, port, number: self.arrived, unfinished: lines, done: SimTime::ZERO };
        self.arrived += 1;
        match self.free.pop() {
            Some(slot) => {
                self.open[slot as usize] = open;
                slot
            }
            None => {
                self.open.push(open);
                (self.open.len() - 1) as u32
            }
        }
    }

    /// A line of the burst in `slot` is done at `time`.
    pub fn line_done(&mut self, slot: u32, time: SimTime) {
        let open = &mut self.open[slot as usize];
        open.unfinished -= 1;
        open.done = open.done.max(time);
        if open.unfinished == 0 {
            self.done.push((open.done, open.number, open.port, open.burst));
            self.free.push(slot);
        }
    }

    /// Answers the bursts that are done before `until`; says when the next one is, as far as is known.
    ///
    /// Channels find out in the order that windows give them: answers wait for their time, so that they leave in an order of their own.
    pub fn answer(&mut self, until: SimTime, out: &mut Outbox) -> Option<SimTime> {
        if self.done.is_empty() {
            return None;
        }
        self.done.sort_unstable_by_key(|&(time, number, ..)| (time, number));
        let due = self.done.partition_point(|&(time, ..)| time < until);
        for (time, _, port, burst) in self.done.drain(..due) {
            out.send(port, time, Payload::Memory(MemoryMessage::BurstDone(burst)));
        }
        self.done.first().map(|&(time, ..)| time)
    }
}
