//! Bursts whose lines the channels still work on.

use balar_protocol::memory::MemoryBurst;
use balar_protocol::{PortId, SimTime};
use serde::{Deserialize, Serialize};

/// Whom the end of a request is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Requester {
    /// The client at the port.
    Port(PortId),
    /// The burst in this slot.
    Burst(u32),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OpenBurst {
    burst: MemoryBurst,
    port: PortId,
    /// Lines not yet done.
    unfinished: u32,
    /// When the last of the others is.
    done: SimTime,
}

/// Bursts whose lines the channels still work on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bursts {
    /// Bursts, by slot.
    open: Vec<OpenBurst>,
    free: Vec<u32>,
}

impl Bursts {
    /// A burst of so many lines, at least one, has arrived; returns its slot.
    pub fn open(&mut self, port: PortId, burst: MemoryBurst, lines: u32) -> u32 {
        let open = OpenBurst { burst, port, unfinished: lines, done: SimTime::ZERO };
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

    /// A line of the burst in `slot` is done at `time`. For the last one: when all are done, and the port to tell.
    pub fn line_done(&mut self, slot: u32, time: SimTime) -> Option<(PortId, SimTime, MemoryBurst)> {
        let open = self.open.get_mut(slot as usize)?;
        open.unfinished = open.unfinished.checked_sub(1)?;
        open.done = open.done.max(time);
        let last = open.unfinished == 0;
        if last {
            self.free.push(slot);
        }
        last.then_some((open.port, open.done, open.burst))
    }
}
