//! What the scheduler shows on the live board: CTAs that have ended, the kernel that started last, and how far each kernel is.

use crate::engine::{Gauge, LiveBoard};
use crate::gpu::gauges::{CTAS_DONE, KERNEL_CTAS_BEGUN, KERNEL_CTAS_ENDED, KERNEL_INSTRUCTIONS};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The gauges of the scheduler.
#[derive(Default)]
pub(super) struct Progress {
    ctas_done: Gauge,
    board: LiveBoard,
    kernel_name: String,
    kernels: BTreeMap<Arc<str>, OfKernel>,
    /// The kernel that was asked for last: CTAs of a launch come and end one after another, and none of them is to look for its name.
    latest: Option<(Arc<str>, OfKernel)>,
}

/// The gauges of a kernel, which all schedulers share.
#[derive(Clone)]
struct OfKernel {
    begun: Gauge,
    ended: Gauge,
    instructions: Gauge,
}

impl Progress {
    /// Of the scheduler at `path`.
    pub fn on(board: &LiveBoard, path: &str) -> Progress {
        Progress {
            ctas_done: board.gauge(&format!("{path}{CTAS_DONE}")),
            board: board.clone(),
            kernel_name: format!("{path}.kernel"),
            kernels: BTreeMap::new(),
            latest: None,
        }
    }

    /// A kernel of this name starts.
    pub fn kernel_starts(&mut self, name: &str) {
        self.board.set_text(&self.kernel_name, name);
    }

    /// CTAs have ended.
    pub fn ctas_ended(&self, count: u64) {
        self.ctas_done.add(count);
    }

    /// A CTA of a launch that is timed has been placed.
    pub fn timed_cta_begins(&mut self, kernel: &Arc<str>) {
        self.kernel(kernel).begun.add(1);
    }

    /// A CTA of a launch that is timed has ended, after so many warp instructions.
    pub fn timed_cta_ended(&mut self, kernel: &Arc<str>, instructions: u64) {
        let kernel = self.kernel(kernel);
        kernel.instructions.add(instructions);
        kernel.ended.add(1);
    }

    #[inline]
    fn kernel(&mut self, name: &Arc<str>) -> &OfKernel {
        let latest = self.latest.take().filter(|(known, _)| Arc::ptr_eq(known, name));
        let latest = latest.unwrap_or_else(|| (Arc::clone(name), self.named(name)));
        &self.latest.insert(latest).1
    }

    fn named(&mut self, name: &Arc<str>) -> OfKernel {
        let board = &self.board;
        let kernel = self.kernels.entry(Arc::clone(name)).or_insert_with(|| OfKernel {
            begun: board.gauge(&format!("{KERNEL_CTAS_BEGUN}{name}")),
            ended: board.gauge(&format!("{KERNEL_CTAS_ENDED}{name}")),
            instructions: board.gauge(&format!("{KERNEL_INSTRUCTIONS}{name}")),
        });
        kernel.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_share_the_gauges_of_a_kernel() {
        let board = LiveBoard::default();
        let mut schedulers = ["gpu.scheduler", "gpu2.scheduler"].map(|path| Progress::on(&board, path));
        for scheduler in &mut schedulers {
            scheduler.kernel_starts("scale");
            scheduler.timed_cta_begins(&"scale".into());
            scheduler.timed_cta_begins(&"scale".into());
        }
        schedulers[1].ctas_ended(1);
        schedulers[1].timed_cta_ended(&"scale".into(), 70);
        let shown = board.values();
        let shown: Vec<(&str, u64)> = shown.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [
            ("gpu.scheduler.ctas_done", 0),
            ("gpu2.scheduler.ctas_done", 1),
            ("kernel_ctas_begun.scale", 4),
            ("kernel_ctas_ended.scale", 1),
            ("kernel_instructions.scale", 70),
        ];
        assert_eq!(shown, expected);
        assert_eq!(board.text("gpu2.scheduler.kernel").as_deref(), Some("scale"));
    }
}
