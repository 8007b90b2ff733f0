//! The cost of one step of a warp, for loops of one kind of instruction: nanoseconds a warp instruction.

use balar_isa::execution::{
    AccessValues, AtomicCompletion, AtomicFunction, LaneMemory, LaneValues, MemoryAccess, MemoryProblem, StepContext,
};
use balar_isa::interpreter::{StepFunction, portable_step_function, step_function};
use balar_isa::machine::LaunchConstants;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use balar_isa::warp::{WarpShape, WarpState};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

/// A memory that answers at once: the cost of the step remains.
struct Instant;

impl LaneMemory for Instant {
    fn load(&mut self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem> {
        values.low = access.addresses;
        Ok(())
    }

    fn store(&mut self, _: &MemoryAccess, values: &LaneValues) -> Result<(), MemoryProblem> {
        black_box(values);
        Ok(())
    }

    fn atomic(
        &mut self,
        _: &MemoryAccess,
        _: AtomicFunction,
        _: &LaneValues,
        _: &LaneValues,
        _: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem> {
        Ok(AtomicCompletion::Now)
    }
}

/// A kernel that repeats a body of 16 instructions, 64 times.
fn program(instruction: &str) -> Program {
    let text = format!(
        ".version 8.8\n.target sm_70\n.address_size 64\n.entry k() {{\n.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n\
         .reg .f32 %f<9>; .reg .f64 %d<9>; .shared .align 16 .b8 s[4096];\n\
         mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f64.u32 %d1, %r1; mul.wide.u32 %rd1, %r1, 4; mov.u32 %r2, 0;\n\
         LOOP: {} add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 64; @%p1 bra LOOP; ret;\n}}\n",
        instruction.repeat(16)
    );
    let module = PtxModule::parse("bench.ptx", &text).unwrap_or_else(|errors| panic!("{errors}"));
    module.program("k", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(step: StepFunction, program: &Program, warp: &mut WarpState, shape: &WarpShape) -> u64 {
    warp.reset(program, shape);
    let mut access = MemoryAccess::default();
    let mut memory = Instant;
    let mut values = AccessValues::default();
    let mut steps = 0;
    while !warp.is_finished() {
        let mut context = StepContext { memory: &mut memory, values: &mut values, cycle: steps, nanoseconds: 0 };
        black_box(step(program, warp, &mut context, &mut access));
        steps += 1;
    }
    steps
}

fn issue_loop(criterion: &mut Criterion) {
    let kinds = [
        ("fma.f32", "fma.rn.f32 %f1, %f1, %f1, %f1;"),
        ("add.s32", "add.s32 %r3, %r1, %r1;"),
        ("setp.s32", "setp.lt.s32 %p2, %r1, %r3;"),
        ("add.s64", "add.s64 %rd2, %rd1, %rd1;"),
        ("fma.f64", "fma.rn.f64 %d1, %d1, %d1, %d1;"),
        ("ld.shared", "ld.shared.u32 %r3, [%rd1];"),
        ("st.shared", "st.shared.u32 [%rd1], %r1;"),
    ];
    let shape = WarpShape {
        block: [32, 1, 1],
        grid: [1, 1, 1],
        cta: [0; 3],
        cluster: Default::default(),
        warp_in_cta: 0,
        sm: 0,
        sm_count: 80,
        warp_slot: 0,
        warp_slots: 64,
        grid_id: 1,
        dynamic_shared_bytes: 0,
        shared_bytes: 4096,
        grid_workspace: 0,
        parameters: Arc::from([]),
        constants: LaunchConstants::default(),
    };
    for (version, step) in [("native", step_function()), ("portable", portable_step_function())] {
        let mut group = criterion.benchmark_group(format!("issue_loop/{version}"));
        group.sample_size(20);
        for (name, instruction) in kinds {
            let program = program(instruction);
            let mut warp = WarpState::new(&program, shape.clone());
            let steps = run(step, &program, &mut warp, &shape);
            group.throughput(Throughput::Elements(steps));
            group.bench_function(name, |bencher| bencher.iter(|| run(step, &program, &mut warp, &shape)));
        }
        group.finish();
    }
}

criterion_group!(benches, issue_loop);
criterion_main!(benches);
