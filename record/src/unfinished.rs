//! Kernels that were still running when a run ended: which they are, and how far they got.

use crate::kernel_name::readable_name;
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::KernelRecord;
use balar_protocol::{ProcessId, SimTime};

/// Most kernels that a message names.
const MOST: usize = 4;

/// CTAs of a launch.
pub fn ctas(kernel: &KernelRecord) -> u64 {
    kernel.grid.iter().map(|&extent| u64::from(extent)).product()
}

/// CTAs of a launch that have run to their end; its counters are sums over these and those that were under way.
pub fn ctas_ended(kernel: &KernelRecord) -> u64 {
    kernel.counters.ctas.ctas_launched.saturating_sub(kernel.ctas_unfinished)
}

/// The kernels that were running at the end of the run, each with its position; `None` where there is none.
pub fn text(kernels: &KernelRecords, end: SimTime) -> Option<String> {
    let end = end.picoseconds();
    let running: Vec<KernelRecord> =
        kernels.iter().filter(|kernel| !kernel.completed && kernel.end_ps == end).collect();
    let has_several_processes = kernels.iter().any(|kernel| kernel.process != ProcessId::FIRST);
    let mut positions: Vec<String> =
        running.iter().take(MOST).map(|kernel| position(kernel, has_several_processes)).collect();
    if running.len() > MOST {
        positions.push(format!("{} more", running.len() - MOST));
    }
    let word = if running.len() == 1 { "kernel" } else { "kernels" };
    (!positions.is_empty()).then(|| format!("{word} {}", positions.join(", ")))
}

fn position(kernel: &KernelRecord, has_several_processes: bool) -> String {
    let process = if has_several_processes { format!("process {}, ", kernel.process) } else { String::new() };
    let after = kernel.timed_cycles().map(|cycles| format!(" after {cycles} SM cycles")).unwrap_or_default();
    format!(
        "{} on {} ({process}launch {}, stream {}: {} of {} CTAs done{after})",
        readable_name(&kernel.name),
        kernel.gpu,
        kernel.launch.0,
        kernel.stream,
        ctas_ended(kernel),
        ctas(kernel)
    )
}
