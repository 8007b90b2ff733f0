//! Kernels with larger stacks than their own.

use crate::code::tables::ProgramTable;
use crate::process::context::DEFAULT_STACK;
use balar_isa::program::Program;
use balar_protocol::cuda::{Code, ProgramId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Programs with larger stacks, by the original program and the stack: their numbers and the local memory of a thread.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LargerStacks(BTreeMap<(ProgramId, u32), (Code, u32)>);

impl LargerStacks {
    /// Code with the local memory of a thread: a kernel whose stack depth is not known runs with the stack that the program has set,
    /// where that is more than its own.
    pub fn with_stack(
        &mut self,
        stack_bytes: u64,
        code: &Code,
        local_bytes: u32,
        programs: &ProgramTable,
    ) -> (Code, u32) {
        let bytes = stack_bytes as u32;
        if u64::from(bytes) == DEFAULT_STACK {
            return (code.clone(), local_bytes);
        }
        let key = (code.id(), bytes);
        let enlarged = self.0.get(&key).cloned().or_else(|| {
            let program = code.program::<Program>()?.with_stack(bytes)?;
            let local_bytes = program.resources().local_bytes;
            let enlarged = (programs.add(Arc::new(program)), local_bytes);
            self.0.insert(key, enlarged.clone());
            Some(enlarged)
        });
        enlarged.unwrap_or_else(|| (code.clone(), local_bytes))
    }

    /// The code of all of them, to complete it.
    pub fn codes_mut(&mut self) -> impl Iterator<Item = &mut Code> {
        self.0.values_mut().map(|(code, _)| code)
    }

    /// A program with a larger stack, as a state has it.
    #[cfg(test)]
    pub fn insert(&mut self, key: (ProgramId, u32), enlarged: (Code, u32)) {
        self.0.insert(key, enlarged);
    }
}
