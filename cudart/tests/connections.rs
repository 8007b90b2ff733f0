//! The library's connections to a simulator, which here is a server that answers by itself: threads that begin at the same
//! moment, a connection that fails, devices that the program does not see.

use balar_cudart::abi::arguments::Out;
use balar_cudart::runtime::device::{cudaDeviceEnablePeerAccess, cudaGetDeviceCount, cudaSetDevice};
use balar_cudart::runtime::device_properties::cudaGetDeviceProperties_13;
use balar_cudart::session::connection::{call, call_on, done};
use balar_cudart::session::state::visible_devices;
use balar_host::tunnel::{Control, ProgramEnd, SOCKET_VARIABLE, Server, ServerOptions};
use balar_host::{Bytes, Call, CallResult, CudaError, DeviceDescription, Host, Next, NodeDescription, Request};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Barrier, Mutex};

/// More than may be new at a time, and fewer than a process may have descriptors for two of each.
const THREADS: u64 = 300;

/// Answers a call. Of a result whose bytes are absent the server makes no reply: the connection of the call fails.
fn answer(request: &Request) -> CallResult {
    match request.call {
        Call::Malloc { bytes } => CallResult::Pointer(bytes),
        Call::MemoryInfo => CallResult::Data(Bytes::absent(5)),
        _ => CallResult::None,
    }
}

#[test]
fn connections_stand_alone() {
    // The name of the socket is longer than the address of one can be.
    let folder = tempfile::tempdir().expect("a folder");
    let long: PathBuf = folder.path().join("x".repeat(200));
    std::fs::create_dir(&long).expect("new");
    let socket = long.join("socket");
    let short = folder.path().join("short");
    std::os::unix::fs::symlink(&long, &short).expect("new");
    let control = Control::new(Arc::default(), None).expect("descriptors");
    let reports = Arc::new(Mutex::new(Vec::new()));
    let said = reports.clone();
    let device = |sm_count| DeviceDescription { sm_count, ..DeviceDescription::default() };
    let options = ServerOptions {
        node: NodeDescription {
            topology: "test".to_owned(),
            devices: vec![device(10), device(11), device(12)],
            ..NodeDescription::default()
        },
        page_bytes: 4096,
        arena: None,
        control: control.clone(),
        report: Arc::new(move |text| said.lock().expect("no panic").push(text.to_owned())),
    };
    let mut server = Server::listen(&socket, options).expect("listens");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = seen.clone();
    let serving = std::thread::spawn(move || {
        loop {
            match server.next() {
                Next::Call(request) => {
                    let result = answer(&request);
                    let thread = request.thread;
                    // Before the reply, after which the program looks.
                    requests.lock().expect("no panic").push((request.device, request.call));
                    server.complete(thread, result);
                }
                Next::Waiting | Next::ProcessEnds { .. } => {}
                Next::End { .. } => return,
            }
        }
    });
    // SAFETY: no other thread looks at the environment.
    unsafe {
        std::env::set_var(SOCKET_VARIABLE, &socket);
        std::env::set_var(visible_devices::VARIABLE, "2,0");
    }

    // As many connections that say nothing as may be new at a time, twice, keep nobody out.
    let silent: Vec<UnixStream> =
        (0..128).map(|_| UnixStream::connect(short.join("socket")).expect("connects")).collect();
    all_threads_begin_at_once();
    drop(silent);
    a_connection_that_fails_is_replaced();
    assert_eq!(reports.lock().expect("no panic").len(), 1, "{reports:?}");
    seen.lock().expect("no panic").clear();
    the_program_has_its_own_numbers();
    let expected = [
        (0, Call::DeviceSynchronize),
        (2, Call::PeerAccess { peer: 0, enabled: true }),
        (0, Call::PeerAccess { peer: 2, enabled: true }),
    ];
    assert_eq!(*seen.lock().expect("no panic"), expected);

    // The main thread of the test keeps its connection: the server ends with its program.
    control.program_ended(ProgramEnd::Exited(0));
    drop(serving);
}

fn all_threads_begin_at_once() {
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                assert_eq!(call(&Call::Malloc { bytes: number }), Ok(CallResult::Pointer(number)));
            });
        }
    });
}

fn a_connection_that_fails_is_replaced() {
    assert_eq!(done(&Call::DeviceSynchronize), Ok(()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(call(&Call::MemoryInfo), Err(CudaError::DevicesUnavailable));
            assert_eq!(call(&Call::Malloc { bytes: 7 }), Ok(CallResult::Pointer(7)));
        });
    });
    assert_eq!(done(&Call::DeviceSynchronize), Ok(()));
}

fn the_program_has_its_own_numbers() {
    let mut count = 0;
    let mut properties = Vec::new();
    // SAFETY: all places outlive the calls.
    unsafe {
        assert_eq!(cudaGetDeviceCount(Out::new(&raw mut count)), 0);
        for device in 0..count {
            let mut place = std::mem::MaybeUninit::uninit();
            assert_eq!(cudaGetDeviceProperties_13(Out::new(place.as_mut_ptr()), device), 0);
            properties.push(place.assume_init());
        }
        assert_eq!(call_on(1, &Call::DeviceSynchronize), Ok(CallResult::None));
        assert_eq!(cudaDeviceEnablePeerAccess(1, 0), 0);
        assert_eq!(cudaSetDevice(1), 0);
        assert_eq!(cudaDeviceEnablePeerAccess(0, 0), 0);
        // There is a third device, but not for the program: 101 is `cudaErrorInvalidDevice`.
        assert_eq!(cudaSetDevice(2), 101);
    }
    assert_eq!(count, 2);
    let found: Vec<_> = properties.iter().map(|it| (it.multi_processor_count, it.pci_bus_id, it.uuid)).collect();
    assert_eq!(found, [(12, 3, visible_devices::uuid(2)), (10, 1, visible_devices::uuid(0))]);
}
