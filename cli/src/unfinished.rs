//! Kernels that were still running when a run ended: which they are, and how far they got.

use crate::kernel_name::readable_name;
use crate::result::RunRecord;
use balar_protocol::ProcessId;
use balar_protocol::statistics::KernelRecord;

/// Most kernels that a message names.
const MOST: usize = 4;

/// CTAs of a launch.
pub fn ctas(kernel: &KernelRecord) -> u64 {
    kernel.grid.iter().map(|&extent| u64::from(extent)).product()
}

/// CTAs of a launch that have ended: its counters are sums over these.
pub fn ctas_ended(kernel: &KernelRecord) -> u64 {
    kernel.counters.ctas_launched
}

/// The kernels that were running at the end of the run, each with its position; `None` where there is none.
pub fn text(record: &RunRecord) -> Option<String> {
    let kernels = &record.statistics.kernels;
    let end = record.sim_time.picoseconds();
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
    format!(
        "{} on {} ({process}launch {}, stream {}: {} of {} CTAs done after {} SM cycles)",
        readable_name(&kernel.name),
        kernel.gpu,
        kernel.launch.0,
        kernel.stream,
        ctas_ended(kernel),
        ctas(kernel),
        kernel.cycles
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Ending;
    use crate::result::tests::record;
    use balar_protocol::kernel_records::KernelRecords;

    fn change(record: &mut RunRecord, launch: usize, change: impl FnOnce(&mut KernelRecord)) {
        let mut kernels: Vec<KernelRecord> = record.statistics.kernels.iter().collect();
        change(&mut kernels[launch]);
        record.statistics.kernels = KernelRecords::default();
        kernels.iter().for_each(|kernel| record.statistics.kernels.push(kernel));
    }

    /// The record, interrupted in its last launch, 3 of whose 8 CTAs have ended.
    fn interrupted() -> RunRecord {
        let mut record = record();
        record.ending = Ending::Interrupted;
        let end = record.sim_time.picoseconds();
        change(&mut record, 2, |kernel| {
            (kernel.completed, kernel.end_ps, kernel.cycles) = (false, end, 77);
            kernel.name = "_Z4spinIiEvPVT_".into();
            kernel.counters.ctas_launched = 3;
        });
        record
    }

    #[test]
    fn a_run_without_an_unfinished_kernel_says_nothing_of_any() {
        assert_eq!(text(&record()), None);
        let mut failed = interrupted();
        change(&mut failed, 2, |kernel| kernel.end_ps -= 1);
        assert_eq!(text(&failed), None, "it ended before the run did");
    }

    #[test]
    fn an_unfinished_kernel_has_a_position() {
        let mut record = interrupted();
        let said = "kernel spin<int> on gpu (launch 2, stream 0: 3 of 8 CTAs done after 77 SM cycles)";
        assert_eq!(text(&record).as_deref(), Some(said));
        let problem = record.problem().expect("it was interrupted");
        assert_eq!(
            problem,
            format!("interrupted at 3000000 ps of simulated time in {said}; the statistics are partial")
        );
        change(&mut record, 0, |kernel| kernel.process = ProcessId(2));
        assert!(text(&record).is_some_and(|text| text.contains("(process 0, launch 2")), "{:?}", text(&record));
    }

    #[test]
    fn the_document_tells_ctas_of_launches_that_did_not_complete() {
        let record = interrupted();
        let mut text = Vec::new();
        crate::output::json::write(&record, &mut text).expect("written to memory");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let (first, last) = (&json["kernels"][0], &json["kernels"][2]);
        assert_eq!((&last["completed"], &last["ctas"], &last["ctas_ended"]), (&false.into(), &8.into(), &3.into()));
        assert_eq!((&first["completed"], &first["ctas"]), (&true.into(), &serde_json::Value::Null));
    }
}
