//! The messages of the GMMU, and their effects on requests, TLBs and the L1.

use super::ports::{Moment, Ports};
use super::{LOAD, MemoryPipe};
use crate::engine::Outbox;
use balar_protocol::translation::{FaultKind, TranslationMessage};

impl MemoryPipe {
    /// The GMMU has said something.
    pub fn translated(&mut self, message: &TranslationMessage, cycle: u64, ports: &Ports, out: &mut Outbox) {
        let mut now = Moment { cycle, ports, counters: &mut self.counters, out };
        match *message {
            TranslationMessage::Response { id, ref translation } => self.below.answered(id, translation, &mut now),
            TranslationMessage::Fault { id, address, page_bits, kind: FaultKind::NotResident } => {
                self.below.faulted((id, address, page_bits), &mut now);
            }
            TranslationMessage::Invalidate { address, bytes, id } => {
                self.below.invalidate((address, bytes, id), &mut now);
                self.forget(address, bytes);
            }
            TranslationMessage::Fault { .. }
            | TranslationMessage::Request { .. }
            | TranslationMessage::Joined { .. }
            | TranslationMessage::Used { .. }
            | TranslationMessage::Invalidated { .. } => {}
        }
    }

    /// Pages leave the memory: the L1 holds none of their lines any more, nor takes in those that are under way. Those that wait for
    /// the GMMU will come from where the page is then.
    fn forget(&mut self, address: u64, bytes: u64) {
        self.l1.forget_range(address, bytes);
        let waiting = self.below.waiting_within(address, bytes).filter(|request| request.id & 3 == LOAD);
        let mut waiting: Vec<u32> = waiting.map(|request| request.id >> 2).collect();
        waiting.sort_unstable();
        self.outstanding.forget_range(address, bytes, |mshr| waiting.binary_search(&mshr).is_ok());
    }
}
