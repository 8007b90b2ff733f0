//! Stores of warps.

use super::WriteLog;
use crate::memory::access_pattern::AccessPattern;
use crate::memory::arena::Arena;
use crate::memory::write_log::filter::SectorFilter;
use balar_isa::execution::{LaneValues, MemoryAccess};
use balar_isa::program::LANES;
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};

/// The stores of an epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stores {
    runs: Vec<Run>,
    /// The stored bytes, run after run.
    data: Vec<u8>,
}

/// The runs of one warp's store, in the order of the lanes: where two overlap the later one counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct StoredRuns {
    first: u32,
    count: u32,
}

/// Bytes at consecutive addresses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub address: u64,
    offset: u32,
    pub bytes: u32,
}

impl WriteLog {
    /// Logs a warp's store, which is aligned. Where several lanes store to one address, the highest lane counts.
    pub fn store(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) {
        let (stores, filter) = (&mut self.stores, &mut self.filter);
        let runs = match access.bytes {
            4 => stores.push::<4>(access, values, filter),
            8 => stores.push::<8>(access, values, filter),
            16 => stores.push::<16>(access, values, filter),
            2 => stores.push::<2>(access, values, filter),
            _ => stores.push::<1>(access, values, filter),
        };
        self.push(time, runs);
    }
}

/// The first bytes of a lane's value.
#[inline(always)]
fn value<const BYTES: usize>(values: &LaneValues, lane: usize) -> [u8; BYTES] {
    let mut value = [0; BYTES];
    value.copy_from_slice(&values.get(lane).to_le_bytes()[..BYTES]);
    value
}

impl Stores {
    #[inline(always)]
    fn push<const BYTES: usize>(
        &mut self,
        access: &MemoryAccess,
        values: &LaneValues,
        filter: &mut SectorFilter,
    ) -> StoredRuns {
        let first = self.runs.len() as u32;
        let mut data = [[0; BYTES]; LANES];
        let mut count = 0;
        let mut push = |runs: &mut Vec<Run>, address: u64, offset: usize, bytes: usize| {
            filter.insert(address, bytes as u64);
            runs.push(Run { address, offset: offset as u32, bytes: bytes as u32 });
        };
        let offset = self.data.len();
        match AccessPattern::of(access) {
            AccessPattern::Consecutive => {
                count = LANES;
                for (lane, data) in data.iter_mut().enumerate() {
                    *data = value(values, lane);
                }
                push(&mut self.runs, access.addresses[0], offset, LANES * BYTES);
            }
            AccessPattern::Uniform => {
                count = 1;
                data[0] = value(values, LANES - 1);
                push(&mut self.runs, access.addresses[0], offset, BYTES);
            }
            AccessPattern::Scattered => {
                let mut lanes = access.mask;
                let (mut address, mut bytes) = (access.addresses[lanes.trailing_zeros() as usize % LANES], 0);
                while lanes != 0 {
                    let lane = lanes.trailing_zeros() as usize;
                    lanes &= lanes - 1;
                    if access.addresses[lane] != address.wrapping_add(bytes as u64) {
                        push(&mut self.runs, address, offset + count * BYTES - bytes, bytes);
                        (address, bytes) = (access.addresses[lane], 0);
                    }
                    data[count % LANES] = value(values, lane);
                    count += 1;
                    bytes += BYTES;
                }
                if bytes > 0 {
                    push(&mut self.runs, address, offset + count * BYTES - bytes, bytes);
                }
            }
        }
        self.data.extend_from_slice(data[..count].as_flattened());
        StoredRuns { first, count: self.runs.len() as u32 - first }
    }

    pub fn clear(&mut self) {
        self.runs.clear();
        self.data.clear();
    }

    pub fn runs(&self, StoredRuns { first, count }: StoredRuns) -> &[Run] {
        &self.runs[first as usize..(first + count) as usize]
    }

    /// The bytes that a run stores.
    pub fn data(&self, run: &Run) -> &[u8] {
        &self.data[run.offset as usize..(run.offset + run.bytes) as usize]
    }

    pub fn apply(&self, runs: &StoredRuns, arena: &mut Arena) {
        for run in self.runs(*runs) {
            let data = self.data(run);
            if let Some(bytes) = arena.mapping.bytes_mut(run.address, data.len()) {
                bytes.write(data);
            }
        }
    }
}
