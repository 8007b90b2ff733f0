//! Records of the process's work, as bytes.

use super::subscriber::{context_number, thread_number};
use crate::abi::cupti::{
    Api, Copy, ExternalCorrelation, Fill, Kernel, Synchronization, copy_kind, function_number, kind, memory_kind,
    record_bytes, synchronization_type,
};
use crate::session::connection::activity::MadeCall;
use crate::session::connection::translation;
use balar_host::call::{Activity, ActivityWork, CallClass, CopyPlace};
use balar_host::memory::{Place, is_pinned, place_of};
use bytemuck::{Pod, Zeroable, bytes_of};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

/// The number that CUPTI gives the default stream; others follow.
const DEFAULT_STREAM: u32 = 7;
/// No stream or event.
const NONE: u32 = u32::MAX;

/// The kinds of records that a profiler wants, and the version of CUDA's records.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// A bit for each kind.
    pub kinds: u64,
    /// The major version of CUDA.
    pub major: u32,
}

impl Wanted {
    /// Is a kind of record wanted?
    pub fn has(self, kind: u32) -> bool {
        self.kinds & 1 << kind != 0
    }

    /// A record of this version, whose beginning this is.
    fn record<T: Pod>(self, kind: u32, record: &T) -> Vec<u8> {
        let mut bytes = bytes_of(record).to_vec();
        bytes.resize(record_bytes(kind, self.major).unwrap_or(bytes.len()), 0);
        bytes
    }
}

/// Makes records of calls and of the work that they asked for.
#[derive(Debug, Default)]
pub struct Records {
    /// Calls that have asked for work, or may have.
    calls: BTreeMap<(u32, u64), MadeCall>,
    /// The end of the last work of each device and stream, nanoseconds.
    ends: BTreeMap<(u32, u32), u64>,
}

impl Records {
    /// The records of these calls, and of work of these and earlier ones.
    pub fn of(&mut self, wanted: Wanted, calls: Vec<MadeCall>, work: &[Activity]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for call in calls {
            self.call(wanted, &call, &mut records);
            if matches!(call.class, CallClass::Launch | CallClass::GraphLaunch | CallClass::Copy) {
                self.calls.insert(call.number, call);
            }
        }
        for activity in work {
            records.extend(self.work(wanted, activity));
        }
        records
    }

    fn call(&self, wanted: Wanted, call: &MadeCall, records: &mut Vec<Vec<u8>>) {
        let MadeCall { name, start, end, correlation, .. } = *call;
        if wanted.has(kind::EXTERNAL_CORRELATION) {
            for &(external_kind, external) in &call.external {
                let record = ExternalCorrelation {
                    kind: kind::EXTERNAL_CORRELATION,
                    external_kind,
                    external,
                    correlation,
                    reserved: 0,
                };
                records.push(wanted.record(kind::EXTERNAL_CORRELATION, &record));
            }
        }
        if let Some(function) = function_number(name).filter(|_| wanted.has(kind::RUNTIME)) {
            let (process, thread) = (std::process::id(), thread_number(call.thread));
            let record = Api { kind: kind::RUNTIME, function, start, end, process, thread, correlation, result: 0 };
            records.push(wanted.record(kind::RUNTIME, &record));
        }
        if call.class == CallClass::Synchronisation && wanted.has(kind::SYNCHRONIZATION) {
            let record = Synchronization {
                kind: kind::SYNCHRONIZATION,
                synchronization: synchronization_type(name),
                start,
                end,
                correlation,
                context: context_number(call.device),
                stream: NONE,
                event: NONE,
            };
            records.push(wanted.record(kind::SYNCHRONIZATION, &record));
        }
    }

    /// The record of work whose call is known.
    fn work(&mut self, wanted: Wanted, activity: &Activity) -> Option<Vec<u8>> {
        let call = self.calls.get(&(activity.thread, activity.call))?;
        let device = translation::of_program(activity.device);
        let stream = DEFAULT_STREAM + call.stream;
        // As long after its call as was simulated, and not before the work ahead of it in its stream has ended.
        let nanoseconds = |from: u64, to: u64| to.saturating_sub(from) / 1000;
        let last = self.ends.entry((device, stream)).or_default();
        let start = call.start.saturating_add(nanoseconds(activity.asked, activity.start)).max(*last);
        let end = start.saturating_add(nanoseconds(activity.start, activity.end));
        *last = end;
        let (context, correlation) = (context_number(device), call.correlation);
        let does_not_wait = call.name.ends_with("Async");
        match &activity.work {
            ActivityWork::Kernel {
                name,
                grid,
                block,
                registers,
                static_shared_bytes,
                dynamic_shared_bytes,
                local_bytes,
            } => {
                let kind = if wanted.has(kind::KERNEL) { kind::KERNEL } else { kind::CONCURRENT_KERNEL };
                let kernel = Kernel {
                    kind,
                    registers: u16::try_from(*registers).unwrap_or(u16::MAX),
                    start,
                    end,
                    completed: end,
                    device,
                    context,
                    stream,
                    grid: *grid,
                    block: *block,
                    static_shared: *static_shared_bytes,
                    dynamic_shared: *dynamic_shared_bytes,
                    local: *local_bytes,
                    correlation,
                    grid_id: i64::from(correlation),
                    name: kept(name).as_ptr().addr() as u64,
                    ..Kernel::zeroed()
                };
                wanted.has(kind).then(|| wanted.record(kind, &kernel))
            }
            ActivityWork::Copy { bytes, source, destination } => {
                let copy = Copy {
                    kind: kind::MEMCPY,
                    copy_kind: copy_between(*source, *destination),
                    source: memory(*source),
                    destination: memory(*destination),
                    flags: u8::from(does_not_wait),
                    bytes: *bytes,
                    start,
                    end,
                    device,
                    context,
                    stream,
                    correlation,
                    ..Copy::zeroed()
                };
                wanted.has(kind::MEMCPY).then(|| wanted.record(kind::MEMCPY, &copy))
            }
            ActivityWork::Fill { bytes, value } => {
                let fill = Fill {
                    kind: kind::MEMSET,
                    value: *value,
                    bytes: *bytes,
                    start,
                    end,
                    device,
                    context,
                    stream,
                    correlation,
                    flags: u16::from(does_not_wait),
                    memory: u16::from(memory_kind::DEVICE),
                    ..Fill::zeroed()
                };
                wanted.has(kind::MEMSET).then(|| wanted.record(kind::MEMSET, &fill))
            }
        }
    }
}

fn memory(place: CopyPlace) -> u8 {
    match place {
        CopyPlace::Pageable => memory_kind::PAGEABLE,
        CopyPlace::Node(address) => match place_of(address) {
            Place::Device(_) => memory_kind::DEVICE,
            _ if is_pinned(address) => memory_kind::PINNED,
            _ => memory_kind::MANAGED,
        },
    }
}

fn copy_between(source: CopyPlace, destination: CopyPlace) -> u8 {
    let device = |place| match place {
        CopyPlace::Node(address) => match place_of(address) {
            Place::Device(device) => Some(device),
            _ => None,
        },
        CopyPlace::Pageable => None,
    };
    match (device(source), device(destination)) {
        (None, Some(_)) => copy_kind::HOST_TO_DEVICE,
        (Some(_), None) => copy_kind::DEVICE_TO_HOST,
        (Some(source), Some(destination)) if source == destination => copy_kind::DEVICE_TO_DEVICE,
        (Some(_), Some(_)) => copy_kind::PEER_TO_PEER,
        (None, None) => copy_kind::HOST_TO_HOST,
    }
}

/// The name of a kernel as records point to it: for as long as the process lives.
fn kept(name: &Arc<str>) -> &'static CStr {
    static NAMES: Mutex<BTreeMap<Arc<str>, &'static CStr>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names
        .entry(Arc::clone(name))
        .or_insert_with(|| CString::new(&**name).map_or(c"", |name| Box::leak(name.into_boxed_c_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::memory::{HOST_BASE, gpu_base};

    fn word(record: &[u8], at: usize) -> u32 {
        bytemuck::pod_read_unaligned(&record[at..at + 4])
    }

    fn long(record: &[u8], at: usize) -> u64 {
        bytemuck::pod_read_unaligned(&record[at..at + 8])
    }

    fn call(number: u64, class: CallClass, name: &'static str, start: u64, correlation: u32) -> MadeCall {
        let external = vec![(3, 40 + u64::from(correlation))];
        let (device, stream, thread) = (0, 2, (0x1_0000_0009, 5));
        MadeCall {
            number: (1, number),
            name,
            class,
            device,
            stream,
            thread,
            start,
            end: start + 5,
            correlation,
            external,
        }
    }

    fn kernel(call: u64, start: u64, end: u64) -> Activity {
        let work = ActivityWork::Kernel {
            name: "k".into(),
            grid: [4, 2, 1],
            block: [32, 1, 1],
            registers: 40,
            static_shared_bytes: 8,
            dynamic_shared_bytes: 16,
            local_bytes: 0,
        };
        Activity { thread: 1, call, device: 0, asked: 1_000_000, start, end, work }
    }

    /// Offsets by the header of CUDA 12.9.
    #[test]
    fn work_stands_beside_its_call_for_as_long_as_it_was_simulated() {
        let kinds = [kind::CONCURRENT_KERNEL, kind::RUNTIME, kind::EXTERNAL_CORRELATION];
        let wanted = Wanted { kinds: kinds.iter().fold(0, |kinds, kind| kinds | 1 << kind), major: 12 };
        let mut records = Records::default();
        let calls = vec![
            call(0, CallClass::Launch, "cudaLaunchKernel", 100, 1),
            call(1, CallClass::Launch, "cudaLaunchKernel", 110, 2),
        ];
        // Simulated: from 2 us after the first call on for 30 ns; the second one for 5 ns, which its stream has come to long before.
        let work = [kernel(0, 3_000_000, 3_030_000), kernel(1, 1_000_000, 1_005_000)];
        let made = records.of(wanted, calls, &work);
        let lengths: Vec<(u32, usize)> = made.iter().map(|record| (word(record, 0), record.len())).collect();
        assert_eq!(lengths, [(39, 24), (5, 40), (39, 24), (5, 40), (10, 208), (10, 208)]);
        assert_eq!((word(&made[0], 4), long(&made[0], 8), word(&made[0], 16)), (3, 41, 1));
        // cudaLaunchKernel is number 211, and threads are known by half of their number.
        assert_eq!((word(&made[1], 4), word(&made[1], 28), word(&made[1], 32)), (211, 9, 1));
        let times = |record: &[u8]| (long(record, 16), long(record, 24));
        assert_eq!([times(&made[4]), times(&made[5])], [(2100, 2130), (2130, 2135)]);
        assert_eq!((word(&made[4], 48), word(&made[4], 52), word(&made[4], 92)), (9, 4, 1));
        assert!(made[4][200..].iter().all(|byte| *byte == 0));
        // Work of an unknown call is left out; work of known calls is kept.
        assert_eq!(records.of(wanted, Vec::new(), &[kernel(7, 0, 1), kernel(0, 4_000_000, 4_000_000)]).len(), 1);
    }

    #[test]
    fn copies_have_the_kinds_of_their_ends() {
        let (device, other, pinned) = (gpu_base(0), gpu_base(1), HOST_BASE);
        let node = CopyPlace::Node;
        assert_eq!(copy_between(CopyPlace::Pageable, node(device)), 1);
        assert_eq!(copy_between(node(device), node(pinned)), 2);
        assert_eq!(copy_between(node(device), node(device + 8)), 8);
        assert_eq!(copy_between(node(device), node(other)), 10);
        assert_eq!([CopyPlace::Pageable, node(pinned), node(device)].map(memory), [1, 2, 3]);
    }
}
