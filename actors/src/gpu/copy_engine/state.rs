//! The state of a running copy engine: transfers, their pages, and the work of each engine.

use super::lines::{LinePacer, PageLines};
use super::parameters::CopyEngineCounters;
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::memory::MemoryKind;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// The engine for what is written to the device, among the two.
pub(super) const TO_DEVICE: usize = 0;
/// The engine for what is read back.
pub(super) const TO_HOST: usize = 1;

/// A page whose lines are being loaded or stored.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Page {
    pub engine: u8,
    pub kind: MemoryKind,
    pub offset: u64,
    pub bytes: u32,
    /// Lines not yet sent.
    pub unsent: PageLines,
    /// Requests sent and not yet answered.
    pub unanswered: u32,
    /// No line is sent earlier.
    pub not_before: SimTime,
}

/// Pages by slot; the slot is the `id` of their line requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PageTable {
    pub pages: Vec<Page>,
    pub free: Vec<u32>,
}

impl PageTable {
    pub fn open(&mut self, page: Page) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.pages[slot as usize] = page;
                slot
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        }
    }
}

/// The use of the data link by a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Route {
    /// Nothing: it stays within the GPU's memory.
    Within,
    /// Its bytes come over the link and are written to the GPU's memory.
    Inward,
    /// Its bytes come from the GPU's memory, or from nowhere (fills), and go over the link.
    Outward,
    /// Its bytes come over the link, and are written to where they came from.
    Beyond,
}

/// A transfer that waits for those before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    pub id: CopyId,
    pub operation: CopyOperation,
    pub route: Route,
}

/// The transfer an engine works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Transfer {
    pub id: CopyId,
    pub operation: CopyOperation,
    pub route: Route,
    pub bytes: u64,
    pub started: SimTime,
    /// Offset of the first page not yet begun.
    pub next_offset: u64,
    /// Pages begun and not yet done.
    pub open_pages: u32,
    /// For device-to-host: the bytes that have been read.
    pub data: Arc<[u8]>,
    /// The latest time at which a page was done.
    pub done_at: SimTime,
}

/// One engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Engine {
    pub queue: VecDeque<Queued>,
    pub active: Option<Transfer>,
    /// When the transfer before was done.
    pub free_at: SimTime,
    /// Earliest time for the next page to or from the host.
    pub next_page: SimTime,
    pub pacer: LinePacer,
    /// Pages with lines to send, by slot, in order.
    pub sending: VecDeque<u32>,
    /// Line requests sent and not yet answered.
    pub unanswered: u32,
    pub counters: CopyEngineCounters,
}

/// The state of a running copy engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Towards the device (and within it), and towards the host.
    pub engines: [Engine; 2],
    pub pages: PageTable,
}
