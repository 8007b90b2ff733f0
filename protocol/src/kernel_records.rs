//! Kernel launches of a run, kept small: a program may make millions of them.

use crate::context::ProcessId;
use crate::cuda::LaunchId;
use crate::detail::Detail;
use crate::ranges::RangePath;
use crate::statistics::{KernelCounters, KernelRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What of a record is a number, beside the launch and its times.
const OWN_FIELDS: usize = 16;
const FIELDS: usize = OWN_FIELDS + KernelCounters::DEFINITIONS.len();
const _: () = assert!(FIELDS <= u128::BITS as usize, "a bit of a word says whether a field differs");

/// Bits of the field that says how a launch was simulated.
const FUNCTIONAL: u64 = 1;
const PROFILED: u64 = 2;

/// Kernel launches in order. A launch is kept as its difference from the first launch of the same kernel on the same GPU, so that it takes
/// 20 to 100 bytes where a [`KernelRecord`] has 400.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct KernelRecords {
    kernels: Vec<RecordedKernel>,
    /// The named ranges that launches are of, each once, and the place of each.
    ranges: Vec<RangePath>,
    places_of_ranges: BTreeMap<RangePath, usize>,
    /// Where each launch begins in `packed`.
    places: Vec<u64>,
    /// Numbers of variable length: which kernel, launch, start, duration, which fields differ, and by how much each.
    packed: Vec<u8>,
    /// The number, among those that are packed, of the launch that is given as number 0.
    first_launch: u32,
    /// Where launches are given from 0: those that kernels have made, ascending. They are given behind all others.
    of_device: Vec<u32>,
    /// The number that the first of these is given.
    first_of_device: u32,
}

/// A kernel on a GPU.
#[derive(Clone, Serialize, Deserialize)]
struct RecordedKernel {
    name: Arc<str>,
    gpu: Arc<str>,
    /// The fields of its first launch.
    first: Vec<u64>,
}

impl KernelRecords {
    /// How many launches there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Is any launch of a named range?
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.packed.capacity() + self.places.capacity() * size_of::<u64>()
    }

    /// The launch at `index`.
    pub fn get(&self, index: usize) -> Option<KernelRecord> {
        self.places.get(index).map(|&place| self.unpack(place))
    }

    /// The first launch.
    pub fn first(&self) -> Option<KernelRecord> {
        self.get(0)
    }

    /// The launches in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = KernelRecord> {
        self.places.iter().map(|&place| self.unpack(place))
    }

    /// Paths of the GPUs that they ran on; one may come several times.
    pub fn gpus(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| &*kernel.gpu)
    }

    /// Adds a launch at the end.
    pub fn push(&mut self, record: &KernelRecord) {
        let parent = record.parent.map_or(0, |parent| u64::from(self.packed_number(parent)) + 1);
        let range = record.range.as_ref().map_or(0, |range| self.place_of(range) as u64 + 1);
        let fields = fields_of(record, parent, range);
        let known = |kernel: &RecordedKernel| kernel.name == record.name && kernel.gpu == record.gpu;
        let kernel = self.kernels.iter().position(known).unwrap_or_else(|| {
            let (name, gpu) = (Arc::clone(&record.name), Arc::clone(&record.gpu));
            self.kernels.push(RecordedKernel { name, gpu, first: fields.to_vec() });
            self.kernels.len() - 1
        });
        let first = &self.kernels[kernel].first;
        let differs = fields.iter().zip(first).map(|(field, first)| u128::from(field != first)).enumerate();
        let mask = differs.fold(0u128, |mask, (field, differs)| mask | differs << field);
        self.places.push(self.packed.len() as u64);
        let duration = record.end_ps.wrapping_sub(record.start_ps);
        let launch = u64::from(self.packed_number(record.launch));
        let head: Head = ([kernel as u64, launch, record.start_ps, duration], mask);
        let mut packed = written(&head, std::mem::take(&mut self.packed));
        for field in bits(mask) {
            packed = written(&(fields[field].wrapping_sub(first[field]) as i64), packed);
        }
        self.packed = packed;
    }

    /// Where a range is among those that launches are of.
    fn place_of(&mut self, range: &RangePath) -> usize {
        if let Some(&place) = self.places_of_ranges.get(range) {
            return place;
        }
        self.ranges.push(range.clone());
        self.places_of_ranges.insert(range.clone(), self.ranges.len() - 1);
        self.ranges.len() - 1
    }

    /// Adds the launches of `others` at the end.
    pub fn append(&mut self, others: &KernelRecords) {
        if self.is_empty() {
            self.clone_from(others);
        } else {
            others.iter().for_each(|record| self.push(&record));
        }
    }

    /// Gives the launches from now on with numbers from 0, where they were numbered from 1, and those that kernels have made behind the
    /// others. (Nothing is packed anew for it.)
    pub fn number_from_zero(&mut self) {
        let launch = |&place: &u64| read::<Head>(&mut &self.packed[place as usize..]).0[1] as u32;
        let (mut of_device, of_host): (Vec<u32>, Vec<u32>) =
            self.places.iter().map(launch).partition(|launch| LaunchId(*launch).is_of_device());
        of_device.sort_unstable();
        self.first_launch = 1;
        self.first_of_device = of_host.into_iter().max().unwrap_or(0);
        self.of_device = of_device;
    }

    /// The number by which a packed launch is given.
    fn given(&self, launch: u32) -> LaunchId {
        match self.of_device.binary_search(&launch) {
            Ok(place) => LaunchId(self.first_of_device + place as u32),
            Err(_) => LaunchId(launch.saturating_sub(self.first_launch)),
        }
    }

    /// The number by which a launch is packed that was given by another.
    fn packed_number(&self, launch: LaunchId) -> u32 {
        let place = launch.0.checked_sub(self.first_of_device).and_then(|place| self.of_device.get(place as usize));
        place.copied().unwrap_or_else(|| launch.0.wrapping_add(self.first_launch))
    }

    /// Puts them in the order of their numbers; those with the same number stay in the order they have.
    pub fn sort_by_launch(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        // Most runs have them in order.
        let launch = |place: u64| read::<Head>(&mut &self.packed[place as usize..]).0[1];
        if !places.is_sorted_by_key(|&place| launch(place)) {
            places.sort_by_cached_key(|&place| launch(place));
        }
        self.places = places;
    }

    fn unpack(&self, place: u64) -> KernelRecord {
        let mut rest = &self.packed[place as usize..];
        let ([kernel, launch, start_ps, duration], mask): Head = read(&mut rest);
        let kernel = &self.kernels[kernel as usize];
        let mut fields = [0; FIELDS];
        fields.copy_from_slice(&kernel.first);
        for field in bits(mask) {
            fields[field] = fields[field].wrapping_add_signed(read(&mut rest));
        }
        let narrow = |field: usize| fields[field] as u32;
        KernelRecord {
            launch: self.given(launch as u32),
            process: ProcessId(narrow(0)),
            name: Arc::clone(&kernel.name),
            stream: narrow(1),
            gpu: Arc::clone(&kernel.gpu),
            grid: [narrow(2), narrow(3), narrow(4)],
            block: [narrow(5), narrow(6), narrow(7)],
            registers_per_thread: narrow(8),
            shared_bytes: narrow(9),
            start_ps,
            end_ps: start_ps.wrapping_add(duration),
            detail: if fields[12] & FUNCTIONAL == 0 { Detail::Timed } else { Detail::Functional },
            is_profiled: fields[12] & PROFILED != 0,
            parent: fields[13].checked_sub(1).map(|parent| self.given(parent as u32)),
            range: fields[14].checked_sub(1).map(|place| self.ranges[place as usize].clone()),
            cycles: fields[10],
            completed: fields[11] != 0,
            counters: KernelCounters::of_values(fields[OWN_FIELDS..].iter().copied()),
            ctas_unfinished: fields[15],
        }
    }
}

/// Kernel, launch, start, duration, and a bit for each field that differs from the kernel's first launch.
type Head = ([u64; 4], u128);

fn written(value: &impl Serialize, to: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, to).expect("a vector takes every byte")
}

fn read<T: DeserializeOwned>(from: &mut &[u8]) -> T {
    let (value, rest) = postcard::take_from_bytes(from).expect("`push` has written it");
    *from = rest;
    value
}

/// The places of the ones in a word, ascending.
fn bits(mut word: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (place < u128::BITS).then_some(place as usize)
    })
}

fn fields_of(record: &KernelRecord, parent: u64, range: u64) -> [u64; FIELDS] {
    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (record.grid, record.block);
    let (registers, shared) = (record.registers_per_thread, record.shared_bytes);
    let numbers =
        [record.process.0, record.stream, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, shared];
    let mut fields = [0; FIELDS];
    let (own, counters) = fields.split_at_mut(OWN_FIELDS);
    let (small, large) = own.split_at_mut(numbers.len());
    small.copy_from_slice(&numbers.map(u64::from));
    let functional = if record.detail.is_timed() { 0 } else { FUNCTIONAL };
    let how = functional | if record.is_profiled { PROFILED } else { 0 };
    large.copy_from_slice(&[record.cycles, u64::from(record.completed), how, parent, range, record.ctas_unfinished]);
    for (field, value) in counters.iter_mut().zip(record.counters.values()) {
        *field = value;
    }
    fields
}

impl FromIterator<KernelRecord> for KernelRecords {
    fn from_iter<I: IntoIterator<Item = KernelRecord>>(records: I) -> KernelRecords {
        let mut packed = KernelRecords::default();
        records.into_iter().for_each(|record| packed.push(&record));
        packed
    }
}

impl fmt::Debug for KernelRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::CtaCounters;

    fn record(launch: u32, name: &str) -> KernelRecord {
        KernelRecord {
            launch: LaunchId(launch),
            process: ProcessId(3),
            name: name.into(),
            stream: 7,
            gpu: "gpu[1]".into(),
            grid: [1, 2, 3],
            block: [4, 5, 6],
            registers_per_thread: 32,
            shared_bytes: 48 << 10,
            detail: Detail::Timed,
            is_profiled: false,
            range: None,
            parent: None,
            start_ps: 1_000_000_000 + u64::from(launch) * 5_000_000,
            end_ps: 1_000_000_000 + u64::from(launch) * 5_000_000 + 1_234_567,
            cycles: 1890 + u64::from(launch % 3),
            completed: true,
            counters: KernelCounters {
                ctas: CtaCounters { warps_launched: 80, inst_executed: 1000, ..CtaCounters::default() },
                ..KernelCounters::default()
            },
            ctas_unfinished: 0,
        }
    }

    #[test]
    fn every_field_comes_back() {
        let first = record(1, "scale");
        // Each field differs from the first launch's, to both sides and by as much as it can.
        let counters =
            KernelCounters::of_values((0..).map(|field| if field % 2 == 0 { u64::MAX - field } else { field }));
        let second = KernelRecord {
            launch: LaunchId(u32::MAX),
            process: ProcessId(0),
            stream: u32::MAX,
            grid: [u32::MAX, 0, 9],
            block: [0, u32::MAX, 1],
            registers_per_thread: 255,
            shared_bytes: 0,
            detail: Detail::Functional,
            is_profiled: true,
            range: Some(RangePath::read("step > aten::mm")),
            parent: Some(LaunchId(u32::MAX)),
            start_ps: u64::MAX - 1,
            end_ps: 5,
            cycles: u64::MAX,
            completed: false,
            counters,
            ctas_unfinished: u64::MAX,
            ..record(2, "scale")
        };
        let expected = [first.clone(), second, record(3, "add"), KernelRecord { gpu: "gpu[2]".into(), ..first }];
        let records: KernelRecords = expected.iter().cloned().collect();
        assert_eq!(records.iter().collect::<Vec<_>>(), expected);
        assert_eq!((records.len(), records.get(2), records.get(4)), (4, Some(expected[2].clone()), None));
        assert!(records.has_ranges() && !KernelRecords::from_iter([record(1, "scale")]).has_ranges());
    }

    #[test]
    fn a_hundred_thousand_launches_take_less_than_forty_bytes_each() {
        let records: KernelRecords = (0..100_000).map(|launch| record(launch, "scale")).collect();
        // 8 for the place, 5 numbers of at most 15 bytes together, 1 or 2 for the cycles; a vector has up to twice the room.
        assert!(records.bytes() < 2 * 40 * records.len(), "{} bytes", records.bytes());
        assert!(records.packed.len() + 8 * records.len() < 40 * records.len(), "{} bytes", records.packed.len());
    }

    #[test]
    fn launches_by_kernels_are_numbered_behind_those_of_the_host() {
        let mut records: KernelRecords = [1, 2].map(|launch| record(launch, "parent")).into_iter().collect();
        for (number, parent) in [(1, LaunchId::of_device(0, 0)), (0, LaunchId(2))] {
            let launch = LaunchId::of_device(0, number);
            records.push(&KernelRecord { launch, parent: Some(parent), ..record(0, "child") });
        }
        records.number_from_zero();
        records.sort_by_launch();
        let given: Vec<_> = records.iter().map(|it| (it.launch.0, it.parent.map(|parent| parent.0))).collect();
        assert_eq!(given, [(0, None), (1, None), (2, Some(1)), (3, Some(2))]);
    }

    #[test]
    fn launches_of_several_gpus_are_put_in_order() {
        let of = |launches: &[u32], name: &str| launches.iter().map(|launch| record(*launch, name)).collect();
        let (one, other): (KernelRecords, KernelRecords) = (of(&[1, 4, 2], "a"), of(&[3, 2], "b"));
        let mut all = KernelRecords::default();
        all.append(&one);
        all.append(&other);
        all.sort_by_launch();
        let mut from_zero = all.clone();
        from_zero.number_from_zero();
        from_zero.push(&record(4, "c"));
        assert_eq!(from_zero.iter().map(|record| record.launch.0).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 4]);
        let order: Vec<(u32, String)> = all.iter().map(|record| (record.launch.0, record.name.to_string())).collect();
        let expected =
            [(1, "a"), (2, "a"), (2, "b"), (3, "b"), (4, "a")].map(|(launch, name)| (launch, name.to_owned()));
        assert_eq!(order, expected);
    }
}
