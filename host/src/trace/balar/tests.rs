//! Balar's traces as programs, before a device that keeps bytes.

use super::executable::tests::{container, executable};
use super::*;
use crate::call::CopyEnd;
use crate::call::{CallResult, ModuleFunction};
use crate::{Call, CudaError, Host, Next, Verification};
use std::fs;
use std::path::Path;

const TRACE: &str = "\
CUDA memalloc: dptr: dptr-0, size: 8
CUDA memalloc: dptr: dptr-1, size: 16

CUDA memcpyH2D detected: device_ptr: dptr-1+4, host_ptr: 0x1, size: 8, data_file: cuMemcpyH2D-0-8.data, addr: 0x0
CUDA cu kernel launch detected: name: void f<int, ns::g>, ptx_name: _Z1fv, gdx: 1, gdy: 2, gdz: 3, bdx: 4, bdy: 5, bdz: 6, \
sharedBytes: 7, CUstream: 0x0, args: dptr-1+8/8/-2/4/dptr-0/8/
CUDA free detected: dptr: dptr-0
CUDA memcpyD2H detected: host_ptr: 0x2, device_ptr: dptr-1, size: 16, data_file: cuMemcpyD2H-0-16.data
";

fn write(folder: &Path) {
    fs::write(folder.join("cuda_calls.trace"), TRACE).expect("written");
    fs::write(folder.join("cuMemcpyH2D-0-8.data"), b"abcdefgh").expect("written");
    fs::write(folder.join("cuMemcpyD2H-0-16.data"), b"\0\0\0\0abcdefgh\0\0\0\0").expect("written");
    let section = [container(b"first..."), container(b"second..")].concat();
    fs::write(folder.join("program"), executable(".nv_fatbin", &section)).expect("written");
}

const FIRST: u64 = 0x7000_0000_0100;

/// Runs a trace; gives the calls that it makes.
fn simulate(host: &mut dyn Host, fails: Option<&str>) -> Vec<Call> {
    let mut memory = [0u8; 64];
    let (mut calls, mut allocated) = (Vec::new(), 0);
    loop {
        let call = match host.next() {
            Next::Call(request) => request.call,
            Next::End { error: None } => return calls,
            other => panic!("{other:?}"),
        };
        let result = match &call {
            call if fails == Some(call.name()) => CallResult::Error(CudaError::LaunchFailure),
            Call::ModuleLoad { images, .. } if images[0].to_vec().ends_with(b"first...") => {
                CallResult::Error(CudaError::NoKernelImageForDevice)
            }
            Call::ModuleLoad { .. } => CallResult::Module {
                module: 2,
                functions: vec![ModuleFunction { name: "_Z1fv".into(), parameters: vec![(0, 8), (8, 4), (16, 8)] }],
                variables: Vec::new(),
            },
            Call::Malloc { bytes } => {
                allocated += bytes;
                CallResult::Pointer(FIRST + allocated - bytes)
            }
            Call::Copy {
                destination: CopyEnd::Memory { address: destination, .. },
                source: CopyEnd::Bytes(data),
                ..
            } => {
                let data = data.to_vec();
                memory[(destination - FIRST) as usize..][..data.len()].copy_from_slice(&data);
                CallResult::None
            }
            Call::Copy {
                destination: CopyEnd::Bytes(absent), source: CopyEnd::Memory { address: source, .. }, ..
            } => CallResult::Data(memory[(source - FIRST) as usize..][..absent.len() as usize].to_vec().into()),
            _ => CallResult::None,
        };
        let ended = matches!(call, Call::Exit { .. });
        calls.push(call);
        if !ended {
            assert_eq!(host.next(), Next::Waiting);
            host.complete(crate::ThreadId(0), result);
        }
    }
}

#[test]
fn a_trace_makes_its_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let mut host = BalarReplay::new(BalarTrace::open(folder.path(), &[]).expect("a trace"));
    let calls = simulate(&mut host, None);
    let names: Vec<&str> = calls.iter().map(Call::name).collect();
    let expected = [
        "cuModuleLoadData",
        "cuModuleLoadData",
        "cudaMalloc",
        "cudaMalloc",
        "cudaMemcpy",
        "cudaLaunchKernel",
        "cudaFree",
        "cudaMemcpy",
        "cudaDeviceSynchronize",
        "exit",
    ];
    assert_eq!(names, expected);
    let Call::Launch(launch) = &calls[5] else { panic!("a launch") };
    assert_eq!((launch.grid, launch.block, launch.shared_memory_bytes), ([1, 2, 3], [4, 5, 6], 7));
    assert_eq!(launch.function.module, 2);
    let mut parameters = (FIRST + 16).to_le_bytes().to_vec();
    parameters.extend((-2i32).to_le_bytes());
    parameters.extend([0; 4]);
    parameters.extend(FIRST.to_le_bytes());
    assert_eq!(launch.parameters, parameters);
    assert_eq!(host.verification(), Verification::Passed);
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    fs::write(folder.path().join("cuda_calls.trace"), format!("\u{feff}{TRACE}")).expect("written");
    let mut host = BalarReplay::new(BalarTrace::open(folder.path(), &[]).expect("a trace"));
    assert_eq!(simulate(&mut host, None).len(), 10, "as many as without it");
}

#[test]
fn other_bytes_are_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    fs::write(folder.path().join("cuMemcpyD2H-0-16.data"), b"\0\0\0\0abcXefgh\0\0\0\0").expect("written");
    let mut host = BalarReplay::new(BalarTrace::open(folder.path(), &[]).expect("a trace"));
    simulate(&mut host, None);
    let Verification::Failed(message) = host.verification() else { panic!("other bytes") };
    let said = "the device's bytes are not those of cuMemcpyD2H-0-16.data, after the kernel _Z1fv: offset 7: expected 0x58, found 0x64";
    assert!(message.contains("cuda_calls.trace:7") && message.contains(said), "{message}");
}

#[test]
fn calls_that_fail_end_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    for (fails, said) in [
        ("cudaMalloc", "cuda_calls.trace:1: memalloc of 8 bytes as dptr-0"),
        ("cudaLaunchKernel", "cuda_calls.trace:5: kernel launch of _Z1fv"),
        ("cudaDeviceSynchronize", "cudaDeviceSynchronize after the last line (last kernel: _Z1fv)"),
    ] {
        let mut host = BalarReplay::new(BalarTrace::open(folder.path(), &[]).expect("a trace"));
        let calls = simulate(&mut host, Some(fails));
        let Some(Call::Exit { error: Some(failure) }) = calls.last() else { panic!("{calls:?}") };
        assert!(failure.call.contains(said) && failure.error == CudaError::LaunchFailure, "{failure}");
    }
}

/// Whatever a trace says, it is read, or refused with the place.
#[test]
fn changed_traces_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let path = folder.path().join("cuda_calls.trace");
    let mut refused = 0;
    for at in 0..TRACE.len() {
        for with in ["", ",", ":", "/", "0", "é", "\n"] {
            let changed = format!("{}{with}{}", &TRACE[..at], &TRACE[at + 1..]);
            fs::write(&path, &changed).expect("written");
            match BalarTrace::open(folder.path(), &[]) {
                Ok(_) => {}
                Err(BalarError::Line(error)) => {
                    refused += 1;
                    assert!(changed.get(error.at.clone()).is_some(), "byte {at} as {with:?}: {error:?}");
                    let line = changed[..error.at.start].matches('\n').count() + 1;
                    assert_eq!(line, error.line, "byte {at} as {with:?}: {error:?}");
                }
                Err(error) => panic!("byte {at} as {with:?}: {error}"),
            }
        }
    }
    assert!(refused > 500, "{refused}");
}
