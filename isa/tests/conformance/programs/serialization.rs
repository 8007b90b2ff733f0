//! A warp's state written down and read back goes on as the warp itself does.

use super::calls::{load, words};
use crate::machine::Execution;
use balar_isa::execution::*;
use balar_isa::interpreter::step_function;
use balar_isa::machine::LaunchFacts;
use balar_isa::program::LANES;
use balar_isa::texture::{AddressMode, ChannelKind, Image, Sampler, TexelFormat};
use balar_isa::warp::WarpState;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The upper lanes call a function that calls itself, each lane to a depth of its own. They exchange their results with the lower
/// lanes, which call the exchange from elsewhere. Both halves come to a barrier apart, and to a reduction together.
const KERNEL: &str = "
.version 8.8
.target sm_70
.address_size 64
.func (.param .u32 result) triangle(.param .u32 number) {
    .reg .pred %p<3>; .reg .u32 %r<6>;
    ld.param.u32 %r1, [number];
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, 0;
    @%p1 bra DONE;
    sub.u32 %r3, %r1, 1;
    .param .u32 argument; .param .u32 value;
    st.param.u32 [argument], %r3;
    call (value), triangle, (argument);
    ld.param.u32 %r4, [value];
    add.u32 %r2, %r4, %r1;
DONE:
    st.param.u32 [result], %r2;
    ret;
}
.func (.param .u32 result) exchange(.param .u32 number) {
    .reg .u32 %r<3>;
    ld.param.u32 %r1, [number];
    shfl.sync.bfly.b32 %r2, %r1, 16, 0x1f, 0xffffffff;
    st.param.u32 [result], %r2;
    ret;
}
.visible .entry k(.param .u64 p) {
    .reg .pred %p<9>; .reg .u32 %r<20>; .reg .u64 %rd<9>;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd1, [p];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd0, %rd1, %rd2;
    and.b32 %r1, %r0, 3;
    mov.u32 %r2, 100;
    setp.lt.u32 %p1, %r0, 16;
    .param .u32 argument; .param .u32 value;
    @%p1 bra LOW;
    st.param.u32 [argument], %r1;
    call (value), triangle, (argument);
    ld.param.u32 %r2, [value];
    st.param.u32 [argument], %r2;
    call (value), exchange, (argument);
    ld.param.u32 %r3, [value];
    barrier.sync 0;
    bra.uni MEET;
LOW:
    st.param.u32 [argument], %r2;
    call (value), exchange, (argument);
    ld.param.u32 %r3, [value];
    barrier.sync 0;
MEET:
    setp.ne.u32 %p2, %r1, 0;
    barrier.red.popc.u32 %r4, 0, %p2;
    add.u32 %r5, %r3, %r4;
    add.cc.u32 %r6, %r5, 0xffffffff;
    addc.u32 %r7, %r5, 0;
    atom.global.add.u32 %r8, [%rd1+128], %r7;
    st.global.u32 [%rd0], %r7;
    ret;
}
";

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_else(|error| panic!("{error}"))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// The program counters and active lanes from here to the end, and the state and memory then.
fn finish(mut execution: Execution, program: &balar_isa::program::Program) -> (Vec<(u32, u32)>, Vec<u8>, Vec<u8>) {
    let mut path = Vec::new();
    loop {
        path.push((execution.warp.pc(), execution.warp.active_mask()));
        assert!(path.len() < 10_000, "the warp does not end");
        if !execution.advance(step_function(), program) {
            return (path, bytes(&execution.warp), execution.machine.global);
        }
    }
}

#[test]
fn a_warp_read_back_goes_on_as_the_warp_itself() {
    let (program, global) = load(&[KERNEL]);
    let mut execution = Execution::new(&program, &[0; 8], LANES as u32, &global, &[]);
    let facts = LaunchFacts { parameters: &[0; 8], ..LaunchFacts::default() };
    let (mut parted_in_a_call, mut waiting) = (0, 0);
    loop {
        let written = bytes(&execution.warp);
        let mut warp: WarpState = read(&written);
        warp.attach(&program.launch_constants(&facts, |_, _| {}));
        assert_eq!(bytes(&warp), written, "at {}", program.position(warp.pc()).text);
        let mut copy = execution.clone();
        copy.warp = warp;
        let (path, state, memory) = finish(execution.clone(), &program);
        assert_eq!(
            finish(copy, &program),
            (path, state, memory),
            "from {}",
            program.position(execution.warp.pc()).text
        );
        let in_a_call = program.position(execution.warp.pc()).text.contains("add.u32 %r2, %r4, %r1");
        parted_in_a_call += u32::from(in_a_call && execution.warp.active_mask().count_ones() == 8);
        waiting += u32::from(execution.warp.is_blocked());
        if !execution.advance(step_function(), &program) {
            break;
        }
    }
    // Lanes 16 to 31 return from the depth of each: of depth 1 and more 12 lanes, 2 and more 8, 3 four.
    assert!(parted_in_a_call > 0, "no state was taken of diverged lanes in a nested call");
    assert_eq!(waiting, 2, "a state at each of the barriers");
    // The other half's number, and the 24 lanes whose depth is not 0. No sum is 0, so that each carries 1.
    let triangle = [0, 1, 3, 6];
    let expected: Vec<u32> = (0..LANES).map(|lane| 25 + if lane < 16 { triangle[lane % 4] } else { 100 }).collect();
    assert_eq!(words(&execution.machine.global[..4 * LANES]), expected);
}

/// What is read back is what was written.
fn check<T: Serialize + DeserializeOwned + Debug>(value: &T) {
    let copy: T = read(&bytes(value));
    assert_eq!(format!("{copy:?}"), format!("{value:?}"));
}

#[test]
fn what_memory_is_asked_for_can_be_written_down() {
    let mut values = LaneValues::default();
    values.set(31, u128::MAX - 5);
    check(&values);
    check(&MemoryAccess {
        space: Space::Shared,
        kind: AccessKind::Reduction,
        cache: CacheOperator::Volatile,
        bytes: 16,
        mask: 0x8000_0001,
        addresses: std::array::from_fn(|lane| u64::MAX - lane as u64),
    });
    for operation in [AtomicOperation::CompareAndSwap, AtomicOperation::Barrier(BarrierOperation::Pend)] {
        check(&AtomicFunction { operation, data_type: AtomicType::Bf16x2 });
    }
    check(&BarrierArrival { barrier: 15, kind: BarrierKind::ReduceOr, threads: Some(96), mask: 7, predicate: 5 });
    check(&Image {
        base: 1 << 40,
        extent: [5, 6, 7],
        layers: 8,
        row_pitch: 512,
        slice_pitch: 1 << 33,
        format: TexelFormat { channels: 4, bits: 16, kind: ChannelKind::Float },
        is_buffer: false,
        sampler: Sampler {
            addressing: [AddressMode::Wrap, AddressMode::Mirror, AddressMode::Border],
            is_linear: true,
            is_normalized: true,
            reads_normalized_floats: true,
            border: [1, 2, 3, u32::MAX],
        },
    });
}
