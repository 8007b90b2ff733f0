//! One warp on a small memory, run to its end.

use balar_isa::execution::*;
use balar_isa::interpreter::{StepFunction, portable_step_function, step_function};
use balar_isa::machine::{LaunchConstants, LaunchFacts};
use balar_isa::module::PtxModule;
use balar_isa::program::{LANES, Program, lanes};
use balar_isa::texture::Image;
use balar_isa::warp::{WarpShape, WarpState};
use std::sync::Arc;

/// Device memory from address 0, one CTA's shared memory, and the lanes' local memories.
#[derive(Clone)]
pub struct Machine {
    pub global: Vec<u8>,
    pub shared: Vec<u8>,
    local: Vec<u8>,
    local_bytes: usize,
    /// Textures and surfaces by handle.
    images: Vec<(u64, Image)>,
}

impl Machine {
    fn bytes(&mut self, access: &MemoryAccess, lane: usize) -> Result<&mut [u8], MemoryProblem> {
        let address = access.addresses[lane];
        let memory = match access.space {
            Space::Shared => &mut self.shared[..],
            Space::Local => &mut self.local[lane * self.local_bytes..][..self.local_bytes],
            _ => &mut self.global[..],
        };
        let bytes = u64::from(access.bytes);
        let cause = balar_protocol::cuda::FaultCause::IllegalAddress {
            address,
            bytes: u32::from(access.bytes),
            access: balar_protocol::cuda::FaultAccess::Load,
            space: balar_protocol::cuda::FaultSpace::Global,
        };
        let fault = MemoryProblem::Fault { lane: lane as u8, cause };
        let Some(end) = address.checked_add(bytes).filter(|end| *end <= memory.len() as u64) else { return Err(fault) };
        Ok(&mut memory[address as usize..end as usize])
    }
}

impl LaneMemory for Machine {
    fn load(&mut self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem> {
        for lane in lanes(access.mask) {
            let source = self.bytes(access, lane)?;
            let mut value = [0; 16];
            value[..source.len()].copy_from_slice(source);
            values.set(lane, u128::from_le_bytes(value));
        }
        Ok(())
    }

    fn store(&mut self, access: &MemoryAccess, values: &LaneValues) -> Result<(), MemoryProblem> {
        for lane in lanes(access.mask) {
            let value = values.get(lane).to_le_bytes();
            let destination = self.bytes(access, lane)?;
            let length = destination.len();
            destination.copy_from_slice(&value[..length]);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        access: &MemoryAccess,
        function: AtomicFunction,
        operands: &LaneValues,
        replacements: &LaneValues,
        old: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem> {
        for lane in lanes(access.mask) {
            let bytes = self.bytes(access, lane)?;
            old.set(lane, function.update(bytes, operands.get(lane), replacements.get(lane)));
        }
        Ok(AtomicCompletion::Now)
    }

    fn shared(&mut self) -> &mut [u8] {
        &mut self.shared
    }

    fn image(&mut self, handle: u64) -> Option<Image> {
        self.images.iter().find(|(known, _)| *known == handle).map(|(_, image)| *image)
    }
}

/// Decodes the first kernel of a text.
pub fn load(text: &str) -> Program {
    let module = PtxModule::parse("test.ptx", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let addresses: Vec<u64> = module.variables().iter().map(|_| 0).collect();
    let Some(name) = module.kernels().next().map(str::to_owned) else { panic!("no kernel in\n{text}") };
    module.program(&name, &addresses).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// One warp under way.
#[derive(Clone)]
pub struct Execution {
    pub machine: Machine,
    pub warp: WarpState,
    access: MemoryAccess,
    /// Lanes that wait at the CTA's barrier.
    arrived: u32,
    /// Those of them whose predicate is true, where the barrier reduces, and how it does.
    reduced: (u32, Option<BarrierKind>),
    cycle: u64,
}

impl Execution {
    /// A warp of `threads` threads before its first instruction.
    pub fn new(program: &Program, parameters: &[u8], threads: u32, global: &[u8], images: &[(u64, Image)]) -> Self {
        Execution::of_warp(program, parameters, (threads, 0), global, images)
    }

    /// One of the warps of a CTA of so many threads, by its number, before its first instruction.
    pub fn of_warp(
        program: &Program,
        parameters: &[u8],
        (threads, warp_in_cta): (u32, u32),
        global: &[u8],
        images: &[(u64, Image)],
    ) -> Self {
        let local_bytes = program.resources().local_bytes as usize;
        let machine = Machine {
            global: global.to_vec(),
            shared: vec![0; 1 << 16],
            local: vec![0; local_bytes * LANES],
            local_bytes,
            images: images.to_vec(),
        };
        let mut shape = WarpShape {
            block: [threads, 1, 1],
            grid: [1, 1, 1],
            cta: [0, 0, 0],
            cluster: Default::default(),
            warp_in_cta,
            sm: 3,
            sm_count: 80,
            warp_slot: 5,
            warp_slots: 64,
            grid_id: 1,
            dynamic_shared_bytes: 0,
            shared_bytes: program.resources().addressed_shared_bytes(program.resources().shared_bytes),
            grid_workspace: 0,
            parameters: Arc::from(parameters),
            constants: LaunchConstants::default(),
        };
        let facts =
            LaunchFacts { block: [threads, 1, 1], grid: [1; 3], parameters, sm_count: 80, ..LaunchFacts::default() };
        shape.constants = program.launch_constants(&facts, |address, bytes| {
            bytes.copy_from_slice(&machine.global[address as usize..][..bytes.len()]);
        });
        let warp = WarpState::new(program, shape);
        Execution { machine, warp, access: MemoryAccess::default(), arrived: 0, reduced: (0, None), cycle: 0 }
    }

    /// Runs one instruction, or opens the barrier that all lanes wait at. False once the warp has ended.
    ///
    /// # Panics
    ///
    /// Where the warp faults, or its lanes wait for others at a barrier.
    pub fn advance(&mut self, step: StepFunction, program: &Program) -> bool {
        let Execution { machine, warp, access, arrived, reduced, cycle } = self;
        if warp.is_finished() {
            return false;
        }
        *cycle += 1;
        if warp.is_blocked() {
            assert_eq!(*arrived, warp.live_mask(), "all lanes wait at the barrier");
            let (truth, kind) = std::mem::take(reduced);
            let result = kind.map(|kind| match kind {
                BarrierKind::ReducePopulation => truth.count_ones(),
                BarrierKind::ReduceAnd => u32::from(truth == *arrived),
                _ => u32::from(truth != 0),
            });
            *arrived = 0;
            warp.release_barrier(0, result);
            return true;
        }
        let pc = warp.pc();
        let mut values = AccessValues::default();
        let mut context = StepContext { memory: machine, values: &mut values, cycle: *cycle, nanoseconds: 0 };
        match step(program, warp, &mut context, access) {
            Effect::Barrier(arrival) => {
                *arrived |= arrival.mask;
                *reduced = (reduced.0 | arrival.mask & arrival.predicate, Some(arrival.kind));
            }
            // The other warps of its group are elsewhere.
            Effect::ProductWait { arrival, .. } => warp.release_barrier(arrival.barrier, None),
            Effect::CopyArrive(operation) => {
                // Copies are done at once here.
                let arrive = AtomicOperation::Barrier(operation);
                let function = AtomicFunction { operation: arrive, data_type: AtomicType::U64 };
                for lane in lanes(access.mask) {
                    let place = access.addresses[lane] as usize;
                    function.update(&mut machine.shared[place..place + 8], 1, 0);
                }
            }
            Effect::Bulk(BulkCopy { end: BulkEnd::Barrier { address }, bytes, .. }) => {
                let complete = AtomicOperation::Barrier(BarrierOperation::Complete);
                let function = AtomicFunction { operation: complete, data_type: AtomicType::U64 };
                let place = address as usize;
                function.update(&mut machine.shared[place..place + 8], bytes.into(), 0);
            }
            Effect::Fault { cause, .. } => panic!("{cause} at {}", program.describe(pc)),
            _ => {}
        }
        true
    }
}

/// Runs one warp of `threads` threads with a step function; gives the device memory after it.
///
/// # Panics
///
/// Where the warp faults, or does not end.
pub fn run_with(step: StepFunction, program: &Program, parameters: &[u8], threads: u32, global: &[u8]) -> Vec<u8> {
    run_with_images(step, program, parameters, threads, global, &[])
}

/// As [`run_with`], with textures and surfaces.
///
/// # Panics
///
/// Where the warp faults, or does not end.
pub fn run_with_images(
    step: StepFunction,
    program: &Program,
    parameters: &[u8],
    threads: u32,
    global: &[u8],
    images: &[(u64, Image)],
) -> Vec<u8> {
    let mut execution = Execution::new(program, parameters, threads, global, images);
    while execution.advance(step, program) {
        assert!(
            execution.cycle < 1_000_000,
            "the warp does not end: at {}",
            program.position(execution.warp.pc()).text
        );
    }
    execution.machine.global
}

/// Runs one warp under both step functions, which must agree.
pub fn run(program: &Program, parameters: &[u8], threads: u32, global: &[u8]) -> Vec<u8> {
    let fast = run_with(step_function(), program, parameters, threads, global);
    let portable = run_with(portable_step_function(), program, parameters, threads, global);
    let words = |memory: &[u8]| -> Vec<u64> {
        memory.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect()
    };
    let pairs = words(&fast).into_iter().zip(words(&portable)).enumerate();
    let differing: Vec<String> = pairs
        .filter(|(_, (fast, portable))| fast != portable)
        .take(8)
        .map(|(place, (fast, portable))| format!("word {place}: {fast:#x}, portable {portable:#x}"))
        .collect();
    assert!(fast == portable, "the step functions differ in {}: {}", program.name(), differing.join("; "));
    fast
}
