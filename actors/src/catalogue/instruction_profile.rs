//! The counts of each instruction in a run that asks for them, in one place for the SMs of all GPUs.
//!
//! An SM collects by itself, and gives its counts when other code comes to it and when the run ends. All counts are sums, so that the order
//! of the SMs does not matter.

use balar_isa::program::Program;
use balar_protocol::GpuDescription;
use balar_protocol::cuda::ProgramId;
use balar_protocol::statistics::StatisticDefinition;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The counts of each instruction of a kernel, over all its launches on a GPU and over the GPU's SMs.
#[derive(Clone, Debug)]
pub struct KernelProfile {
    /// Path of the GPU.
    pub gpu: String,
    /// The kernel with the functions that it can reach.
    pub program: Arc<Program>,
    /// The counters, a column each.
    pub columns: &'static [StatisticDefinition],
    /// Row by row, by program counter.
    counts: Vec<u64>,
}

impl KernelProfile {
    /// The counts of the instruction at `pc`, in the order of the columns.
    pub fn counts(&self, pc: u32) -> &[u64] {
        let width = self.columns.len();
        &self.counts[pc as usize * width..][..width]
    }
}

/// The room: profiles by GPU, which has a number, and program.
#[derive(Debug, Default)]
pub struct InstructionProfiles {
    gpus: Vec<String>,
    profiles: Mutex<BTreeMap<(usize, ProgramId), KernelProfile>>,
}

impl InstructionProfiles {
    /// The profiles of a node with these GPUs.
    pub fn of(gpus: &[GpuDescription]) -> InstructionProfiles {
        InstructionProfiles { gpus: gpus.iter().map(|gpu| gpu.part.clone()).collect(), profiles: Mutex::default() }
    }

    /// A program has come to an SM of a GPU, which counts `columns` of each of its instructions.
    pub fn enter(
        &self,
        gpu: usize,
        (id, program): (ProgramId, &Arc<Program>),
        columns: &'static [StatisticDefinition],
    ) {
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        profiles.entry((gpu, id)).or_insert_with(|| KernelProfile {
            gpu: self.gpus.get(gpu).cloned().unwrap_or_default(),
            program: Arc::clone(program),
            columns,
            counts: vec![0; program.len() * columns.len()],
        });
    }

    /// Adds the counts of an SM of a GPU for a program that has come to it, row by row.
    pub fn add(&self, gpu: usize, id: ProgramId, counts: impl Iterator<Item = u64>) {
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(profile) = profiles.get_mut(&(gpu, id)) {
            profile.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    /// All profiles, by GPU and in the order in which the programs were loaded. The room is empty then.
    pub fn take(&self) -> Vec<KernelProfile> {
        std::mem::take(&mut *self.profiles.lock().unwrap_or_else(PoisonError::into_inner)).into_values().collect()
    }
}
