//! The answers of NVML and CUPTI to tools, with a simulator that here is a server that answers by itself.

use balar_cudart::abi::arguments::Out;
use balar_cudart::cupti::activity::{
    cuptiActivityDisable, cuptiActivityEnable, cuptiActivityFlushAll, cuptiActivityGetNextRecord,
    cuptiActivityPopExternalCorrelationId, cuptiActivityPushExternalCorrelationId, cuptiActivityRegisterCallbacks_12,
};
use balar_cudart::nvml::{nvmlInit_v2, nvmlShutdown, state, system};
use balar_cudart::session::connection::done;
use balar_cudart::session::state::{process, visible_devices};
use balar_host::call::{Activity, ActivityWork, DeviceState, ManagementCall};
use balar_host::tunnel::{Control, ProgramEnd, SOCKET_VARIABLE, Server, ServerOptions};
use balar_host::{Call, CallResult, DeviceDescription, Host, Next, NodeDescription, Request, ThreadId};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// The simulator's side: it counts each thread's calls, as the host CPU does.
#[derive(Default)]
struct Simulator {
    calls: BTreeMap<ThreadId, u64>,
    /// Work of a process that is profiled and has not been told; `None` where none is.
    work: Option<Vec<Activity>>,
    questions: u64,
}

impl Simulator {
    fn answer(&mut self, request: &Request) -> CallResult {
        let calls = self.calls.entry(request.thread).or_default();
        *calls += 1;
        match &request.call {
            Call::Memset { .. } => {
                // 2 us after the call it begins, and lasts for 30 ns.
                let (thread, call, work) = (request.thread.0, *calls - 1, ActivityWork::Fill { bytes: 64, value: 7 });
                let (asked, start, end) = (5_000_000, 7_000_000, 7_030_000);
                self.work.iter_mut().for_each(|all| {
                    all.push(Activity { thread, call, device: 1, asked, start, end, work: work.clone() });
                });
                CallResult::None
            }
            Call::Management(ManagementCall::RecordActivity(wanted)) => {
                self.work = wanted.then(Vec::new);
                CallResult::None
            }
            Call::Management(ManagementCall::TakeActivity) => {
                CallResult::Activity(self.work.as_mut().map(std::mem::take).unwrap_or_default())
            }
            Call::Management(ManagementCall::DeviceState) => {
                self.questions += 1;
                // Between two questions a quarter of the time is a kernel's, and half of it any work's.
                let now = 1000 * self.questions;
                CallResult::DeviceState(DeviceState { now, kernels: now / 4, busy: now / 2, free: 60, total: 100 })
            }
            _ => CallResult::None,
        }
    }
}

#[test]
fn tools_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let control = Control::new(Arc::default(), None).expect("descriptors");
    let device = DeviceDescription { name: "Simulated".to_owned(), ..DeviceDescription::default() };
    let options = ServerOptions {
        node: NodeDescription { devices: vec![device; 3], ..NodeDescription::default() },
        page_bytes: 4096,
        arena: None,
        control: control.clone(),
        report: Arc::new(|text| panic!("{text}")),
    };
    let mut server = Server::listen(&socket, options).expect("listens");
    let serving = std::thread::spawn(move || {
        let mut simulator = Simulator::default();
        loop {
            match server.next() {
                Next::Call(request) => server.complete(request.thread, simulator.answer(&request)),
                Next::Waiting | Next::ProcessEnds { .. } => {}
                Next::End { .. } => return,
            }
        }
    });
    // SAFETY: no other thread looks at the environment.
    unsafe {
        std::env::set_var(SOCKET_VARIABLE, &socket);
        std::env::set_var(visible_devices::VARIABLE, "1");
    }
    management_asks_without_using_devices();
    work_is_recorded();
    control.program_ended(ProgramEnd::Exited(0));
    drop(serving);
}

fn management_asks_without_using_devices() {
    let (mut count, mut memory, mut used) = (0, [0_u64; 3], [9_u32; 2]);
    // SAFETY: all places outlive the calls, and have the layouts of NVML's structures.
    unsafe {
        assert_eq!(nvmlInit_v2(), 0);
        assert_eq!(system::nvmlDeviceGetCount_v2(Out::new(&raw mut count)), 0);
        let mut handle = std::mem::MaybeUninit::uninit();
        assert_eq!(system::nvmlDeviceGetHandleByIndex_v2(2, Out::new(handle.as_mut_ptr())), 0);
        let handle = handle.assume_init();
        assert_eq!(state::nvmlDeviceGetMemoryInfo(handle, Out::new((&raw mut memory).cast())), 0);
        for _ in 0..2 {
            assert_eq!(state::nvmlDeviceGetUtilizationRates(handle, Out::new((&raw mut used).cast())), 0);
        }
        assert_eq!(nvmlShutdown(), 0);
    }
    // All devices, whatever the program sees; total, free and used.
    assert_eq!((count, memory, used), (3, [100, 60, 40], [25, 50]));
    // A child may use CUDA, for this process has not.
    assert!(process::node().is_none());
}

/// The records that have come, by their kinds and bytes.
static RECORDS: Mutex<Vec<(u32, Vec<u8>)>> = Mutex::new(Vec::new());
/// Room for a record of a fill, and for no more than two of calls.
const BUFFER_BYTES: usize = 88;

unsafe extern "C" fn request(buffer: *mut *mut u8, bytes: *mut usize, most: *mut usize) {
    let new = vec![0_u64; BUFFER_BYTES / 8].leak();
    // SAFETY: the library passes three places.
    unsafe {
        buffer.write(new.as_mut_ptr().cast());
        bytes.write(BUFFER_BYTES);
        most.write(0);
    }
}

unsafe extern "C" fn complete(_context: *const c_void, _stream: u32, buffer: *mut u8, _bytes: usize, valid: usize) {
    let mut record: *mut u8 = std::ptr::null_mut();
    let mut found: Vec<*mut u8> = Vec::new();
    // SAFETY: the buffer is the one given, and the place outlives the call.
    while unsafe { cuptiActivityGetNextRecord(buffer, valid, Out::new(&raw mut record)) } == 0 {
        found.push(record);
    }
    let ends = found.iter().skip(1).copied().chain([buffer.wrapping_add(valid)]);
    for (start, end) in found.iter().zip(ends) {
        // SAFETY: records lie one after another in the buffer.
        let bytes = unsafe { std::slice::from_raw_parts(*start, end.addr() - start.addr()) };
        let kind = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        RECORDS.lock().expect("no panic").push((kind, bytes.to_vec()));
    }
}

fn work_is_recorded() {
    let mut number = 0;
    // SAFETY: the functions have these types, and the place outlives its call.
    unsafe {
        assert_eq!(cuptiActivityRegisterCallbacks_12(Some(request), Some(complete)), 0);
        for kind in [2, 5, 39] {
            assert_eq!(cuptiActivityEnable(kind), 0);
        }
        // `CUPTI_ERROR_INVALID_KIND`.
        assert_eq!(cuptiActivityEnable(0), 21);
        assert_eq!(done(&Call::StreamSynchronize { stream: 0 }), Ok(()));
        assert_eq!(cuptiActivityPushExternalCorrelationId(3, 77), 0);
        assert_eq!(done(&Call::memset(0x100, 7, 64, 0, true)), Ok(()));
        assert_eq!(cuptiActivityPopExternalCorrelationId(3, Out::new(&raw mut number)), 0);
        assert_eq!(cuptiActivityFlushAll(0), 0);
        for kind in [2, 5, 39] {
            assert_eq!(cuptiActivityDisable(kind), 0);
        }
    }
    assert_eq!(number, 77);
    let records = std::mem::take(&mut *RECORDS.lock().expect("no panic"));
    let word = |record: usize, at: usize| {
        let bytes = &records[record].1[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let time = |record: usize, at: usize| u64::from(word(record, at)) | u64::from(word(record, at + 4)) << 32;
    // The synchronisation; the number of the fill and its call, `cudaMemsetAsync` (51); then the fill.
    let kinds: Vec<u32> = records.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [5, 39, 5, 2]);
    assert_eq!((word(0, 4), word(2, 4), word(1, 8)), (131, 51, 77));
    // The number and the call have one correlation.
    assert_eq!(word(1, 16), word(2, 32));
    assert_eq!(word(2, 32), word(3, 44));
    assert!(time(2, 8) >= time(0, 16));
    // As long after its call as it was simulated, and for as long: offsets by the header of CUDA 12.9.
    assert_eq!((time(3, 16) - time(2, 8), time(3, 24) - time(3, 16)), (2000, 30));
    assert_eq!((time(3, 8), word(3, 4)), (64, 7));
    // The device by the number that the program knows it by.
    assert_eq!(word(3, 32), 0);
}
