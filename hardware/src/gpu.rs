//! A host program's calls, carried out on a GPU.

use crate::driver::{Driver, DriverError, Handle, Shape};
use crate::stopwatch::Stopwatch;
use balar_host::call::{CopyEnd, Launch};
use balar_host::{Call, CallResult, HostProgram};
use std::collections::BTreeMap;
use std::ptr::slice_from_raw_parts_mut;

/// Why a program cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The driver refuses.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A call that no built-in workload makes.
    #[error("{0} is no call that this program can make of a GPU")]
    Unknown(&'static str),
    /// The program gave up.
    #[error("the workload gave up: {0}")]
    GaveUp(String),
}

/// A kernel launch, and the time from when the stream came to it until it had ended.
#[derive(Clone, Debug)]
pub struct LaunchTime {
    /// The kernel.
    pub kernel: String,
    /// In microseconds.
    pub microseconds: f64,
}

/// A copy in a stream, whose bytes are on their way.
struct Arrival {
    transfer: u32,
    bytes: Vec<u8>,
}

/// A GPU with the code of one workload.
pub struct Gpu<'driver> {
    driver: &'driver Driver,
    module: Handle,
    kernels: BTreeMap<String, Handle>,
    /// Streams by number; number 0 is the default stream.
    streams: Vec<Handle>,
    /// What asynchronous copies still read.
    departing: Vec<std::sync::Arc<[u8]>>,
    arriving: Vec<Arrival>,
    /// Marks before and after each launch.
    launches: Vec<(String, Handle, Handle)>,
    begun: Stopwatch,
}

impl<'driver> Gpu<'driver> {
    /// Loads the code.
    pub fn new(driver: &'driver Driver, code: &[u8]) -> Result<Gpu<'driver>, DriverError> {
        Ok(Gpu {
            driver,
            module: driver.load(code)?,
            kernels: BTreeMap::new(),
            streams: vec![Handle::DEFAULT_STREAM],
            departing: Vec::new(),
            arriving: Vec::new(),
            launches: Vec::new(),
            begun: Stopwatch::start(),
        })
    }

    /// Runs a program to its end; gives the time of each launch.
    pub fn run(mut self, program: &mut dyn HostProgram) -> Result<Vec<LaunchTime>, RunError> {
        let mut result = CallResult::Start;
        loop {
            match program.next(result) {
                Call::Exit { error: None } => break,
                Call::Exit { error: Some(failure) } => return Err(RunError::GaveUp(format!("{failure:?}"))),
                call => result = self.call(call, program)?,
            }
        }
        self.wait(None, program)?;
        self.driver.unload(self.module)?;
        let times = self.launches.into_iter().map(|(kernel, start, end)| {
            self.driver.between(start, end).map(|microseconds| LaunchTime { kernel, microseconds })
        });
        Ok(times.collect::<Result<_, _>>()?)
    }

    fn stream(&self, number: u32) -> Handle {
        self.streams[number as usize]
    }

    /// Waits, and hands over what has arrived meanwhile.
    fn wait(&mut self, stream: Option<Handle>, program: &mut dyn HostProgram) -> Result<(), DriverError> {
        self.driver.wait(stream)?;
        if !self.arriving.is_empty() {
            self.driver.wait(None)?;
        }
        for Arrival { transfer, bytes } in self.arriving.drain(..) {
            program.receive(transfer, bytes.into());
        }
        Ok(())
    }

    fn call(&mut self, call: Call, program: &mut dyn HostProgram) -> Result<CallResult, RunError> {
        match call {
            Call::Malloc { bytes } => return Ok(CallResult::Pointer(self.driver.memory(bytes, false)?)),
            Call::MallocManaged { bytes } => return Ok(CallResult::Pointer(self.driver.memory(bytes, true)?)),
            Call::Free { pointer } => self.driver.free(pointer)?,
            Call::Copy { destination, source, shape, transfer, stream, asynchronous } => {
                return self.copy(destination, source, shape.bytes(), transfer, stream, asynchronous);
            }
            Call::Memset { pointer, shape, value, stream, element_bytes: 1, .. } if shape.is_row() => {
                self.driver.set(pointer, value as u8, shape.bytes(), self.stream(stream))?;
            }
            Call::Prefetch { pointer, bytes, device, stream } => {
                self.driver.bring(pointer, bytes, device.is_none(), self.stream(stream))?;
            }
            Call::WriteManaged { pointer, data } => {
                let bytes = data.to_vec();
                // SAFETY: the program has allocated this managed memory, and its kernels have ended.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer as *mut u8, bytes.len()) };
            }
            Call::ReadManaged { pointer, bytes } => {
                // SAFETY: as above.
                let data = unsafe { &*slice_from_raw_parts_mut(pointer as *mut u8, bytes as usize) };
                return Ok(CallResult::Data(data.to_vec().into()));
            }
            Call::Launch(launch) => self.launch(launch)?,
            Call::StreamCreate { .. } => {
                self.streams.push(self.driver.stream()?);
                return Ok(CallResult::Stream(self.streams.len() as u32 - 1));
            }
            Call::StreamDestroy { stream } => {
                let stream = self.stream(stream);
                self.wait(Some(stream), program)?;
                self.driver.end_stream(stream)?;
            }
            Call::StreamSynchronize { stream } => self.wait(Some(self.stream(stream)), program)?,
            Call::DeviceSynchronize => self.wait(None, program)?,
            Call::Compute { nanoseconds } => std::thread::sleep(std::time::Duration::from_nanos(nanoseconds)),
            Call::ReadClock => {
                return Ok(CallResult::Time { picoseconds: self.begun.elapsed().as_nanos() as u64 * 1000 });
            }
            other => return Err(RunError::Unknown(other.name())),
        }
        Ok(CallResult::None)
    }

    fn copy(
        &mut self,
        destination: CopyEnd,
        source: CopyEnd,
        length: u64,
        transfer: u32,
        stream: u32,
        asynchronous: bool,
    ) -> Result<CallResult, RunError> {
        let stream = self.stream(stream);
        let later = asynchronous.then_some(stream);
        match (destination, source) {
            (CopyEnd::Memory { address, .. }, CopyEnd::Bytes(data)) => {
                if let Some(data) = data.data() {
                    self.driver.copy_to(address, data, later)?;
                    self.departing.push(data.clone());
                }
            }
            (CopyEnd::Bytes(_), CopyEnd::Memory { address, .. }) => {
                let mut bytes = vec![0; length as usize];
                self.driver.copy_from(&mut bytes, address, later)?;
                if !asynchronous {
                    return Ok(CallResult::Data(bytes.into()));
                }
                self.arriving.push(Arrival { transfer, bytes });
            }
            (CopyEnd::Memory { address: to, .. }, CopyEnd::Memory { address: from, .. }) => {
                self.driver.copy(to, from, length, stream)?;
            }
            _ => return Err(RunError::Unknown("a copy of an array")),
        }
        Ok(CallResult::None)
    }

    fn launch(&mut self, launch: Launch) -> Result<(), DriverError> {
        let name = launch.function.name.to_string();
        let kernel = match self.kernels.get(&name) {
            Some(kernel) => *kernel,
            None => self.driver.kernel(self.module, &name, launch.shared_memory_bytes)?,
        };
        self.kernels.insert(name.clone(), kernel);
        let shape = Shape {
            grid: launch.grid,
            block: launch.block,
            shared_memory_bytes: launch.shared_memory_bytes,
            cooperative: launch.cooperative,
        };
        let stream = self.stream(launch.stream);
        let start = self.driver.mark(stream)?;
        self.driver.launch(kernel, shape, stream, &launch.parameters)?;
        let end = self.driver.mark(stream)?;
        self.launches.push((name, start, end));
        Ok(())
    }
}
