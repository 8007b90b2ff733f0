//! What the driver records line by line: transfers, batches, and what happened to each page.

use super::UnifiedMemoryDriver;
use crate::unified_memory::residency::PageState;
use crate::unified_memory::{BlockId, PageSet, Processor};
use balar_protocol::SimTime;
use balar_protocol::statistics::{Field, StatisticSink};
use serde::{Deserialize, Serialize};

/// Why pages move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cause {
    /// GPUs faulted on some of them.
    Fault,
    /// None of them was asked for: a prefetcher chose them.
    Prefetch,
    /// The program asked for it.
    Program,
    /// They made room.
    Eviction,
    /// The host faulted on one of them.
    HostFault,
    /// The program synchronised.
    Synchronisation,
}

impl Cause {
    fn word(self) -> &'static str {
        match self {
            Cause::Fault => "fault",
            Cause::Prefetch => "prefetch",
            Cause::Program => "program",
            Cause::Eviction => "eviction",
            Cause::HostFault => "host_fault",
            Cause::Synchronisation => "synchronisation",
        }
    }

    /// As a timeline has it.
    pub fn words(self) -> &'static str {
        match self {
            Cause::HostFault => "host fault",
            Cause::Program => "asked for by the program",
            cause => cause.word(),
        }
    }
}

/// A transfer that is over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct TransferRecord {
    pub began: SimTime,
    pub ended: SimTime,
    pub gpu: u8,
    pub to_device: bool,
    pub address: u64,
    pub bytes: u64,
    pub faults: u32,
    pub cause: Cause,
}

/// A batch that is over.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BatchRecord {
    pub began: SimTime,
    pub ended: SimTime,
    pub gpu: u8,
    pub entries: u32,
    pub pages: u32,
    pub blocks: u32,
    /// Those that were made where they were first touched, too.
    pub pages_moved: u64,
    /// Of these, those that the prefetcher chose.
    pub pages_prefetched: u64,
}

/// What happened to a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageRecord {
    pub faults: u32,
    pub host_faults: u32,
    pub to_device: u32,
    pub to_host: u32,
    pub uses: u32,
}

/// All that is recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Records {
    pub transfers: Vec<TransferRecord>,
    pub batches: Vec<BatchRecord>,
    /// By block: its pages, once something has happened to one.
    pages: Vec<Vec<PageRecord>>,
}

impl Records {
    /// Changes the records of pages of a block.
    pub fn pages(&mut self, id: BlockId, pages: PageSet, change: impl Fn(&mut PageRecord)) {
        if pages.is_empty() {
            return;
        }
        let place = id.0 as usize;
        if self.pages.len() <= place {
            self.pages.resize_with(place + 1, Vec::new);
        }
        let records = &mut self.pages[place];
        for page in pages.iter() {
            if records.len() <= page {
                records.resize(page + 1, PageRecord::default());
            }
            change(&mut records[page]);
        }
    }
}

const TRANSFERS: &[&str] = &["began_ps", "ended_ps", "gpu", "direction", "address", "bytes", "faults", "cause"];
const BATCHES: &[&str] =
    &["began_ps", "ended_ps", "gpu", "entries", "pages", "blocks", "pages_moved", "pages_prefetched"];
const PAGES: &[&str] =
    &["allocation", "page", "address", "faults", "host_faults", "to_device", "to_host", "uses", "at_the_end"];

impl UnifiedMemoryDriver {
    /// Writes what is recorded, as tables.
    pub(super) fn write_records(&self, sink: &mut StatisticSink) {
        let number = |value: u64| Field::Number(value);
        let records = &self.state.records;
        let transfer = |record: &TransferRecord| {
            let direction = if record.to_device { "to_device" } else { "to_host" };
            vec![
                number(record.began.0),
                number(record.ended.0),
                number(record.gpu.into()),
                Field::Word(direction),
                Field::Address(record.address),
                number(record.bytes),
                number(record.faults.into()),
                Field::Word(record.cause.word()),
            ]
        };
        let batch = |record: &BatchRecord| {
            vec![
                number(record.began.0),
                number(record.ended.0),
                number(record.gpu.into()),
                number(record.entries.into()),
                number(record.pages.into()),
                number(record.blocks.into()),
                number(record.pages_moved),
                number(record.pages_prefetched),
            ]
        };
        sink.table("transfers", TRANSFERS, records.transfers.iter().map(transfer).collect());
        sink.table("batches", BATCHES, records.batches.iter().map(batch).collect());
        let mut lines = Vec::new();
        for (place, pages) in records.pages.iter().enumerate() {
            let block = self.state.blocks.get(BlockId(place as u32));
            let start = self.state.blocks.allocations[block.allocation as usize].address;
            for (page, record) in pages.iter().enumerate().filter(|(_, record)| **record != PageRecord::default()) {
                let end = match block.state_of(page) {
                    PageState::At(Processor::Gpu(gpu)) => Field::Member("gpu", gpu.into()),
                    PageState::At(Processor::Host) => Field::Word("host"),
                    PageState::Unpopulated => Field::Word("nowhere"),
                    PageState::Duplicated(_) | PageState::Pinned(_) => Field::Word("several"),
                };
                let address = block.address_of(page);
                lines.push(vec![
                    number(block.allocation.into()),
                    number((address - start) / crate::unified_memory::PAGE_BYTES),
                    Field::Address(address),
                    number(record.faults.into()),
                    number(record.host_faults.into()),
                    number(record.to_device.into()),
                    number(record.to_host.into()),
                    number(record.uses.into()),
                    end,
                ]);
            }
        }
        sink.table("pages", PAGES, lines);
    }
}
