//! The table of metrics.
//!
//! Names of nvprof and ncu are from NVIDIA's tables that lead from one to the other ("Nsight Compute CLI", nvprof metric and event
//! comparison). Names of GPGPU-Sim are the names that it prints. Names of SST are the names that memHierarchy's caches and memories, the
//! crossbar and the links register.

use super::formula::Fact::{L1SectorsPerCycle, MeasuredCycles, MeasuredSeconds, SmWarps, Sms, SubCores};
use super::formula::{Formula, Term};
use super::metric::Dialect::{GpgpuSim, Ncu, NvprofEvent, NvprofMetric, Sst};
use super::metric::{Dialect, Metric};
use super::place::Place;
use super::place::Place::{CopyEngine, Crossbar, Dram, Gmmu, Host, L2, Launch, Link, MigrationLink, Sm, UnifiedMemory};

/// Names in other dialects.
type Names = &'static [(Dialect, &'static str)];
/// Counters that are added up.
type Counters = &'static [&'static str];

/// A counter of units, whose unit of measure and meaning they declare.
const fn counter(name: &'static str, place: Place, counter: &'static [&'static str; 1], names: Names) -> Metric {
    Metric { name, place, formula: Formula::Sum(counter), names, unit: "", meaning: "" }
}

/// Counters added up.
const fn sum(
    name: &'static str,
    place: Place,
    counters: Counters,
    [unit, meaning]: [&'static str; 2],
    names: Names,
) -> Metric {
    Metric { name, place, formula: Formula::Sum(counters), names, unit, meaning }
}

/// A counter without a part of it.
const fn without(
    name: &'static str,
    place: Place,
    counters: [&'static str; 2],
    [unit, meaning]: [&'static str; 2],
    names: Names,
) -> Metric {
    Metric { name, place, formula: Formula::Without(counters), names, unit, meaning }
}

/// A counter of sectors, in bytes.
const fn bytes(name: &'static str, place: Place, sectors: Counters, meaning: &'static str, names: Names) -> Metric {
    Metric { name, place, formula: Formula::Times(SECTOR, sectors), names, unit: "byte", meaning }
}

/// A quotient.
const fn ratio(
    name: &'static str,
    place: Place,
    [above, below]: [Term; 2],
    [unit, meaning]: [&'static str; 2],
    names: Names,
) -> Metric {
    Metric { name, place, formula: Formula::Ratio { above, below }, names, unit, meaning }
}

/// Counters in the time that they are measured over, GB/s.
const fn rate(
    name: &'static str,
    place: Place,
    bytes: u64,
    counters: Counters,
    meaning: &'static str,
    names: Names,
) -> Metric {
    let formula = Formula::Rate(bytes as f64 / 1e9, counters);
    Metric { name, place, formula, names, unit: "GB/s", meaning }
}

/// The share of warp-cycles that are charged to these counters.
const fn stall(name: &'static str, counters: Counters, meaning: &'static str, names: Names) -> Metric {
    ratio(name, Sm, [percent(counters), Term::Sum(1.0, &["warp_cycles_active"])], ["%", meaning], names)
}

/// Warps that stood in a state in a cycle in which their scheduler issued, on average.
const fn stalled_warps(name: &'static str, counters: Counters, meaning: &'static str, names: Names) -> Metric {
    let below = Term::Sum(1.0, &["stall_none_selected"]);
    ratio(name, Sm, [Term::Sum(1.0, counters), below], ["warp", meaning], names)
}

/// The greatest of metrics of launches, %.
const fn greatest(name: &'static str, metrics: Counters, meaning: &'static str, names: Names) -> Metric {
    Metric { name, place: Launch, formula: Formula::Greatest(metrics), names, unit: "%", meaning }
}

const fn percent(counters: Counters) -> Term {
    Term::Sum(100.0, counters)
}

const fn of(counters: Counters) -> Term {
    Term::Sum(1.0, counters)
}

/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Every metric.
#[rustfmt::skip]
pub static METRICS: &[Metric] = &[
    // Launches.
    sum("gpu.time", Launch, &["duration_ps"], ["ps", "time from the start of a launch to the end of its last CTA"],
        &[(Ncu, "gpu__time_duration")]),
    sum("gpu.cycles_elapsed", Launch, &["cycles"], ["cycle", "SM-clock cycles from the start of a launch to the end of its last CTA"],
        &[(Ncu, "gpc__cycles_elapsed.max"), (Ncu, "gpc__cycles_elapsed.avg"), (Ncu, "sm__cycles_elapsed.max"), (Ncu, "sm__cycles_elapsed.avg"), (GpgpuSim, "gpu_sim_cycle"), (GpgpuSim, "gpu_tot_sim_cycle")]),
    ratio("gpu.clock", Launch, [of(&["cycles"]), Term::Sum(1e-12, &["duration_ps"])], ["Hz", "SM-clock cycles of launches in a second of their time"],
        &[(Ncu, "gpc__cycles_elapsed.avg.per_second"), (Ncu, "sm__cycles_elapsed.avg.per_second")]),
    greatest("gpu.compute_memory_throughput", &["l1.util", "l2.util", "dram.util"], "how busy the busiest level of memory was while the launch ran",
        &[(Ncu, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")]),
    sum("sm.cycles_elapsed", Launch, &["sm_cycles"], ["cycle", "elapsed cycles summed over the SMs of the GPU"],
        &[(NvprofEvent, "elapsed_cycles_sm"), (Ncu, "sm__cycles_elapsed.sum")]),
    sum("launch.grid_size", Launch, &["grid_size"], ["CTA", "CTAs of the grid"], &[(Ncu, "launch__grid_size")]),
    sum("launch.block_size", Launch, &["block_size"], ["thread", "threads of a CTA"], &[(Ncu, "launch__block_size")]),
    sum("launch.threads", Launch, &["threads"], ["thread", "threads of the grid"], &[(Ncu, "launch__thread_count")]),
    sum("launch.registers_per_thread", Launch, &["registers_per_thread"], ["register/thread", "registers of a thread"],
        &[(Ncu, "launch__registers_per_thread")]),
    sum("launch.shared_bytes", Launch, &["shared_bytes"], ["byte", "shared memory of a CTA, static and dynamic"],
        &[(Ncu, "launch__shared_mem_per_block")]),
    sum("launch.occupancy_limit_registers", Launch, &["occupancy_limit_registers"], ["CTA", "CTAs that the registers of an SM suffice for"],
        &[(Ncu, "launch__occupancy_limit_registers")]),
    sum("launch.occupancy_limit_shared_memory", Launch, &["occupancy_limit_shared_memory"], ["CTA", "CTAs that the shared memory of an SM suffices for"],
        &[(Ncu, "launch__occupancy_limit_shared_mem")]),
    sum("launch.occupancy_limit_warps", Launch, &["occupancy_limit_warps"], ["CTA", "CTAs that the warp slots of an SM suffice for"],
        &[(Ncu, "launch__occupancy_limit_warps")]),
    sum("launch.occupancy_limit_ctas", Launch, &["occupancy_limit_ctas"], ["CTA", "CTA slots of an SM"],
        &[(Ncu, "launch__occupancy_limit_blocks")]),
    ratio("sm.theoretical_occupancy", Launch, [percent(&["occupancy_warps"]), Term::Product(&[SmWarps])],
        ["%", "warps that an SM has room for, of its warp slots"], &[(Ncu, "sm__maximum_warps_per_active_cycle_pct")]),
    ratio("launch.waves_per_sm", Launch, [of(&["grid_size"]), Term::Times(&["occupancy_ctas"], &[Sms])],
        ["wave", "CTAs of the grid over the CTAs that the GPU holds at once"], &[(Ncu, "launch__waves_per_multiprocessor")]),

    // SMs: warps and instructions.
    counter("sm.cycles_active", Sm, &["cycles_active"], &[(NvprofEvent, "active_cycles"), (Ncu, "sm__cycles_active"), (Ncu, "smsp__cycles_active.avg")]),
    counter("sm.warp_cycles_active", Sm, &["warp_cycles_active"], &[(NvprofEvent, "active_warps"), (Ncu, "sm__warps_active")]),
    counter("sm.warps_launched", Sm, &["warps_launched"], &[(NvprofEvent, "warps_launched"), (Ncu, "sm__warps_launched"), (Ncu, "smsp__warps_launched.sum")]),
    counter("sm.ctas_launched", Sm, &["ctas_launched"], &[(NvprofEvent, "sm_cta_launched"), (Ncu, "sm__ctas_launched"), (GpgpuSim, "gpu_tot_issued_cta")]),
    counter("sm.ctas_completed", Sm, &["ctas_completed"], &[(GpgpuSim, "ctas_completed")]),
    counter("sm.inst_executed", Sm, &["inst_executed"],
        &[(NvprofEvent, "inst_executed"), (NvprofMetric, "inst_executed"), (Ncu, "sm__inst_executed"), (Ncu, "smsp__inst_executed.sum"), (GpgpuSim, "gpgpu_n_tot_w_icount")]),
    counter("sm.thread_inst_executed", Sm, &["thread_inst_executed"],
        &[(NvprofEvent, "thread_inst_executed"), (Ncu, "sm__thread_inst_executed"), (Ncu, "smsp__thread_inst_executed.sum"), (GpgpuSim, "gpu_sim_insn"), (GpgpuSim, "gpu_tot_sim_insn"), (GpgpuSim, "gpgpu_n_tot_thrd_icount")]),
    counter("sm.thread_inst_executed_pred_on", Sm, &["thread_inst_executed_pred_on"],
        &[(NvprofEvent, "not_predicated_off_thread_inst_executed"), (Ncu, "sm__thread_inst_executed_pred_on"), (Ncu, "smsp__thread_inst_executed_pred_on.sum")]),
    counter("sm.inst_issued", Sm, &["inst_issued"], &[(NvprofMetric, "inst_issued"), (Ncu, "sm__inst_issued"), (Ncu, "smsp__inst_issued.sum")]),
    sum("sm.issue_slots", Sm, &["stall_none_selected"], ["cycle", "cycles in which a scheduler issued, summed over schedulers: issue slots used"],
        &[(NvprofEvent, "inst_issued1"), (NvprofMetric, "issue_slots"), (Ncu, "smsp__issue_active.sum"), (GpgpuSim, "single_issue_nums")]),
    ratio("sm.ipc", Sm, [of(&["inst_executed"]), of(&["cycles_active"])], ["instruction/cycle", "warp instructions executed in an active cycle of an SM"],
        &[(NvprofMetric, "ipc"), (Ncu, "sm__inst_executed.avg.per_cycle_active")]),
    ratio("sm.issued_ipc", Sm, [of(&["inst_issued"]), of(&["cycles_active"])], ["instruction/cycle", "warp instructions issued in an active cycle of an SM"],
        &[(NvprofMetric, "issued_ipc"), (Ncu, "sm__inst_issued.avg.per_cycle_active")]),
    ratio("sub_core.ipc", Sm, [of(&["inst_executed"]), Term::Times(&["cycles_active"], &[SubCores])],
        ["instruction/cycle", "warp instructions executed by a sub-core in an active cycle of its SM"],
        &[(Ncu, "smsp__inst_executed.avg.per_cycle_active")]),
    ratio("sub_core.issued_ipc", Sm, [of(&["inst_issued"]), Term::Times(&["cycles_active"], &[SubCores])],
        ["instruction/cycle", "warp instructions issued by a sub-core in an active cycle of its SM"],
        &[(Ncu, "smsp__inst_issued.avg.per_cycle_active")]),
    ratio("gpu.ipc", Launch, [of(&["inst_executed"]), of(&["cycles"])], ["instruction/cycle", "warp instructions of a launch in an elapsed cycle, all SMs together"], &[]),
    ratio("gpu.thread_ipc", Launch, [of(&["thread_inst_executed"]), of(&["cycles"])],
        ["instruction/cycle", "thread instructions of a launch in an elapsed cycle, all SMs together"], &[(GpgpuSim, "gpu_ipc"), (GpgpuSim, "gpu_tot_ipc")]),
    ratio("sm.issue_active", Sm, [percent(&["stall_none_selected"]), Term::Times(&["cycles_active"], &[SubCores])],
        ["%", "share of the issue slots of active cycles that are used"],
        &[(NvprofMetric, "issue_slot_utilization"), (Ncu, "smsp__issue_active.avg.pct_of_peak_sustained_active")]),
    ratio("sm.issue_active_elapsed", Sm, [percent(&["stall_none_selected"]), Term::Product(&[MeasuredCycles, SubCores])],
        ["%", "issue slots used, of those of all cycles in which kernels ran"], &[(Ncu, "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"), (Ncu, "sm__throughput.avg.pct_of_peak_sustained_elapsed")]),
    ratio("sm.occupancy", Sm, [percent(&["warp_cycles_active"]), Term::Times(&["cycles_active"], &[SmWarps])],
        ["%", "achieved occupancy: warps that were there in active cycles, of the warp slots"],
        &[(Ncu, "sm__warps_active.avg.pct_of_peak_sustained_active"), (GpgpuSim, "gpu_occupancy")]),
    ratio("sm.achieved_occupancy", Sm, [of(&["warp_cycles_active"]), Term::Times(&["cycles_active"], &[SmWarps])],
        ["", "achieved occupancy as nvprof gives it, a fraction"], &[(NvprofMetric, "achieved_occupancy")]),
    ratio("sm.warps_per_cycle", Sm, [of(&["warp_cycles_active"]), of(&["cycles_active"])], ["warp", "warps that were there in an active cycle"],
        &[(Ncu, "sm__warps_active.avg.per_cycle_active")]),
    ratio("sm.efficiency", Sm, [percent(&["cycles_active"]), Term::Product(&[MeasuredCycles])], ["%", "share of the cycles in which kernels ran that are active"],
        &[(NvprofMetric, "sm_efficiency"), (Ncu, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed")]),
    ratio("sm.eligible_warps", Sm, [of(&["stall_none_selected", "stall_not_selected"]), of(&["cycles_active"])],
        ["warp", "warps that could issue in an active cycle of an SM"],
        &[(NvprofMetric, "eligible_warps_per_cycle"), (Ncu, "smsp__warps_eligible.sum.per_cycle_active")]),
    ratio("sm.lanes_per_inst", Sm, [of(&["thread_inst_executed"]), of(&["inst_executed"])], ["thread", "threads that executed a warp instruction"],
        &[(Ncu, "smsp__thread_inst_executed_per_inst_executed.ratio")]),
    ratio("sm.warp_execution_efficiency", Sm, [percent(&["thread_inst_executed"]), Term::Sum(32.0, &["inst_executed"])],
        ["%", "threads that executed a warp instruction, of 32"],
        &[(NvprofMetric, "warp_execution_efficiency"), (Ncu, "smsp__thread_inst_executed_per_inst_executed.pct")]),
    ratio("sm.warp_nonpred_execution_efficiency", Sm, [percent(&["thread_inst_executed_pred_on"]), Term::Sum(32.0, &["inst_executed"])],
        ["%", "threads that executed a warp instruction and whose guard was true, of 32"],
        &[(NvprofMetric, "warp_nonpred_execution_efficiency"), (Ncu, "smsp__thread_inst_executed_per_inst_executed_pred_on.pct")]),
    ratio("sm.inst_per_warp", Sm, [of(&["inst_executed"]), of(&["warps_launched"])], ["instruction", "warp instructions of a warp"],
        &[(NvprofMetric, "inst_per_warp"), (Ncu, "smsp__average_inst_executed_per_warp.ratio")]),
    ratio("sm.branch_efficiency", Sm, [percent(&["branches_uniform"]), of(&["branches_uniform", "branches_divergent"])],
        ["%", "branches whose threads all went the same way"],
        &[(NvprofMetric, "branch_efficiency"), (Ncu, "smsp__sass_average_branch_targets_threads_uniform.pct")]),
    sum("sm.branches", Sm, &["branches_uniform", "branches_divergent"], ["instruction", "branches"],
        &[(NvprofEvent, "branch"), (Ncu, "smsp__sass_branch_targets.sum")]),
    counter("sm.branches_divergent", Sm, &["branches_divergent"], &[(NvprofEvent, "divergent_branch"), (Ncu, "smsp__sass_branch_targets_threads_divergent.sum")]),
    counter("sm.inst_control", Sm, &["inst_control"], &[(NvprofMetric, "cf_executed")]),
    counter("sm.inst_barriers", Sm, &["inst_barriers"], &[]),

    // SMs: operations of threads.
    counter("sm.flop_sp_add", Sm, &["flop_sp_add"], &[(NvprofMetric, "flop_count_sp_add"), (Ncu, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum")]),
    counter("sm.flop_sp_mul", Sm, &["flop_sp_mul"], &[(NvprofMetric, "flop_count_sp_mul"), (Ncu, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum")]),
    counter("sm.flop_sp_fma", Sm, &["flop_sp_fma"], &[(NvprofMetric, "flop_count_sp_fma"), (Ncu, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")]),
    sum("sm.flop_sp", Sm, &["flop_sp_add", "flop_sp_mul", "flop_sp_fma", "flop_sp_fma"], ["operation", "single-precision operations of threads, two for a fused multiply-add"],
        &[(NvprofMetric, "flop_count_sp")]),
    counter("sm.flop_dp_add", Sm, &["flop_dp_add"], &[(NvprofMetric, "flop_count_dp_add"), (Ncu, "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum")]),
    counter("sm.flop_dp_mul", Sm, &["flop_dp_mul"], &[(NvprofMetric, "flop_count_dp_mul"), (Ncu, "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum")]),
    counter("sm.flop_dp_fma", Sm, &["flop_dp_fma"], &[(NvprofMetric, "flop_count_dp_fma"), (Ncu, "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum")]),
    sum("sm.flop_dp", Sm, &["flop_dp_add", "flop_dp_mul", "flop_dp_fma", "flop_dp_fma"], ["operation", "double-precision operations of threads, two for a fused multiply-add"],
        &[(NvprofMetric, "flop_count_dp")]),
    counter("sm.flop_hp", Sm, &["flop_hp"], &[(NvprofMetric, "flop_count_hp")]),
    counter("sm.inst_int", Sm, &["inst_integer"], &[(NvprofMetric, "inst_integer"), (Ncu, "smsp__sass_thread_inst_executed_op_integer_pred_on.sum")]),
    counter("sm.inst_conv", Sm, &["inst_bit_convert"], &[(NvprofMetric, "inst_bit_convert"), (Ncu, "smsp__sass_thread_inst_executed_op_conversion_pred_on.sum")]),
    rate("sm.flop_sp_rate", Sm, 1, &["flop_sp_add", "flop_sp_mul", "flop_sp_fma", "flop_sp_fma"], "single-precision operations in the time of kernels, 10^9 a second", &[]),

    // SMs: accesses.
    counter("sm.inst_global_ld", Sm, &["inst_global_loads"],
        &[(NvprofEvent, "global_load"), (NvprofMetric, "inst_executed_global_loads"), (Ncu, "smsp__inst_executed_op_global_ld.sum"), (Ncu, "smsp__sass_inst_executed_op_global_ld.sum")]),
    counter("sm.inst_global_st", Sm, &["inst_global_stores"],
        &[(NvprofEvent, "global_store"), (NvprofMetric, "inst_executed_global_stores"), (Ncu, "smsp__inst_executed_op_global_st.sum"), (Ncu, "smsp__sass_inst_executed_op_global_st.sum")]),
    counter("sm.inst_shared_ld", Sm, &["inst_shared_loads"],
        &[(NvprofEvent, "shared_load"), (NvprofMetric, "inst_executed_shared_loads"), (Ncu, "smsp__inst_executed_op_shared_ld.sum")]),
    counter("sm.inst_shared_st", Sm, &["inst_shared_stores"],
        &[(NvprofEvent, "shared_store"), (NvprofMetric, "inst_executed_shared_stores"), (Ncu, "smsp__inst_executed_op_shared_st.sum")]),
    counter("sm.inst_local_ld", Sm, &["inst_local_loads"],
        &[(NvprofEvent, "local_load"), (NvprofMetric, "inst_executed_local_loads"), (Ncu, "smsp__inst_executed_op_local_ld.sum")]),
    counter("sm.inst_local_st", Sm, &["inst_local_stores"],
        &[(NvprofEvent, "local_store"), (NvprofMetric, "inst_executed_local_stores"), (Ncu, "smsp__inst_executed_op_local_st.sum")]),
    counter("sm.inst_atom", Sm, &["inst_atomics"], &[(NvprofEvent, "atom_count"), (NvprofMetric, "inst_executed_global_atomics"), (Ncu, "smsp__inst_executed_op_global_atom.sum")]),
    counter("sm.inst_red", Sm, &["inst_reductions"], &[(NvprofEvent, "gred_count"), (NvprofMetric, "inst_executed_global_reductions"), (Ncu, "smsp__inst_executed_op_global_red.sum")]),
    counter("smem.wavefronts_ld", Sm, &["shared_wavefronts_load"], &[(NvprofMetric, "shared_load_transactions"), (Ncu, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld")]),
    counter("smem.wavefronts_st", Sm, &["shared_wavefronts_store"], &[(NvprofMetric, "shared_store_transactions"), (Ncu, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st")]),
    counter("smem.bank_conflicts", Sm, &["shared_memory_bank_conflicts"], &[(Ncu, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"), (GpgpuSim, "gpgpu_n_shmem_bkconflict")]),
    counter("smem.bank_conflicts_ld", Sm, &["shared_memory_bank_conflicts_load"],
        &[(NvprofEvent, "shared_ld_bank_conflict"), (Ncu, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld")]),
    without("smem.bank_conflicts_st", Sm, ["shared_memory_bank_conflicts", "shared_memory_bank_conflicts_load"],
        ["wavefront", "shared-memory wavefronts beyond the least possible, of stores and atomics"],
        &[(NvprofEvent, "shared_st_bank_conflict"), (Ncu, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st")]),
    ratio("smem.wavefronts_per_ld", Sm, [of(&["shared_wavefronts_load"]), of(&["inst_shared_loads"])], ["wavefront", "wavefronts of a load from shared memory"],
        &[(NvprofMetric, "shared_load_transactions_per_request")]),
    ratio("smem.wavefronts_per_st", Sm, [of(&["shared_wavefronts_store"]), of(&["inst_shared_stores"])], ["wavefront", "wavefronts of a store to shared memory"],
        &[(NvprofMetric, "shared_store_transactions_per_request")]),
    rate("smem.ld_throughput", Sm, 128, &["shared_wavefronts_load"], "the most that loads from shared memory could give: 32 banks of 4 bytes a wavefront", &[(NvprofMetric, "shared_load_throughput")]),
    rate("smem.st_throughput", Sm, 128, &["shared_wavefronts_store"], "the most that stores to shared memory could take: 32 banks of 4 bytes a wavefront", &[(NvprofMetric, "shared_store_throughput")]),

    // L1.
    sum("l1.requests_ld", Sm, &["inst_global_loads"], ["request", "loads from global memory that came to the L1, one for a warp instruction"],
        &[(NvprofMetric, "global_load_requests"), (Ncu, "l1tex__t_requests_pipe_lsu_mem_global_op_ld"), (Sst, "l1gcache_N.GetS_recv")]),
    sum("l1.requests_st", Sm, &["inst_global_stores"], ["request", "stores to global memory that came to the L1, one for a warp instruction"],
        &[(NvprofMetric, "global_store_requests"), (Ncu, "l1tex__t_requests_pipe_lsu_mem_global_op_st")]),
    counter("l1.sectors_ld", Sm, &["l1_sectors_load"],
        &[(NvprofMetric, "gld_transactions"), (Ncu, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"), (GpgpuSim, "Total_core_cache_stats_breakdown[GLOBAL_ACC_R][TOTAL_ACCESS]")]),
    counter("l1.sectors_st", Sm, &["l1_sectors_store"],
        &[(NvprofMetric, "gst_transactions"), (Ncu, "l1tex__t_sectors_pipe_lsu_mem_global_op_st"), (GpgpuSim, "Total_core_cache_stats_breakdown[GLOBAL_ACC_W][TOTAL_ACCESS]"), (Sst, "l1gcache_N.GetX_recv")]),
    counter("l1.hits_ld", Sm, &["l1_sector_hits_load"],
        &[(Ncu, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit"), (Sst, "l1gcache_N.CacheHits")]),
    without("l1.hits_in_place", Sm, ["l1_sector_hits_load", "l1_mshr_merges"], ["sector", "sectors of loads that were in the L1, without those on their way"],
        &[(GpgpuSim, "Total_core_cache_stats_breakdown[GLOBAL_ACC_R][HIT]")]),
    ratio("l1.sectors_per_req_ld", Sm, [of(&["l1_sectors_load"]), of(&["inst_global_loads"])], ["sector/request", "sectors of a load from global memory"],
        &[(NvprofMetric, "gld_transactions_per_request"), (Ncu, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio")]),
    ratio("l1.sectors_per_req_st", Sm, [of(&["l1_sectors_store"]), of(&["inst_global_stores"])], ["sector/request", "sectors of a store to global memory"],
        &[(NvprofMetric, "gst_transactions_per_request"), (Ncu, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio")]),
    ratio("l1.gld_efficiency", Sm, [percent(&["l1_bytes_load"]), Term::Sum(SECTOR as f64, &["l1_sectors_load"])],
        ["%", "bytes that threads asked for in loads, of those of the sectors that these took; above 100 where lanes ask for the same bytes"],
        &[(NvprofMetric, "gld_efficiency"), (Ncu, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct")]),
    ratio("l1.gst_efficiency", Sm, [percent(&["l1_bytes_store"]), Term::Sum(SECTOR as f64, &["l1_sectors_store"])],
        ["%", "bytes that threads gave in stores, of those of the sectors that these took"],
        &[(NvprofMetric, "gst_efficiency"), (Ncu, "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct")]),
    rate("l1.gld_requested_throughput", Sm, 1, &["l1_bytes_load"], "bytes that threads asked for in loads, in the time of kernels", &[(NvprofMetric, "gld_requested_throughput")]),
    rate("l1.gst_requested_throughput", Sm, 1, &["l1_bytes_store"], "bytes that threads gave in stores, in the time of kernels", &[(NvprofMetric, "gst_requested_throughput")]),
    ratio("l1.hit_rate", Sm, [percent(&["l1_sector_hits_load"]), of(&["l1_sectors_load"])], ["%", "sectors of loads that hit in the L1, those on their way included"],
        &[(NvprofMetric, "global_hit_rate"), (NvprofMetric, "tex_cache_hit_rate"), (Ncu, "l1tex__t_sector_hit_rate.pct"), (Ncu, "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct")]),
    bytes("l1.bytes", Sm, &["l1_sectors_load", "l1_sectors_store"], "bytes of all sectors that loads and stores asked the L1 for",
        &[(Ncu, "l1tex__t_bytes.sum")]),
    rate("l1.gld_throughput", Sm, SECTOR, &["l1_sectors_load"], "bytes of the sectors of loads from global memory, in the time of kernels", &[(NvprofMetric, "gld_throughput")]),
    rate("l1.gst_throughput", Sm, SECTOR, &["l1_sectors_store"], "bytes of the sectors of stores to global memory, in the time of kernels", &[(NvprofMetric, "gst_throughput")]),
    ratio("l1.util", Sm, [percent(&["l1_sectors_load", "l1_sectors_store"]), Term::Product(&[MeasuredCycles, L1SectorsPerCycle])],
        ["%", "sectors that the L1 delivered, as a share of the most that it could deliver in the time of kernels"], &[(Ncu, "l1tex__throughput.avg.pct_of_peak_sustained_elapsed")]),
    counter("l1.mshr_merges", Sm, &["l1_mshr_merges"], &[(GpgpuSim, "Total_core_cache_stats_breakdown[GLOBAL_ACC_R][MSHR_HIT]")]),
    counter("l1.evictions", Sm, &["l1_evictions"], &[]),
    without("l1.misses_ld", Sm, ["l1_sectors_load", "l1_sector_hits_load"], ["sector", "sectors of loads that missed in the L1"],
        &[(Ncu, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss"), (Sst, "l1gcache_N.CacheMisses")]),
    counter("tlb.lookups", Sm, &["tlb_lookups"], &[]),
    counter("tlb.misses", Sm, &["tlb_misses"], &[]),
    counter("icache.misses", Sm, &["instruction_cache_misses"], &[]),
    counter("icache.requests", Sm, &["instruction_requests"], &[]),
    counter("ccache.misses", Sm, &["constant_cache_misses"], &[]),
    counter("ccache.requests", Sm, &["constant_requests"], &[]),

    // L2.
    counter("l2.sectors_rd_sm", Sm, &["l2_sectors_load"],
        &[(NvprofMetric, "l2_tex_read_transactions"), (Ncu, "lts__t_sectors_srcunit_tex_op_read.sum"), (GpgpuSim, "L2_cache_stats_breakdown[GLOBAL_ACC_R][TOTAL_ACCESS]")]),
    counter("l2.hits_rd_sm", Sm, &["l2_sector_hits_load"],
        &[(Ncu, "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"), (GpgpuSim, "L2_cache_stats_breakdown[GLOBAL_ACC_R][HIT]")]),
    ratio("l2.hit_rate_rd_sm", Sm, [percent(&["l2_sector_hits_load"]), of(&["l2_sectors_load"])], ["%", "sectors of loads of SMs that hit in the L2"],
        &[(NvprofMetric, "l2_tex_read_hit_rate"), (NvprofMetric, "l2_tex_hit_rate"), (Ncu, "lts__t_sector_srcunit_tex_op_read_hit_rate.pct")]),
    counter("l2.sectors_rd", L2, &["sectors_read"], &[(NvprofMetric, "l2_read_transactions"), (Ncu, "lts__t_sectors_op_read"), (Sst, "l2gcache_N.GetS_recv")]),
    counter("l2.sectors_wr", L2, &["sectors_written"],
        &[(NvprofMetric, "l2_write_transactions"), (NvprofMetric, "l2_tex_write_transactions"), (Ncu, "lts__t_sectors_op_write"), (Ncu, "lts__t_sectors_srcunit_tex_op_write"), (GpgpuSim, "L2_cache_stats_breakdown[GLOBAL_ACC_W][TOTAL_ACCESS]"), (Sst, "l2gcache_N.GetX_recv")]),
    counter("l2.hits_rd", L2, &["sector_hits_read"], &[(Ncu, "lts__t_sectors_op_read_lookup_hit"), (Sst, "l2gcache_N.CacheHits")]),
    counter("l2.misses_rd", L2, &["sector_misses_read"], &[(Ncu, "lts__t_sectors_op_read_lookup_miss"), (GpgpuSim, "L2_total_cache_misses"), (Sst, "l2gcache_N.CacheMisses")]),
    ratio("l2.hit_rate_rd", L2, [percent(&["sector_hits_read"]), of(&["sectors_read"])], ["%", "sectors of reads that hit in the L2"], &[(Ncu, "lts__t_sector_op_read_hit_rate.pct")]),
    counter("l2.requests", L2, &["requests"], &[(Ncu, "lts__t_requests")]),
    counter("l2.atomics", L2, &["sectors_atomic"], &[(NvprofMetric, "l2_atomic_transactions"), (Ncu, "lts__t_sectors_op_atom_red")]),
    counter("l2.bytes", L2, &["bytes"], &[(Ncu, "lts__t_bytes")]),
    rate("l2.throughput", L2, 1, &["bytes"], "data from and to the crossbar, in the time that it is measured over", &[(Ncu, "lts__t_bytes.sum.per_second"), (GpgpuSim, "L2_BW")]),
    rate("l2.read_throughput", L2, SECTOR, &["sectors_read"], "bytes of the sectors that were read, in the time that it is measured over", &[(NvprofMetric, "l2_read_throughput")]),
    rate("l2.write_throughput", L2, SECTOR, &["sectors_written"], "bytes of the sectors that were written, in the time that it is measured over", &[(NvprofMetric, "l2_write_throughput")]),
    rate("l2.tex_read_throughput", Sm, SECTOR, &["l2_sectors_load"], "bytes of the sectors that SMs loaded from the L2, in the time of kernels", &[(NvprofMetric, "l2_tex_read_throughput")]),
    ratio("l2.util", L2, [percent(&["data_busy_cycles"]), Term::Product(&[MeasuredCycles])], ["%", "share of the measured cycles in which the data arrays were busy"],
        &[(Ncu, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"), (GpgpuSim, "L2_cache_data_port_util")]),
    counter("l2.write_backs", L2, &["sectors_written_back"], &[]),
    counter("l2.mshr_merges", L2, &["mshr_merges"], &[]),
    sum("l2.stall_cycles", L2, &["stall_cycles_mshr", "stall_cycles_merge", "stall_cycles_set", "stall_cycles_write_back"],
        ["cycle", "cycles that input queues stood because no request could be taken"], &[(GpgpuSim, "L2_total_cache_reservation_fails")]),

    // DRAM.
    counter("dram.sectors_rd", Dram, &["sectors_read"],
        &[(NvprofMetric, "dram_read_transactions"), (Ncu, "dram__sectors_read"), (GpgpuSim, "gpgpu_n_dram_reads"), (GpgpuSim, "total dram reads"), (Sst, "Simplehbm_N.requests_received_GetS")]),
    counter("dram.sectors_wr", Dram, &["sectors_written"],
        &[(NvprofMetric, "dram_write_transactions"), (Ncu, "dram__sectors_write"), (GpgpuSim, "gpgpu_n_dram_writes"), (GpgpuSim, "total dram writes"), (Sst, "Simplehbm_N.requests_received_Write")]),
    bytes("dram.bytes_rd", Dram, &["sectors_read"], "bytes read from device memory",
        &[(NvprofMetric, "dram_read_bytes"), (Ncu, "dram__bytes_read.sum")]),
    bytes("dram.bytes_wr", Dram, &["sectors_written"], "bytes written to device memory",
        &[(NvprofMetric, "dram_write_bytes"), (Ncu, "dram__bytes_write.sum")]),
    bytes("dram.bytes", Dram, &["sectors_read", "sectors_written"], "bytes read from device memory and written to it",
        &[(Ncu, "dram__bytes.sum")]),
    rate("dram.read_throughput", Dram, SECTOR, &["sectors_read"], "bytes read from device memory, in the time that it is measured over",
        &[(NvprofMetric, "dram_read_throughput"), (Ncu, "dram__bytes_read.sum.per_second")]),
    rate("dram.write_throughput", Dram, SECTOR, &["sectors_written"], "bytes written to device memory, in the time that it is measured over",
        &[(NvprofMetric, "dram_write_throughput"), (Ncu, "dram__bytes_write.sum.per_second")]),
    ratio("dram.util", Dram, [Term::Sum(1e-10, &["busy_time"]), Term::Product(&[MeasuredSeconds])], ["%", "time that data buses carried data, of the time that it is measured over"],
        &[(Ncu, "dram__throughput.avg.pct_of_peak_sustained_elapsed"), (GpgpuSim, "bwutil")]),
    counter("dram.row_hits", Dram, &["row_hits"], &[]),
    ratio("dram.row_hit_rate", Dram, [percent(&["row_hits"]), of(&["row_hits", "row_misses", "row_conflicts"])], ["%", "requests that found their row open"],
        &[(GpgpuSim, "Row_Buffer_Locality")]),
    counter("dram.act", Dram, &["activates"], &[(GpgpuSim, "n_act")]),
    counter("dram.pre", Dram, &["precharges"], &[(GpgpuSim, "n_pre")]),
    counter("dram.ref", Dram, &["refreshes"], &[(GpgpuSim, "n_ref")]),
    ratio("dram.latency", Dram, [of(&["latency_read"]), of(&["requests_read"])], ["ps", "time from arrival of a load to its response"], &[]),

    // Crossbar, address translation.
    counter("noc.packets_req", Crossbar, &["packets_request"], &[(GpgpuSim, "icnt_total_pkts_simt_to_mem"), (Sst, "gpu_xbar.input_packet_count")]),
    counter("noc.packets_rsp", Crossbar, &["packets_response"], &[(GpgpuSim, "icnt_total_pkts_mem_to_simt"), (Sst, "gpu_xbar.output_packet_count")]),
    ratio("noc.latency_req", Crossbar, [of(&["packet_latency_request"]), of(&["packets_request"])], ["cycle", "cycles of the crossbar that a packet to a slice took"],
        &[(GpgpuSim, "avg_icnt2mem_latency")]),
    ratio("noc.latency_rsp", Crossbar, [of(&["packet_latency_response"]), of(&["packets_response"])], ["cycle", "cycles of the crossbar that a packet from a slice took"],
        &[(GpgpuSim, "avg_icnt2sh_latency"), (Sst, "gpu_xbar.packet_latency")]),
    counter("noc.credit_stalls", Crossbar, &["credit_stall_cycles"], &[(Sst, "gpu_xbar.output_port_stalls")]),
    counter("gmmu.requests", Gmmu, &["requests"], &[]),
    counter("gmmu.walks", Gmmu, &["walks"], &[]),
    counter("gmmu.far_faults", Gmmu, &["far_faults"], &[]),

    // Warp states: shares of the cycles of resident warps; together 100 %.
    stall("stall.selected", &["stall_none_selected"], "the warp issued", &[(Ncu, "smsp__warp_issue_stalled_selected_per_warp_active.pct")]),
    stall("stall.not_selected", &["stall_not_selected"], "it could issue, but the scheduler chose another warp",
        &[(NvprofMetric, "stall_not_selected"), (Ncu, "smsp__warp_issue_stalled_not_selected_per_warp_active.pct")]),
    stall("stall.long_scoreboard", &["stall_long_scoreboard"], "it waited for global or local memory",
        &[(NvprofMetric, "stall_memory_dependency"), (Ncu, "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct")]),
    stall("stall.short_scoreboard", &["stall_short_scoreboard"], "it waited for shared memory or an exchange between lanes",
        &[(Ncu, "smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct")]),
    stall("stall.wait", &["stall_wait"], "it waited for a fixed-latency result", &[(Ncu, "smsp__warp_issue_stalled_wait_per_warp_active.pct")]),
    stall("stall.exec_dependency", &["stall_short_scoreboard", "stall_wait"], "it waited for a result that does not come from memory: short_scoreboard and wait",
        &[(NvprofMetric, "stall_exec_dependency")]),
    stall("stall.barrier", &["stall_barrier"], "it waited at a CTA barrier", &[(Ncu, "smsp__warp_issue_stalled_barrier_per_warp_active.pct")]),
    stall("stall.membar", &["stall_membar"], "it waited at a memory fence", &[(Ncu, "smsp__warp_issue_stalled_membar_per_warp_active.pct")]),
    stall("stall.sync", &["stall_barrier", "stall_membar"], "it waited at a barrier or a fence", &[(NvprofMetric, "stall_sync")]),
    stall("stall.math_pipe_throttle", &["stall_math_pipe_throttle"], "it waited for an arithmetic pipe",
        &[(NvprofMetric, "stall_pipe_busy"), (Ncu, "smsp__warp_issue_stalled_math_pipe_throttle_per_warp_active.pct")]),
    stall("stall.lg_throttle", &["stall_lg_throttle"], "it waited for room in the memory pipe", &[(Ncu, "smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct")]),
    stall("stall.drain", &["stall_drain"], "it had ended, but for stores", &[(Ncu, "smsp__warp_issue_stalled_drain_per_warp_active.pct")]),
    stall("stall.memory_throttle", &["stall_lg_throttle", "stall_drain"], "it waited for room in the memory pipe, or for its last stores",
        &[(NvprofMetric, "stall_memory_throttle")]),
    stall("stall.branch_resolve", &["stall_branch_resolve"], "it waited for a branch to resolve", &[(Ncu, "smsp__warp_issue_stalled_branch_resolve_per_warp_active.pct")]),
    stall("stall.sleeping", &["stall_sleeping"], "it slept", &[(NvprofMetric, "stall_sleeping"), (Ncu, "smsp__warp_issue_stalled_sleeping_per_warp_active.pct")]),
    stall("stall.no_instruction", &["stall_no_instruction"], "it had just arrived, or waited for code",
        &[(NvprofMetric, "stall_inst_fetch"), (Ncu, "smsp__warp_issue_stalled_no_instruction_per_warp_active.pct")]),
    stall("stall.imc_miss", &["stall_imc_miss"], "it waited for a constant operand",
        &[(NvprofMetric, "stall_constant_memory_dependency"), (Ncu, "smsp__warp_issue_stalled_imc_miss_per_warp_active.pct")]),

    // Warps by state for each cycle in which a scheduler issued: their sum is the cycles that a warp takes for an instruction.
    stalled_warps("stalled_warps.selected", &["stall_none_selected"], "issued: one", &[(Ncu, "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.not_selected", &["stall_not_selected"], "could issue, but were not chosen", &[(Ncu, "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.long_scoreboard", &["stall_long_scoreboard"], "waited for global or local memory", &[(Ncu, "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.short_scoreboard", &["stall_short_scoreboard"], "waited for shared memory or an exchange between lanes", &[(Ncu, "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.wait", &["stall_wait"], "waited for a fixed-latency result", &[(Ncu, "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.barrier", &["stall_barrier"], "waited at a CTA barrier", &[(Ncu, "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.membar", &["stall_membar"], "waited at a memory fence", &[(Ncu, "smsp__average_warps_issue_stalled_membar_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.math_pipe_throttle", &["stall_math_pipe_throttle"], "waited for an arithmetic pipe", &[(Ncu, "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.lg_throttle", &["stall_lg_throttle"], "waited for room in the memory pipe", &[(Ncu, "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.drain", &["stall_drain"], "had ended, but for stores", &[(Ncu, "smsp__average_warps_issue_stalled_drain_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.branch_resolve", &["stall_branch_resolve"], "waited for a branch to resolve", &[(Ncu, "smsp__average_warps_issue_stalled_branch_resolve_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.sleeping", &["stall_sleeping"], "slept", &[(Ncu, "smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.no_instruction", &["stall_no_instruction"], "had just arrived, or waited for code", &[(Ncu, "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio")]),
    stalled_warps("stalled_warps.imc_miss", &["stall_imc_miss"], "waited for a constant operand", &[(Ncu, "smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio")]),
    ratio("sm.warp_latency", Sm, [of(&["warp_cycles_active"]), of(&["inst_issued"])], ["cycle", "cycles between two instructions of a warp: warp-cycles for each instruction issued"],
        &[(Ncu, "smsp__average_warp_latency_per_inst_issued.ratio")]),

    // The host, and what connects it.
    counter("link.bytes", Link, &["bytes"], &[(Sst, "lowlink.send_bit_count")]),
    counter("link.messages", Link, &["messages"], &[]),
    counter("pcie.bytes_h2d", Host, &["bytes_host_to_device"], &[(NvprofMetric, "pcie_total_data_received"), (Ncu, "pcie__read_bytes")]),
    counter("pcie.bytes_d2h", Host, &["bytes_device_to_host"], &[(NvprofMetric, "pcie_total_data_transmitted"), (Ncu, "pcie__write_bytes")]),
    counter("copy_engine.transfers", CopyEngine, &["transfers"], &[]),
    sum("copy_engine.bytes", CopyEngine, &["bytes_host_to_device", "bytes_device_to_host", "bytes_device_to_device", "bytes_filled"],
        ["byte", "bytes that copy engines copied and filled"], &[]),
    counter("host.calls", Host, &["calls"], &[]),
    counter("host.cycles_busy", Host, &["cycles_busy"], &[]),
    sum("host.cycles", Host, &["cycles_busy", "cycles_waiting"], ["cycle", "cycles of the host CPU, computing and waiting"], &[(Sst, "node0.cpu0.cycles")]),
    counter("uvm.gpu_faults", UnifiedMemory, &["batches"], &[(NvprofMetric, "Gpu page fault groups")]),
    counter("uvm.far_faults", UnifiedMemory, &["far_faults"], &[]),
    counter("uvm.cpu_faults", UnifiedMemory, &["host_faults"], &[(NvprofMetric, "Total CPU Page faults")]),
    counter("uvm.thrashed", UnifiedMemory, &["pages_thrashed"], &[]),
    counter("uvm.bytes", MigrationLink, &["bytes"], &[]),
    counter("uvm.transfers", MigrationLink, &["transfers"], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Dialect, find};
    use balar_actors::kinds::UNITS;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_made_of_what_its_units_count() {
        for metric in METRICS.iter().filter(|metric| metric.place != Launch) {
            let kind = UNITS
                .iter()
                .find(|kind| metric.place.is_signed_by(|sign| kind.counters.iter().any(|c| c.name == sign)));
            let counters = kind.expect("a kind of unit counts it").counters;
            for name in metric.formula.counters() {
                let counter = counters.iter().find(|counter| counter.name == name);
                assert!(
                    counter.is_some_and(|counter| !counter.maximum),
                    "{metric}: {name} is not counted, or a maximum"
                );
            }
            assert!(!metric.meaning().is_empty(), "{metric}");
            assert!(!metric.unit().is_empty() || metric.name == "sm.achieved_occupancy", "{metric}");
        }
        for metric in METRICS {
            let Formula::Greatest(parts) = metric.formula else { continue };
            let is_known = |part: &&str| METRICS.iter().any(|it| it.name == *part && it.is_of_launches());
            assert!(!parts.is_empty() && parts.iter().all(is_known), "{metric}");
        }
        let of_launches = METRICS.iter().filter(|metric| metric.place == Launch);
        of_launches.for_each(|metric| assert!(metric.is_of_launches() && !metric.meaning().is_empty(), "{metric}"));
    }

    #[test]
    fn a_name_leads_to_one_metric() {
        let mut seen = BTreeSet::new();
        for metric in METRICS {
            for name in Dialect::ALL.into_iter().flat_map(|dialect| metric.names_in(dialect)).collect::<BTreeSet<_>>() {
                assert!(seen.insert(name), "{name} stands for two metrics");
                let found = find(name);
                assert!(found.first().is_some_and(|choice| choice.metric.name == metric.name), "{name}");
            }
        }
        assert!(METRICS.len() > 120, "{}", METRICS.len());
    }

    #[test]
    fn sub_cores_have_no_least_and_no_greatest() {
        // The counts are those of SMs.
        for metric in METRICS {
            let of_sub_cores = metric.names_in(Ncu).filter(|name| name.starts_with("smsp__"));
            of_sub_cores.for_each(|name| assert!(name.contains('.'), "{name} would have .min and .max"));
        }
    }
}
