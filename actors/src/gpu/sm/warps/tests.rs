use super::*;
use balar_isa::execution::{BarrierArrival, BarrierKind};
use balar_isa::machine::LaunchConstants;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use balar_protocol::cuda::{Code, KernelLaunch, LaunchId, ProgramId};
use std::sync::Arc;

/// A kernel of these instructions, on registers %r0 to %r9.
pub(crate) fn program(instructions: &str) -> Arc<Program> {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<10>; {instructions} exit; }}"
    );
    let module = PtxModule::parse("k.ptx", &text).expect("the text is PTX");
    Arc::new(module.program("k", &[]).expect("the kernel decodes"))
}

fn launch(program: &Arc<Program>, threads: u32) -> Arc<KernelLaunch> {
    Arc::new(KernelLaunch {
        context: balar_protocol::ContextId::first(0),
        id: LaunchId(1),
        code: Code::new(ProgramId(3), Arc::clone(program)),
        name: "k".into(),
        grid: [1; 3],
        cluster: None,
        block: [threads, 1, 1],
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        preferred_carve_out: None,
        registers_per_thread: 16,
        local_bytes: 0,
        parameters: [].into(),
        stream: 0,
        queue: 0,
        priority: 0,
        grid_workspace: 0,
        l2_policy: None,
        detail: Default::default(),
        is_profiled: false,
        range: None,
        origin: None,
        device_kernels: Arc::new([]),
    })
}

/// Of so many warps on an SM with one sub-core.
fn sub_cores(warps: usize) -> SubCores<'static> {
    SubCores { of_warps: &[0; 4][..warps], count: 1 }
}

/// Warps 0 to 2 of a CTA of 96 threads, which came in cycle 100.
fn three_warps() -> Warps {
    let program = program("mov.u32 %r1, 1;");
    let mut warps: Warps = Warps::new(8, 2);
    let place = Place { sm: 0, sm_count: 1, slot: 1 };
    let placed =
        warps.place(&launch(&program, 96), &program, (place, sub_cores(3)), ([0; 3], None), LaunchConstants::default());
    assert_eq!(placed, 0b111);
    warps.advance_to(100);
    warps.begin(placed, 100);
    warps
}

/// Charged cycles, by reason.
fn stalls(warps: &Warps) -> Vec<(&'static str, u64)> {
    let counters = warps.statistics(0).0;
    let all = SmCounters::DEFINITIONS.iter().zip(counters.values());
    all.filter(|(row, value)| row.name.starts_with("stall_") && *value > 0)
        .map(|(row, value)| (row.name, value))
        .collect()
}

fn ends_charged(warps: &Warps) {
    let charged: u64 = stalls(warps).iter().map(|(_, cycles)| cycles).sum();
    assert_eq!(charged, warps.statistics(0).0.warp_cycles_active, "{:?}", stalls(warps));
}

#[test]
fn a_warp_is_charged_for_each_of_its_cycles_once() {
    let mut warps = three_warps();
    // Warp 0 starts after 20 cycles, is not selected for 2, issues, waits for memory from the next cycle to 150, and ends.
    warps.schedule(0, 120, Ready::default(), Pipe::Int);
    warps.advance_to(119);
    assert_eq!(warps.ready(), 0);
    for cycle in [120, 121] {
        warps.advance_to(cycle);
        assert_eq!(warps.ready(), 1);
        warps.end_cycle();
    }
    warps.advance_to(122);
    warps.take(0);
    warps.issue(0, 122, 1);
    warps.wait(0, Status::Memory, Stall::LongScoreboard, 123);
    warps.end_cycle();
    warps.advance_to(150);
    warps.wake(0, 150);
    warps.schedule(0, 150, Ready::at(160, Stall::Wait), Pipe::Branch);
    warps.advance_to(160);
    warps.take(0);
    warps.issue(0, 160, 1);
    assert!(!warps.retire(0, 161));
    // The other two are there since cycle 100, and wait for nothing that they were told of.
    let expected = [
        ("stall_none_selected", 2),
        ("stall_not_selected", 2),
        ("stall_wait", 10),
        ("stall_long_scoreboard", 27),
        ("stall_no_instruction", 20),
    ];
    assert_eq!(stalls(&warps), expected);
    assert_eq!(warps.statistics(0).0.warp_cycles_active, 61 + 2 * 60);
}

#[test]
fn what_was_charged_ahead_is_given_back_to_an_aborted_warp() {
    for at in [101, 105, 110, 125, 140, 199] {
        let mut warps = three_warps();
        // Parked from 105 to 130; throttled from 105 on; waiting until 150.
        for (warp, pipe, cycle) in [(0, Pipe::Fp32, 103), (1, Pipe::Memory, 104), (2, Pipe::Int, 150)] {
            warps.schedule(warp, 101, Ready::at(cycle, Stall::Wait), pipe);
        }
        for cycle in 101..at {
            warps.advance_to(cycle);
            if cycle == 105 {
                warps.park(0b001, cycle, 130, Stall::MathPipeThrottle);
                warps.throttle(0b010, cycle);
            }
            warps.end_cycle();
        }
        warps.advance_to(at);
        warps.abort(LaunchId(1), at);
        assert_eq!(warps.statistics(0).0.warp_cycles_active, 3 * (at - 100), "{at}");
        ends_charged(&warps);
        warps.advance_to(300);
        assert_eq!((warps.ready(), warps.next_ready(), warps.resident_ctas()), (0, u64::MAX, 0), "{at}");
    }
}

#[test]
fn throttled_warps_go_on_together() {
    let mut warps = three_warps();
    for (warp, cycle) in [(0, 101), (1, 103)] {
        warps.schedule(warp, cycle, Ready::default(), Pipe::Memory);
    }
    assert_eq!(warps.wants()[Pipe::Memory as usize], 0b011);
    for cycle in [101, 103] {
        warps.advance_to(cycle);
        warps.throttle(warps.ready(), cycle);
    }
    warps.advance_to(110);
    warps.release_throttled(110);
    assert_eq!(warps.ready(), 0b011);
    assert_eq!(stalls(&warps), [("stall_lg_throttle", 9 + 7), ("stall_no_instruction", 1 + 3)]);
}

#[test]
fn a_value_wakes_those_that_wait_for_it_alone() {
    let mut warps = three_warps();
    warps.begin(0, 100);
    for (warp, key) in [(0, 7), (1, 8), (2, 7)] {
        warps.wait_for_value(warp, key, 105);
    }
    assert_eq!(warps.value_known(9, 110), 0);
    assert_eq!(warps.value_known(7, 110), 0b101);
    assert_eq!(warps.value_known(7, 111), 0, "they wait no longer");
    assert_eq!(stalls(&warps), [("stall_long_scoreboard", 10)]);
}

#[test]
fn the_barrier_of_a_cta_releases_the_warps_that_wait_at_it() {
    let program = program("bar.sync 0; mov.u32 %r1, 1;");
    let mut warps: Warps = Warps::new(4, 1);
    let place = Place { sm: 0, sm_count: 1, slot: 0 };
    let placed =
        warps.place(&launch(&program, 64), &program, (place, sub_cores(2)), ([0; 3], None), LaunchConstants::default());
    warps.begin(placed, 0);
    let arrival = BarrierArrival { barrier: 0, kind: BarrierKind::Sync, threads: None, mask: u32::MAX, predicate: 0 };
    assert_eq!(warps.arrive(0, &arrival), None);
    assert_eq!(warps.threads_at_barriers(), 32);
    let completion = warps.arrive(1, &arrival).expect("both warps have arrived");
    // Neither warp has stepped over the instruction: none is blocked, so none is released.
    assert_eq!(warps.release_barrier(0, completion, 16), 0);
}

/// Slots 0, 4 are of sub-core 0, 1 and 5 of sub-core 1 and so on.
#[test]
fn a_warp_takes_the_first_free_slot_of_its_sub_core() {
    let program = program("mov.u32 %r1, 1;");
    let mut warps: Warps = Warps::new(8, 2);
    let mut place = |slot, of_warps: &[u8]| {
        let (launch, place) = (launch(&program, 32 * of_warps.len() as u32), Place { sm: 0, sm_count: 1, slot });
        let placed = warps.place(
            &launch,
            &program,
            (place, SubCores { of_warps, count: 4 }),
            ([0; 3], None),
            LaunchConstants::default(),
        );
        (placed, members(placed).map(|slot| warps.warp(slot).warp_in_cta).collect::<Vec<_>>())
    };
    assert_eq!(place(0, &[1, 3, 1]), (0b10_1010, vec![0, 1, 2]));
    assert_eq!(place(1, &[3, 0]), (0b1000_0001, vec![1, 0]));
}

#[test]
fn younger_warps_know_the_older_ones() {
    let program = program("mov.u32 %r1, 1;");
    let mut warps: Warps = Warps::new(4, 4);
    for slot in 0..3 {
        let place = Place { sm: 0, sm_count: 1, slot };
        let placed = warps.place(
            &launch(&program, 32),
            &program,
            (place, sub_cores(1)),
            ([0; 3], None),
            LaunchConstants::default(),
        );
        warps.begin(placed, 0);
    }
    warps.retire(0, 5);
    // Slot 0 is taken again, by the youngest.
    warps.place(
        &launch(&program, 32),
        &program,
        (Place { sm: 0, sm_count: 1, slot: 3 }, sub_cores(1)),
        ([0; 3], None),
        LaunchConstants::default(),
    );
    let older = [0, 1, 2].map(|warp| warps.older()[warp] & 0b111);
    assert_eq!(older, [0b110, 0b000, 0b010]);
}

#[test]
fn acknowledgements_of_a_warp_that_has_left_are_told_from_those_of_its_slot() {
    let mut warps = three_warps();
    let generation = warps.warp(0).generation;
    warps.warp_mut(0).outstanding = 2;
    assert_eq!(warps.acknowledged(0, generation), Acknowledged::OneOfMore);
    assert_eq!(warps.acknowledged(0, generation & GENERATION_BITS), Acknowledged::LastOfWarp);
    warps.warp_mut(0).outstanding = 1;
    let (cta, launch) = (warps.cta_of(0), LaunchId(1));
    warps.retire(0, 120);
    let (_, _, stores_under_way) = warps.end_cta(cta, false, 130).expect("its launch runs");
    assert!(stores_under_way);
    assert_eq!(warps.acknowledged(0, generation), Acknowledged::LastOfCta(launch));
}

#[test]
fn a_saved_state_gets_its_code_back_by_number() {
    struct Loaded(Code);
    impl CodeSource for Loaded {
        fn code(&self, id: ProgramId) -> Option<Code> {
            (id == self.0.id()).then(|| self.0.clone())
        }
    }
    let warps = three_warps();
    let bytes = postcard::to_stdvec(&warps).expect("plain values");
    let read = || -> Warps { postcard::from_bytes(&bytes).expect("just written") };
    assert_eq!(read().complete(&warps, &()), Err(StateError::UnknownCode(ProgramId(3))));
    assert!(matches!(read().complete(&Warps::<NoProfile>::new(4, 2), &()), Err(StateError::Mismatch(_))));
    let mut restored = read();
    let loaded = Loaded(Code::new(ProgramId(3), program("mov.u32 %r1, 1;")));
    restored.complete(&warps, &loaded).expect("the code is loaded");
    assert_eq!(restored.context(2).program().name().as_ref(), "k");
    assert_eq!(postcard::to_stdvec(&restored).expect("plain values"), bytes);
}
