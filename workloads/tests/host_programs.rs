//! Host programs against a device that copies memory but runs no kernel, or only `vectorAdd`.

use std::collections::BTreeMap;

use balar_host::call::CopyEnd;
use balar_host::call::Launch;
use balar_host::{Call, CallResult, CudaError, HostProgram, Verification};
use balar_workloads::{Compiler, Descriptor, WorkloadError, find, workloads};

/// What a kernel does to the memory of the device.
type Kernel = fn(&mut Device, &Call);

/// A device with memory, without time.
#[derive(Default)]
struct Device {
    memory: BTreeMap<u64, Vec<u8>>,
    streams: u32,
    clock: u64,
    /// Fails calls of this name.
    failing: Option<(&'static str, CudaError)>,
}

impl Device {
    /// The bytes at an address: an allocation's bytes from there on.
    fn at(&mut self, address: u64) -> &mut [u8] {
        let (base, bytes) = self.memory.range_mut(..=address).next_back().expect("an allocated address");
        &mut bytes[(address - base) as usize..]
    }

    fn run(&mut self, call: &Call, program: &mut dyn HostProgram, kernel: Kernel) -> CallResult {
        if let Some((name, error)) = self.failing
            && name == call.name()
        {
            return CallResult::Error(error);
        }
        match call {
            Call::Malloc { bytes } => {
                let next = self.memory.last_key_value().map_or(0x7000_0000, |(base, bytes)| base + bytes.len() as u64);
                let address = next.next_multiple_of(256);
                self.memory.insert(address, vec![0xcd; *bytes as usize]);
                return CallResult::Pointer(address);
            }
            Call::Free { pointer } => assert!(self.memory.contains_key(pointer), "free of {pointer:#x}"),
            Call::Copy {
                destination: CopyEnd::Memory { address: destination, .. },
                source: CopyEnd::Bytes(data),
                ..
            } => {
                self.at(*destination)[..data.len() as usize].copy_from_slice(&data.to_vec());
            }
            Call::Copy {
                destination: CopyEnd::Memory { address: destination, .. },
                source: CopyEnd::Memory { address: source, .. },
                shape,
                ..
            } => {
                let data = self.at(*source)[..shape.width as usize].to_vec();
                self.at(*destination)[..data.len()].copy_from_slice(&data);
            }
            Call::Memset { pointer, value, shape, .. } => self.at(*pointer)[..shape.width as usize].fill(*value as u8),
            Call::Copy {
                destination: CopyEnd::Bytes(absent),
                source: CopyEnd::Memory { address: source, .. },
                transfer,
                asynchronous,
                ..
            } => {
                let data = self.at(*source)[..absent.len() as usize].to_vec();
                if !asynchronous {
                    return CallResult::Data(data.into());
                }
                program.receive(*transfer, data.into());
            }
            Call::Launch(_) => kernel(self, call),
            Call::StreamCreate { .. } => {
                self.streams += 1;
                return CallResult::Stream(self.streams);
            }
            Call::ReadClock => {
                self.clock += 1_000_000;
                return CallResult::Time { picoseconds: self.clock };
            }
            _ => {}
        }
        CallResult::None
    }

    /// Runs a program to its end; gives its calls, the last one an exit.
    fn execute(&mut self, program: &mut dyn HostProgram, kernel: Kernel) -> Vec<Call> {
        let mut calls = Vec::new();
        let mut result = CallResult::Start;
        loop {
            let call = program.next(result);
            calls.push(call.clone());
            if matches!(call, Call::Exit { .. }) {
                return calls;
            }
            result = self.run(&call, program, kernel);
        }
    }
}

fn no_kernel(_: &mut Device, _: &Call) {}

fn vector_add(device: &mut Device, call: &Call) {
    let Call::Launch(Launch { function, grid, block, parameters, .. }) = call else {
        panic!("not a launch: {call:?}");
    };
    assert_eq!(&*function.name, "vectorAdd");
    let word = |index: usize| u64::from_le_bytes(parameters[8 * index..][..8].try_into().unwrap());
    let count = u32::from_le_bytes(parameters[24..28].try_into().unwrap());
    assert_eq!(parameters.len(), 28);
    assert!(u64::from(grid[0]) * u64::from(block[0]) >= u64::from(count));
    for index in 0..u64::from(count) {
        let mut load = |base: u64| f32::from_le_bytes(device.at(base + 4 * index)[..4].try_into().unwrap());
        let sum = load(word(0)) + load(word(1));
        device.at(word(2) + 4 * index)[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

fn program(name: &str, parameters: &str) -> Box<dyn HostProgram> {
    let workload = find(name).unwrap();
    workload.program(&workload.parse_parameters(parameters).unwrap()).unwrap()
}

fn launches(calls: &[Call]) -> Vec<(&str, [u32; 3], [u32; 3])> {
    let mut launches = Vec::new();
    for call in calls {
        if let Call::Launch(launch) = call {
            launches.push((&*launch.function.name, launch.grid, launch.block));
        }
    }
    launches
}

#[test]
fn a_right_result_passes() {
    for parameters in ["elements=1", "elements=257", "elements=1000,block=32,seed=9"] {
        let mut program = program("vectoradd", parameters);
        assert_eq!(*program.verification(), Verification::NotChecked);
        Device::default().execute(program.as_mut(), vector_add);
        assert_eq!(*program.verification(), Verification::Passed);
    }
}

#[test]
fn a_kernel_that_does_nothing_fails_every_workload() {
    for Descriptor { name, small, .. } in workloads() {
        let mut program = program(name, small);
        let calls = Device::default().execute(program.as_mut(), no_kernel);
        assert_eq!(calls.last(), Some(&Call::Exit { error: None }), "{name}");
        assert_eq!(program.verification().verified(), Some(false), "{name}");
    }
}

#[test]
fn one_wrong_bit_is_reported_with_its_place() {
    fn almost(device: &mut Device, call: &Call) {
        vector_add(device, call);
        let Call::Launch(Launch { parameters, .. }) = call else { unreachable!() };
        let result = u64::from_le_bytes(parameters[16..24].try_into().unwrap());
        device.at(result + 4 * 123)[0] ^= 1;
    }
    let mut program = program("vectoradd", "elements=1000");
    Device::default().execute(program.as_mut(), almost);
    let Verification::Failed(message) = program.verification() else {
        panic!("passed");
    };
    assert!(message.starts_with("c[123] is ") && message.ends_with("1 of 1000 values differ"), "{message}");
}

#[test]
fn every_kernel_launched_is_in_the_ptx_with_the_parameters_given() {
    for workload in workloads() {
        let calls = Device::default().execute(program(workload.name, workload.small).as_mut(), no_kernel);
        for call in &calls {
            let Call::Launch(Launch { function, parameters, .. }) = call else { continue };
            let kernel = &function.name;
            for code in workload.code {
                let entry = format!(".visible .entry {kernel}(");
                let (_, rest) = code.text.split_once(&entry).unwrap_or_else(|| panic!("{} has no {kernel}", code.file));
                let (declarations, _) = rest.split_once(')').unwrap();
                let parameter = |line: &str| match line.split_once('[') {
                    // A struct of pointers.
                    Some((_, length)) => (8, length.trim_end().trim_end_matches(']').parse().expect("a length")),
                    None if line.contains("64 ") => (8, 8),
                    None => (4, 4),
                };
                let declared = declarations.split(',').filter(|line| line.contains(".param")).map(parameter);
                let size = declared.fold(0usize, |end, (alignment, size)| end.next_multiple_of(alignment) + size);
                assert_eq!(parameters.len(), size, "{kernel} of {}", code.file);
            }
        }
    }
}

#[test]
fn device_memory_is_freed_and_streams_are_destroyed() {
    for Descriptor { name, small, .. } in workloads() {
        let calls = Device::default().execute(program(name, small).as_mut(), no_kernel);
        let count = |name: &str| calls.iter().filter(|call| call.name() == name).count();
        assert_eq!(count("cudaMalloc"), count("cudaFree"), "{name}");
        assert_eq!(count("cudaStreamCreate"), count("cudaStreamDestroy"), "{name}");
    }
}

#[test]
fn lud_of_256_has_46_launches() {
    let calls = Device::default().execute(program("lud", "size=256").as_mut(), no_kernel);
    let launches = launches(&calls);
    assert_eq!(launches.len(), 46);
    let count = |name: &str| launches.iter().filter(|(kernel, _, _)| *kernel == name).count();
    assert_eq!((count("lud_diagonal"), count("lud_perimeter"), count("lud_internal")), (16, 15, 15));
    assert_eq!(launches[0], ("lud_diagonal", [1, 1, 1], [16, 1, 1]));
    assert_eq!(launches[1], ("lud_perimeter", [15, 1, 1], [32, 1, 1]));
    assert_eq!(launches[2], ("lud_internal", [15, 15, 1], [16, 16, 1]));
    assert_eq!(launches[45], ("lud_diagonal", [1, 1, 1], [16, 1, 1]));
}

#[test]
fn vectoradd_is_the_published_one_by_default() {
    let calls = Device::default().execute(program("vectoradd", "").as_mut(), no_kernel);
    assert_eq!(launches(&calls), [("vectorAdd", [640, 1, 1], [256, 1, 1])]);
    let names: Vec<_> = calls.iter().map(Call::name).collect();
    let expected = ["cudaMalloc", "cudaMemcpy", "cudaMalloc", "cudaMemcpy", "cudaMalloc", "cudaLaunchKernel"];
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["cudaMemcpy", "cudaFree", "cudaFree", "cudaFree", "exit"]);
}

/// What the kernel `row_walk` does, computed from what lies in the device's memory.
fn walk_rows(device: &mut Device, call: &Call) {
    let Call::Launch(Launch { function, grid, block, parameters, .. }) = call else {
        panic!("not a launch: {call:?}");
    };
    assert_eq!(&*function.name, "row_walk");
    let pointer = |index: usize| u64::from_le_bytes(parameters[8 * index..][..8].try_into().unwrap());
    let number = |at: usize| u64::from(u32::from_le_bytes(parameters[at..][..4].try_into().unwrap()));
    let (rows, columns) = (number(24), number(28));
    assert!(u64::from(grid[0]) * u64::from(block[0]) >= rows, "a thread for each row");
    for row in 0..rows {
        let mut float = |address: u64| f32::from_le_bytes(device.at(address)[..4].try_into().unwrap());
        let mut sum = 0.0f32;
        for column in 0..columns {
            sum = float(pointer(0) + 4 * (row * columns + column)).mul_add(float(pointer(1) + 4 * column), sum);
        }
        device.at(pointer(2) + 4 * row)[..4].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn row_walk_adds_up_its_rows_in_order() {
    for parameters in ["rows=1,columns=1", "rows=33,columns=7,block=32", "rows=64,columns=100,block=48,seed=3"] {
        let mut program = program("row_walk", parameters);
        Device::default().execute(program.as_mut(), walk_rows);
        assert_eq!(*program.verification(), Verification::Passed, "{parameters}");
    }
}

#[test]
fn row_walk_has_a_thread_for_each_row_and_4_mib_of_matrix_by_default() {
    let calls = Device::default().execute(program("row_walk", "").as_mut(), no_kernel);
    assert_eq!(launches(&calls), [("row_walk", [16, 1, 1], [256, 1, 1])]);
    assert_eq!(calls[0], Call::Malloc { bytes: 4096 * 256 * 4 });
}

#[test]
fn concurrent_uses_every_stream_asynchronously() {
    let calls = Device::default().execute(program("concurrent", "streams=3").as_mut(), no_kernel);
    for wanted in 1..=3 {
        let in_stream = |call: &&Call| match call {
            Call::Launch(Launch { stream, .. }) | Call::StreamSynchronize { stream } => *stream == wanted,
            Call::Copy { stream, asynchronous, .. } | Call::Memset { stream, asynchronous, .. } => {
                *stream == wanted && *asynchronous
            }
            _ => false,
        };
        // Upload, memset, two kernels, copy within the device, download, synchronisation.
        assert_eq!(calls.iter().filter(in_stream).count(), 7);
    }
}

#[test]
fn pointer_chase_uploads_one_cycle_through_all_nodes() {
    for order in ["random", "sequential"] {
        let parameters = format!("working_set=8KiB,stride=64,steps=128,warm_up_passes=0,order={order}");
        let calls = Device::default().execute(program("pointer_chase", &parameters).as_mut(), no_kernel);
        let upload = calls.iter().find_map(|call| match call {
            Call::Copy {
                destination: CopyEnd::Memory { address: destination, .. },
                source: CopyEnd::Bytes(data),
                ..
            } => Some((*destination, data.to_vec())),
            _ => None,
        });
        let (base, data) = upload.unwrap();
        assert_eq!(data.len(), 8192);
        let mut offset = 0;
        for step in 1..=128 {
            offset = (u64::from_le_bytes(data[offset..][..8].try_into().unwrap()) - base) as usize;
            assert_eq!(offset == 0, step == 128, "{order} after {step} steps");
            assert!(order == "random" || offset == step % 128 * 64);
        }
    }
}

#[test]
fn pointer_chase_reports_cycles_per_access() {
    fn chase(device: &mut Device, call: &Call) {
        let Call::Launch(Launch { parameters, .. }) = call else { unreachable!() };
        let word = |at: usize| u64::from_le_bytes(parameters[at..][..8].try_into().unwrap());
        let steps = u32::from_le_bytes(parameters[8..12].try_into().unwrap())
            + u32::from_le_bytes(parameters[12..16].try_into().unwrap());
        let end = (0..steps).fold(word(0), |p, _| u64::from_le_bytes(device.at(p)[..8].try_into().unwrap()));
        let output = device.at(word(16));
        output[..8].copy_from_slice(&2800u64.to_le_bytes());
        output[8..16].copy_from_slice(&end.to_le_bytes());
    }
    let mut program = program("pointer_chase", "working_set=1000,stride=40,steps=112");
    assert!(program.measurements().is_empty());
    Device::default().execute(program.as_mut(), chase);
    assert_eq!(*program.verification(), Verification::Passed);
    let measurements = program.measurements();
    let found = measurements.iter().find(|measurement| measurement.name == "cycles_per_access").unwrap();
    assert_eq!((found.value, found.unit), (25.0, "cycle"));
}

#[test]
fn stream_reports_its_bandwidth() {
    let mut program = program("stream", "operation=write,elements=1000,launches=4");
    Device::default().execute(program.as_mut(), no_kernel);
    // The device's clock moves by 1 us between two readings.
    let measurements = program.measurements();
    let value = |name| measurements.iter().find(|measurement| measurement.name == name).unwrap().value;
    assert_eq!((value("bytes_per_launch"), value("host_time"), value("host_bandwidth")), (8000.0, 1000.0, 32.0));
}

#[test]
fn a_cuda_error_ends_the_program() {
    for Descriptor { name, small, .. } in workloads() {
        let calls = Device::default().execute(program(name, small).as_mut(), no_kernel);
        let makes = |call: &&str| calls.iter().any(|made| made.name() == *call);
        let failing = ["cudaMalloc", "cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFree"];
        assert!(failing[1..3].iter().any(&makes), "{name} launches a kernel");
        for failing in failing.into_iter().filter(makes) {
            let mut program = program(name, small);
            let error = CudaError::MemoryAllocation;
            let mut device = Device { failing: Some((failing, error)), ..Device::default() };
            let calls = device.execute(program.as_mut(), no_kernel);
            let Some(Call::Exit { error: Some(failure) }) = calls.last() else {
                panic!("{name} did not exit with an error: {:?}", calls.last());
            };
            assert_eq!(failure.error, error);
            assert!(failure.call.starts_with(failing), "{}", failure.call);
            assert_eq!(*program.verification(), Verification::NotChecked);
        }
    }
    let mut device = Device { failing: Some(("cudaMalloc", CudaError::MemoryAllocation)), ..Device::default() };
    let calls = device.execute(program("vectoradd", "elements=16").as_mut(), no_kernel);
    let Some(Call::Exit { error: Some(failure) }) = calls.last() else { unreachable!() };
    assert_eq!(failure.to_string(), "cudaMalloc of 64 bytes failed: cudaErrorMemoryAllocation (2)");
}

#[test]
fn a_result_of_the_wrong_kind_fails_the_program() {
    let mut program = program("vectoradd", "elements=16");
    assert!(matches!(program.next(CallResult::Start), Call::Malloc { bytes: 64 }));
    assert_eq!(program.next(CallResult::None), Call::Exit { error: None });
    assert_eq!(program.verification().verified(), Some(false));
}

#[test]
fn wrong_parameters_are_errors() {
    let error = |name: &str, parameters: &str| -> String {
        let workload = find(name).unwrap();
        let program = workload.parse_parameters(parameters).and_then(|parameters| workload.program(&parameters));
        program.err().unwrap_or_else(|| panic!("{name}:{parameters} is accepted")).to_string()
    };
    let cases = [
        (
            "vectoradd",
            "elemnts=5",
            "workload vectoradd has no parameter `elemnts`; did you mean `elements`? known: elements, block, seed, memory",
        ),
        ("lud", "columns=5", "workload lud has no parameter `columns`; known: size, seed, memory"),
        ("vectoradd", "elements", "workload vectoradd: `elements` is not of the form key=value"),
        ("lud", "size=16,size=32", "workload lud: parameter size is given twice"),
        ("vectoradd", "elements=0", "workload vectoradd: elements = `0`; expected a whole number from 1 to 1073741824"),
        (
            "vectoradd",
            "elements=99999999999999999999",
            "workload vectoradd: elements = `99999999999999999999`; expected a whole number from 1 to 1073741824",
        ),
        ("lud", "size=+32", "workload lud: size = `+32`; expected a whole number from 16 to 16384"),
        ("lud", "size=40", "workload lud: size = 40 is not a multiple of 16"),
        ("random_access", "elements=100", "workload random_access: elements = 100 is not a power of two"),
        (
            "pointer_chase",
            "working_set=4KB",
            "workload pointer_chase: working_set = `4KB`; expected bytes from 8 to 8589934592, \
             as a whole number, or with KiB, MiB or GiB",
        ),
        ("pointer_chase", "cache=cs", "workload pointer_chase: cache = `cs`; expected one of ca, cg"),
        ("pointer_chase", "steps=17", "workload pointer_chase: steps = 17 is not a multiple of 16"),
        (
            "pointer_chase",
            "working_set=64,stride=128",
            "workload pointer_chase: a working set of 64 bytes holds no node of 128 bytes",
        ),
        ("pointer_chase", "stride=12", "workload pointer_chase: stride = 12 is not a multiple of 8 bytes, a pointer"),
        ("reduction", "block=48", "workload reduction: block = 48 is not a multiple of 32"),
        (
            "shared_chase",
            "nodes=8192,stride=2",
            "workload shared_chase: nodes * stride = 16384 exceeds the 8192 words of the ring",
        ),
        ("alu_latency", "steps=300", "workload alu_latency: steps = 300 is not a multiple of 256"),
    ];
    for (name, parameters, expected) in cases {
        assert_eq!(error(name, parameters), expected);
    }
}

#[test]
fn workloads_are_found_by_either_spelling() {
    assert_eq!(find("VectorAdd").unwrap().name, "vectoradd");
    assert_eq!(find("PointerChase").unwrap().name, "pointer_chase");
    let Err(WorkloadError::UnknownWorkload { suggestion, .. }) = find("vectorad") else {
        panic!("found");
    };
    assert_eq!(suggestion.nearest, Some("vectoradd"));
    assert!(find("").is_err());
}

#[test]
fn sizes_take_binary_units() {
    let chase = find("pointer_chase").unwrap();
    let value = |text: &str| {
        let parameters = chase.parse_parameters(text).unwrap();
        parameters.iter().find(|(name, _)| *name == "working_set").unwrap().1.to_string()
    };
    assert_eq!(value("working_set=128KiB"), "131072");
    assert_eq!(value(" working_set = 2 MiB , steps=16 "), "2097152");
    assert_eq!(value(""), "65536");
}

#[test]
fn the_ptx_of_the_nearest_older_architecture_is_taken() {
    let vectoradd = find("vectoradd").unwrap();
    assert!(vectoradd.ptx_for(60).unwrap().contains(".target sm_60"));
    assert!(vectoradd.ptx_for(61).unwrap().contains(".target sm_60"));
    assert!(vectoradd.ptx_for(90).unwrap().contains(".target sm_70"));
    assert_eq!(vectoradd.ptx_for(52), None);
}

#[test]
fn every_compiler_is_asked_for_by_name_and_has_the_code_it_says() {
    for workload in workloads() {
        assert!(workload.ptx_for(70).is_some_and(|text| text.contains(".target sm_70")), "{}", workload.name);
        for code in workload.code {
            assert!(code.text.contains(&format!(".target sm_{}", code.capability)), "{}", code.file);
            let header = code.text.lines().next().unwrap().to_lowercase();
            assert!(header.contains(&format!("built by {} ", code.compiler.name())), "{}: {header}", code.file);
            assert_eq!(workload.code_of(code.compiler, code.capability).unwrap().file, code.file);
        }
        for compiler in Compiler::ALL {
            let own = workload.code.iter().filter(|code| code.compiler == compiler).map(|code| code.capability);
            assert!(own.is_sorted(), "{}", workload.name);
        }
    }
    let lud = find("lud").unwrap();
    assert_eq!(lud.code_of(Compiler::Nvcc, 60).unwrap().file, "lud.nvcc.sm_75.ptx");
    assert_eq!(lud.code_of(Compiler::Nvrtc, 61).unwrap().file, "lud.sm_60.ptx");
}

#[test]
fn machine_code_is_for_the_generation_of_the_gpu() {
    for workload in workloads() {
        let gpus = [60, 70, 72, 75, 80, 86, 89, 90];
        let found = gpus.map(|capability| workload.cubin_for(capability).map(|cubin| cubin.capability));
        let expected = [None, Some(70), Some(70), Some(75), Some(80), Some(80), Some(80), Some(90)];
        assert_eq!(found, expected, "{}", workload.name);
        for cubin in workload.cubins {
            assert_eq!(cubin.file, format!("{}.sm_{}.cubin", workload.name, cubin.capability));
            assert!(cubin.bytes.starts_with(b"\x7fELF"), "{}", cubin.file);
        }
    }
}

/// What an allocation of managed memory takes: whole 2 MiB, and for the rest a power of two times 64 KiB.
fn rounded(bytes: u64) -> u64 {
    let (full, rest) = (bytes >> 21 << 21, bytes & ((2 << 20) - 1));
    full + if rest == 0 { 0 } else { rest.next_power_of_two().max(64 << 10) }
}

/// The programs of the studies of unified memory, each with what its settings give: launches, KiB of all allocations once
/// rounded, and KiB of the pages that the host fills before the first launch.
///
/// What the studies and the traces of a GPU say of their own programs is the same, but for: `pathfinder` with 38.5 MiB, for a row
/// less; `srad`, whose host computes what here 16 further launches do; `stream`, whose host fills the result as well. The flag of
/// `bfs` and the frontier of `sssp` are not managed.
#[test]
fn programs_of_the_studies_of_unified_memory_have_their_sizes() {
    let programs: [(&str, &str, [u64; 3]); 14] = [
        ("convolution", "", [1, 8 << 10, 4 << 10]),
        ("atax", "", [2, (6 << 10) + 3 * 64, 1407 * 4 + 2 * 4]),
        ("backprop", "inputs=131056", [2, 3 * 8704 + 2 * 512 + 64, 3 * 8704 + 512]),
        (
            "bfs",
            "nodes=261444,seed=2",
            [22, (2 << 10) + (6 << 10) + 3 * 256 + (1 << 10) + 64, 511 * 4 + (1 << 10) + 3 * 256 + 1533 * 4],
        ),
        ("fdtd", "", [15, 3 * (6 << 10) + 64, (1408 + 1408 + 1407) * 4 + 4]),
        ("hotspot", "size=1024,iterations=8", [4, 12 << 10, 8 << 10]),
        ("nw", "length=1024", [127, (8 << 10) + 2 * 64, 2 * 1027 * 4]),
        ("pathfinder", "columns=50000,rows=200,steps=10", [20, (38 << 10) + 3 * 256, 9766 * 4 + 49 * 4]),
        ("random_access", "", [1, 12 << 10, 8 << 10]),
        ("srad", "size=1024,steps=4", [8 + 4 * 4, 12 * (4 << 10), 4 << 10]),
        ("sssp", "", [31, (28 << 10) + (1 << 10), 20 << 10]),
        ("stencil3d", "size=256,iterations=10", [10, 128 << 10, 64 << 10]),
        ("stream", "operation=triad,elements=524288,launches=1", [1, 12 << 10, 8 << 10]),
        ("vectoradd", "elements=1048576", [1, 12 << 10, 8 << 10]),
    ];
    for (name, settings, expected) in programs {
        let calls = Device::default().execute(program(name, settings).as_mut(), no_kernel);
        let allocated = calls.iter().map(|call| if let Call::Malloc { bytes } = call { rounded(*bytes) } else { 0 });
        let filled = calls.iter().take_while(|call| !matches!(call, Call::Launch(_))).map(|call| match call {
            Call::Copy { source: CopyEnd::Bytes(data), .. } => data.len().div_ceil(4096) * 4,
            _ => 0,
        });
        let found = [launches(&calls).len() as u64, allocated.sum::<u64>() >> 10, filled.sum()];
        assert_eq!(found, expected, "{name}:{settings}");
    }
}

/// What the kernel `page_touch` does.
fn touch_pages(device: &mut Device, call: &Call) {
    let Call::Launch(Launch { parameters, .. }) = call else { unreachable!() };
    let base = u64::from_le_bytes(parameters[..8].try_into().unwrap());
    let touches = u32::from_le_bytes(parameters[8..12].try_into().unwrap());
    for block in &parameters[16..][..touches as usize] {
        let word = &mut device.at(base + u64::from(*block) * 65_536)[..4];
        let before = u32::from_le_bytes(word[..].try_into().unwrap());
        word.copy_from_slice(&before.wrapping_add(1).to_le_bytes());
    }
}

#[test]
fn page_touch_has_the_patterns_of_the_traces() {
    let first = [0, 1, 2, 4, 8, 16];
    let boundary: Vec<u8> = [0, 32, 64].into_iter().flat_map(|base| first.map(|block| base + block)).collect();
    let patterns: [(&str, u64, &[u8]); 5] = [
        ("p1", 2048, &first),
        ("p2", 2048, &[1, 3, 0, 4, 8, 16]),
        ("p3", 2048, &[1, 3, 5, 7, 0, 8, 16]),
        ("boundary", 6144, &boundary),
        ("round_up", 2048 + 192, &[0, 1, 2, 4, 8, 16, 32, 33, 34]),
    ];
    for (pattern, kibibytes, blocks) in patterns {
        let mut program = program("page_touch", &format!("pattern={pattern},pause=7"));
        let calls = Device::default().execute(program.as_mut(), touch_pages);
        assert_eq!(*program.verification(), Verification::Passed, "{pattern}");
        assert_eq!(calls[0], Call::Malloc { bytes: kibibytes << 10 });
        assert_eq!(launches(&calls), [("page_touch", [1, 1, 1], [1, 1, 1])]);
        let Some(Call::Launch(Launch { parameters, .. })) = calls.iter().find(|call| matches!(call, Call::Launch(_)))
        else {
            unreachable!()
        };
        assert_eq!(parameters[8..16], [blocks.len() as u8, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(parameters[16..][..blocks.len()], *blocks);
        // The host reads the words of the blocks, the last one that was touched first.
        let base = u64::from_le_bytes(parameters[..8].try_into().unwrap());
        let read: Vec<u64> = calls
            .iter()
            .filter_map(|call| match call {
                Call::Copy { source: CopyEnd::Memory { address, .. }, destination: CopyEnd::Bytes(data), .. } => {
                    assert_eq!(data.len(), 4);
                    Some((address - base) / 65_536)
                }
                _ => None,
            })
            .collect();
        let expected: Vec<u64> = blocks.iter().rev().map(|block| u64::from(*block)).collect();
        assert_eq!(read, expected, "{pattern}");
    }
}
