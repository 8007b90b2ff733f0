//! Any workload with its data in managed memory: the same kernels and checks, but the host writes its inputs and reads its results in
//! place.
//!
//! Allocations become managed ones, copies to the device become the host's own writes, and copies from it become a synchronisation with the
//! host's own reads, as a program is rewritten for unified memory. Buffers that a script keeps on the device stay there.

use crate::parameters::Memory;
use crate::script::{Action, Buffer, Place, Queue};
use std::collections::{BTreeSet, VecDeque};

impl Memory {
    /// The actions of a script whose data are here.
    pub fn actions(self, actions: VecDeque<Action>) -> VecDeque<Action> {
        if self == Memory::Device {
            return actions;
        }
        let mut rewriting = Rewriting {
            prefetches: self == Memory::Prefetched,
            actions: VecDeque::new(),
            sizes: vec![],
            away: BTreeSet::new(),
        };
        for action in actions {
            rewriting.add(action);
        }
        rewriting.actions
    }
}

/// The actions so far, with managed memory.
struct Rewriting {
    prefetches: bool,
    actions: VecDeque<Action>,
    /// The bytes of each buffer where it is managed.
    sizes: Vec<Option<u64>>,
    /// Managed buffers that are not on the GPU by the program's own doing.
    away: BTreeSet<Buffer>,
}

impl Rewriting {
    fn is_managed(&self, buffer: Buffer) -> bool {
        self.sizes[buffer.index()].is_some()
    }

    /// Waits for the work of a queue.
    fn wait(&mut self, queue: Queue) {
        self.actions.push_back(Action::synchronize(queue));
    }

    /// The host accesses a buffer by `action`, and it is on the host afterwards.
    fn access(&mut self, buffer: Buffer, action: Action) {
        self.away.insert(buffer);
        self.actions.push_back(action);
    }

    /// Adds the actions that stand for an action of the script.
    fn add(&mut self, action: Action) {
        match action {
            Action::Allocate { bytes, place } => {
                let is_managed = place == Place::Device;
                if is_managed {
                    self.away.insert(Buffer::at(self.sizes.len()));
                }
                self.sizes.push(is_managed.then_some(bytes));
                let place = if is_managed { Place::Managed } else { place };
                self.actions.push_back(Action::Allocate { bytes, place });
            }
            Action::Release(buffer) => {
                self.away.remove(&buffer);
                self.actions.push_back(action);
            }
            Action::Upload { buffer, data, queue } if self.is_managed(buffer) => {
                if queue != Queue::Default {
                    self.wait(queue);
                }
                self.access(buffer, Action::Write { buffer, data });
            }
            Action::UploadRing { buffer, ring } if self.is_managed(buffer) => {
                self.access(buffer, Action::WriteRing { buffer, ring });
            }
            Action::Fill { buffer, value, bytes, queue } if self.is_managed(buffer) => {
                self.wait(queue);
                self.access(buffer, Action::Write { buffer, data: vec![value; bytes as usize].into() });
            }
            Action::Download { buffer, range, transfer, queue } if self.is_managed(buffer) => {
                self.wait(queue);
                if self.prefetches {
                    self.actions.push_back(Action::Prefetch { buffer, range: range.clone(), device: None, queue });
                    self.wait(queue);
                }
                self.access(buffer, Action::Read { buffer, range, transfer });
            }
            Action::Launch { shape, .. } if self.prefetches => {
                for buffer in std::mem::take(&mut self.away) {
                    let range = 0..self.sizes[buffer.index()].unwrap_or(0);
                    self.actions.push_back(Action::Prefetch { buffer, range, device: Some(0), queue: shape.queue });
                }
                self.actions.push_back(action);
            }
            other => self.actions.push_back(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Argument, Check, Outcome, Script, Shape, Transfer};
    use balar_host::{Call, CallResult, HostProgram, Verification};

    struct Read(Transfer);

    impl Check for Read {
        fn verify(&self, outcome: &Outcome) -> Result<(), String> {
            let values = outcome.values::<u32>(self.0, 2)?;
            if *values == [5, 6] { Ok(()) } else { Err(format!("{values:?}")) }
        }
    }

    /// The calls of a program that fills a buffer, launches a kernel with it and one of the device's own, and reads a part.
    fn calls(memory: Memory) -> Vec<Call> {
        let mut script = Script::default();
        let own = script.allocate_on_device(4);
        let buffer = script.allocate_with(&[1_u32, 2, 3]);
        script.fill(own, 0, 4, Queue::Default);
        script.launch("k", Shape::linear(1, 32), &[Argument::Buffer(buffer), Argument::Buffer(own)]);
        let result = script.download_at(buffer, 4, 8, Queue::Default);
        script.release(buffer);
        script.release(own);
        let mut program = script.finish(Read(result)).expect("a program").with_memory(memory);
        let (mut result, mut calls) = (CallResult::Start, Vec::new());
        loop {
            let call = program.next(result);
            result = match &call {
                Call::Malloc { .. } if memory != Memory::Device => CallResult::Pointer(0x1000),
                Call::Malloc { bytes: 4 } => CallResult::Pointer(0x1000),
                Call::Malloc { .. } | Call::MallocManaged { .. } => CallResult::Pointer(0x5000),
                Call::ReadManaged { .. } => CallResult::Data(bytemuck::cast_slice::<u32, u8>(&[5, 6]).to_vec().into()),
                Call::Copy { transfer, .. } if calls.iter().any(|call| matches!(call, Call::Launch(_))) => {
                    assert_eq!(*transfer, 0);
                    CallResult::Data(bytemuck::cast_slice::<u32, u8>(&[5, 6]).to_vec().into())
                }
                _ => CallResult::None,
            };
            calls.push(call);
            if matches!(calls.last(), Some(Call::Exit { .. })) {
                assert_eq!(program.verification(), &Verification::Passed);
                return calls;
            }
        }
    }

    #[test]
    fn managed_memory_is_filled_and_read_by_the_host() {
        let data = bytemuck::cast_slice::<u32, u8>(&[1, 2, 3]).to_vec();
        let before = [
            Call::Malloc { bytes: 4 },
            Call::MallocManaged { bytes: 12 },
            Call::WriteManaged { pointer: 0x5000, data: data.into() },
            Call::memset(0x1000, 0, 4, 0, false),
        ];
        let after = [
            Call::ReadManaged { pointer: 0x5004, bytes: 8 },
            Call::Free { pointer: 0x5000 },
            Call::Free { pointer: 0x1000 },
            Call::Exit { error: None },
        ];
        let prefetch = |pointer, bytes, device| Call::Prefetch { pointer, bytes, device, stream: 0 };

        let managed = calls(Memory::Managed);
        assert_eq!(managed[..4], before);
        assert!(matches!(managed[4], Call::Launch(_)));
        assert_eq!(managed[5], Call::DeviceSynchronize);
        assert_eq!(managed[6..], after);

        let prefetched = calls(Memory::Prefetched);
        assert_eq!(prefetched[..4], before);
        assert_eq!(prefetched[4], prefetch(0x5000, 12, Some(0)));
        assert!(matches!(prefetched[5], Call::Launch(_)));
        let fetched = [Call::DeviceSynchronize, prefetch(0x5004, 8, None), Call::DeviceSynchronize];
        assert_eq!(prefetched[6..9], fetched);
        assert_eq!(prefetched[9..], after);
    }

    #[test]
    fn device_memory_is_copied() {
        let device = calls(Memory::Device);
        assert!(device.iter().all(|call| !matches!(call, Call::MallocManaged { .. } | Call::ReadManaged { .. })));
        assert_eq!(device.iter().filter(|call| matches!(call, Call::Copy { .. })).count(), 2);
    }
}
