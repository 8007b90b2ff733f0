//! Any workload with its device memory managed: the same kernels and checks, but the host writes its inputs and reads its results in
//! place.
//!
//! It stands between a host program and the CUDA driver. Allocations become managed ones; copies to the device become the host's own
//! writes, and copies from it a synchronisation with the host's own reads, as a program is rewritten for unified memory.

use balar_host::call::CopyEnd;
use balar_host::{Call, CallResult, HostProgram, Measurement, Verification};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Where a workload keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// In device memory, by `cudaMalloc` and `cudaMemcpy`.
    Device,
    /// In managed memory, whose pages move as they are accessed.
    Managed,
    /// In managed memory that is brought to the GPU before the first launch, and back before it is read (`cudaMemPrefetchAsync`).
    Prefetched,
}

/// What becomes of the result of a call.
enum Then {
    /// The program gets it.
    Give,
    /// The program does not know of the call.
    Drop,
    /// The program gets it, and the pointer is one to so many bytes.
    Pointer(u64),
    /// The program receives the bytes of a copy, and that the call is done.
    Receive(u32),
}

/// A host program whose device memory is managed.
pub(crate) struct ManagedProgram {
    program: Box<dyn HostProgram>,
    prefetches: bool,
    /// Calls to make before the program is asked again.
    calls: VecDeque<(Call, Then)>,
    then: Then,
    /// By address: the bytes of managed allocations that are not on the GPU by the program's own doing.
    elsewhere: BTreeMap<u64, u64>,
    sizes: BTreeMap<u64, u64>,
}

impl ManagedProgram {
    /// The program, with managed memory.
    pub fn new(program: Box<dyn HostProgram>, memory: Memory) -> ManagedProgram {
        ManagedProgram {
            program,
            prefetches: memory == Memory::Prefetched,
            calls: VecDeque::new(),
            then: Then::Give,
            elsewhere: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    fn add(&mut self, call: Call, then: Then) {
        self.calls.push_back((call, then));
    }

    /// The allocation that holds an address.
    fn allocation(&self, address: u64) -> Option<(u64, u64)> {
        self.sizes.range(..=address).next_back().map(|(start, bytes)| (*start, *bytes))
    }

    /// The host accesses a range: it is on the host afterwards.
    fn leaves_gpu(&mut self, address: u64) {
        if let Some((start, bytes)) = self.allocation(address) {
            self.elsewhere.insert(start, bytes);
        }
    }

    /// Waits for what was asked of a stream.
    fn wait(&mut self, stream: u32) {
        self.add(if stream == 0 { Call::DeviceSynchronize } else { Call::StreamSynchronize { stream } }, Then::Drop);
    }

    /// The calls that stand for one of the program's.
    fn translate(&mut self, call: Call) {
        match call {
            Call::Malloc { bytes } => self.add(Call::MallocManaged { bytes }, Then::Pointer(bytes)),
            Call::Free { pointer } => {
                self.sizes.remove(&pointer);
                self.elsewhere.remove(&pointer);
                self.add(call, Then::Give);
            }
            Call::Copy {
                destination: CopyEnd::Memory { address, .. }, source: CopyEnd::Bytes(data), stream, ..
            } => {
                if stream != 0 {
                    self.wait(stream);
                }
                self.leaves_gpu(address);
                self.add(Call::WriteManaged { pointer: address, data }, Then::Give);
            }
            Call::Copy {
                destination: CopyEnd::Bytes(_),
                source: CopyEnd::Memory { address, .. },
                shape,
                transfer,
                stream,
                asynchronous,
            } => {
                self.wait(stream);
                self.leaves_gpu(address);
                if self.prefetches {
                    let (pointer, bytes) = (address, shape.bytes());
                    self.add(Call::Prefetch { pointer, bytes, device: None, stream }, Then::Drop);
                    self.wait(stream);
                }
                let then = if asynchronous { Then::Receive(transfer) } else { Then::Give };
                self.add(Call::ReadManaged { pointer: address, bytes: shape.bytes() }, then);
            }
            Call::Memset { pointer, shape, value, element_bytes: 1, stream, .. } if shape.is_row() => {
                self.wait(stream);
                self.leaves_gpu(pointer);
                let data: Arc<[u8]> = vec![value as u8; shape.bytes() as usize].into();
                self.add(Call::WriteManaged { pointer, data: data.into() }, Then::Give);
            }
            Call::Launch(launch) => {
                if self.prefetches {
                    for (pointer, bytes) in std::mem::take(&mut self.elsewhere) {
                        let stream = launch.stream;
                        self.add(Call::Prefetch { pointer, bytes, device: Some(0), stream }, Then::Drop);
                    }
                }
                self.add(Call::Launch(launch), Then::Give);
            }
            other => self.add(other, Then::Give),
        }
    }
}

impl HostProgram for ManagedProgram {
    fn next(&mut self, previous: CallResult) -> Call {
        let mut given = previous;
        loop {
            let is_error = matches!(given, CallResult::Error(_));
            match std::mem::replace(&mut self.then, Then::Give) {
                Then::Drop if !is_error => {}
                then => {
                    if is_error {
                        self.calls.clear();
                    }
                    if let (Then::Pointer(bytes), CallResult::Pointer(address)) = (&then, &given) {
                        self.sizes.insert(*address, *bytes);
                        self.elsewhere.insert(*address, *bytes);
                    }
                    if let (Then::Receive(transfer), CallResult::Data(data)) = (&then, &given) {
                        if let Some(data) = data.data() {
                            self.program.receive(*transfer, Arc::clone(data));
                        }
                        given = CallResult::None;
                    }
                    let call = self.program.next(given);
                    self.translate(call);
                }
            }
            if let Some((call, then)) = self.calls.pop_front() {
                self.then = then;
                return call;
            }
            given = CallResult::None;
        }
    }

    fn receive(&mut self, transfer: u32, data: Arc<[u8]>) {
        self.program.receive(transfer, data);
    }

    fn printed(&mut self, text: &[u8]) {
        self.program.printed(text);
    }

    fn verification(&self) -> &Verification {
        self.program.verification()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.program.measurements()
    }

    fn planned_ctas(&self) -> Option<u64> {
        self.program.planned_ctas()
    }
}
