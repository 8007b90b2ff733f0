//! A Balar trace as a program.

use super::folder::BalarTrace;
use super::line::{LaunchLine, Line};
use crate::Verification;
use crate::bytes::Bytes;
use crate::call::{Call, CallFailure, CallResult, Function, Launch, ModuleFunction};
use crate::error::CudaError;
use crate::program::{Host, Measurement, Next, Request, ThreadId};
use crate::trace::comparison::compare_bytes;
use balar_protocol::ProcessId;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

/// Where the program stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Loads the code of this number.
    Load(usize),
    /// At this line.
    Line(usize),
    /// Waits for work that is still under way.
    Synchronize,
    Exit,
    Ended,
}

/// Replays a Balar trace: loads its code, makes its calls, and compares the results with the recorded files.
pub struct BalarReplay {
    trace: BalarTrace,
    step: Step,
    in_call: bool,
    /// Kernels by name, with their module.
    kernels: BTreeMap<Arc<str>, (u32, ModuleFunction)>,
    /// Code that could not be loaded, and why.
    refused: Vec<(String, CudaError)>,
    /// Address of each allocation.
    addresses: BTreeMap<String, u64>,
    last_kernel: Option<String>,
    failure: Option<CallFailure>,
    /// Why the replay cannot go on.
    error: Option<String>,
    different: Option<String>,
    differences: u64,
    compared: bool,
}

impl BalarReplay {
    /// Replays `trace`.
    pub fn new(trace: BalarTrace) -> BalarReplay {
        BalarReplay {
            trace,
            step: Step::Load(0),
            in_call: false,
            kernels: BTreeMap::new(),
            refused: Vec::new(),
            addresses: BTreeMap::new(),
            last_kernel: None,
            failure: None,
            error: None,
            different: None,
            differences: 0,
            compared: false,
        }
    }

    fn address(&self, name: &str) -> u64 {
        self.addresses.get(name).copied().unwrap_or(0)
    }

    /// The call of the present step; an error ends the replay.
    fn call(&mut self) -> Result<Call, String> {
        if let Step::Load(index) = self.step {
            if let Some((name, image)) = self.trace.images.get(index) {
                return Ok(Call::ModuleLoad { images: vec![Bytes::from(Arc::clone(image))], name: name.clone() });
            }
            self.step = Step::Line(0);
        }
        if let Step::Line(index) = self.step {
            if let Some((number, line)) = self.trace.lines.get(index) {
                let (number, line) = (*number, line.clone());
                return self.call_of(&line).map_err(|error| format!("{}: {error}", self.trace.place(number)));
            }
            self.step = Step::Synchronize;
        }
        match self.step {
            Step::Synchronize => Ok(Call::DeviceSynchronize),
            _ => Ok(Call::Exit { error: self.failure.clone() }),
        }
    }

    fn call_of(&mut self, line: &Line) -> Result<Call, String> {
        Ok(match line {
            Line::Allocate { bytes, .. } => Call::Malloc { bytes: *bytes },
            Line::Free { pointer, .. } => Call::Free { pointer: self.address(pointer) },
            Line::Copy { to_host: true, pointer, bytes, .. } => {
                Call::copy_from_device(self.address(&pointer.name) + pointer.offset, *bytes, 0, 0, false)
            }
            Line::Copy { pointer, file, .. } => Call::copy_to_device(
                self.address(&pointer.name) + pointer.offset,
                Bytes::from(self.data(file)?),
                0,
                false,
            ),
            Line::Launch(launch) => self.launch(launch)?,
        })
    }

    fn data(&self, file: &str) -> Result<Vec<u8>, String> {
        let path = self.trace.folder.join(file);
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    fn launch(&mut self, launch: &LaunchLine) -> Result<Call, String> {
        let Some((module, kernel)) = self.kernels.get(launch.kernel.as_str()) else {
            let mut text = format!("the code has no kernel `{}`", launch.kernel);
            for (name, error) in &self.refused {
                text.push_str(&format!("; {name} cannot be loaded: {error}"));
            }
            return Err(text);
        };
        if kernel.parameters.len() != launch.arguments.len() {
            let (given, wanted) = (launch.arguments.len(), kernel.parameters.len());
            return Err(format!("{given} arguments, the kernel `{}` has {wanted} parameters", launch.kernel));
        }
        let end = kernel.parameters.iter().map(|&(offset, bytes)| offset.saturating_add(bytes)).max().unwrap_or(0);
        let mut parameters = vec![0; end as usize];
        for (index, (argument, &(offset, bytes))) in launch.arguments.iter().zip(&kernel.parameters).enumerate() {
            if argument.bytes != bytes {
                return Err(format!(
                    "argument {index} of `{}` has {} bytes, the parameter {bytes}",
                    launch.kernel, argument.bytes
                ));
            }
            let value = match (argument.value(), argument.place()) {
                (Some(value), _) => value,
                (None, Ok(Some(place))) => (self.address(&place.name) + place.offset).to_le_bytes().to_vec(),
                (None, _) => return Err(format!("argument {index} has no value: `{}`", argument.text)),
            };
            let target = parameters.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..value.len()));
            target.ok_or("a parameter lies outside the parameter block")?.copy_from_slice(&value);
        }
        self.last_kernel = Some(launch.kernel.clone());
        Ok(Call::Launch(Launch {
            function: Function { module: *module, name: kernel.name.clone() },
            grid: launch.grid,
            block: launch.block,
            shared_memory_bytes: launch.shared_bytes,
            stream: 0,
            parameters,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
            access_policy: None,
        }))
    }

    /// The call of the present step has returned.
    fn returned(&mut self, result: CallResult) {
        match (self.step, result) {
            (Step::Load(index), CallResult::Error(error)) => {
                if let Some((name, _)) = self.trace.images.get(index) {
                    self.refused.push((name.clone(), error));
                }
            }
            (Step::Load(_), CallResult::Module { module, functions, .. }) => {
                for function in functions {
                    self.kernels.entry(function.name.clone()).or_insert((module, function));
                }
            }
            (Step::Line(index), result) => {
                if let Some((number, line)) = self.trace.lines.get(index) {
                    let (number, line) = (*number, line.clone());
                    self.line_returned(number, &line, result);
                }
            }
            (_, CallResult::Error(error)) => {
                let kernel = self.last_kernel.as_deref().unwrap_or("(none)");
                let call = format!("{} after the last line (last kernel: {kernel})", Call::DeviceSynchronize.name());
                self.failure.get_or_insert(CallFailure { call, error });
            }
            _ => {}
        }
        self.step = match self.step {
            _ if self.failure.is_some() => Step::Exit,
            Step::Load(index) => Step::Load(index + 1),
            Step::Line(index) => Step::Line(index + 1),
            Step::Synchronize => Step::Exit,
            other => other,
        };
    }

    fn line_returned(&mut self, number: usize, line: &Line, result: CallResult) {
        let kernel = self.last_kernel.as_deref().map_or(String::new(), |kernel| format!(", after the kernel {kernel}"));
        match (line, result) {
            (line, CallResult::Error(error)) => {
                let what = match line {
                    Line::Allocate { pointer, bytes } => format!("memalloc of {bytes} bytes as {pointer}"),
                    Line::Free { pointer, .. } => format!("free of {pointer}"),
                    Line::Copy { to_host, pointer, bytes, .. } => {
                        let direction = if *to_host { "D2H" } else { "H2D" };
                        format!("memcpy{direction} of {bytes} bytes, {}{kernel}", pointer.name)
                    }
                    Line::Launch(launch) => format!("kernel launch of {}", launch.kernel),
                };
                self.failure = Some(CallFailure { call: format!("{}: {what}", self.trace.place(number)), error });
            }
            (Line::Allocate { pointer, .. }, CallResult::Pointer(address)) => {
                self.addresses.insert(pointer.clone(), address);
            }
            (Line::Copy { to_host: true, file, .. }, CallResult::Data(found)) => {
                self.compared = true;
                let place = self.trace.place(number);
                let difference = match self.data(file) {
                    Ok(expected) => compare_bytes(&expected, found.data().map_or(&[][..], |data| data)),
                    Err(error) => Some(error),
                };
                if let Some(text) = difference {
                    self.differences += 1;
                    self.different
                        .get_or_insert(format!("{place}: the device's bytes are not those of {file}{kernel}: {text}"));
                }
            }
            _ => {}
        }
    }
}

impl Host for BalarReplay {
    fn next(&mut self) -> Next {
        if self.in_call {
            return Next::Waiting;
        }
        if self.step == Step::Ended {
            return Next::End { error: self.error.clone() };
        }
        match self.call() {
            Ok(call) => {
                if self.step == Step::Exit {
                    self.step = Step::Ended;
                } else {
                    self.in_call = true;
                }
                let (thread, process) = (ThreadId(0), ProcessId::FIRST);
                Next::Call(Request { thread, process, device: 0, host_picoseconds: 0, call })
            }
            Err(error) => {
                self.step = Step::Ended;
                self.error = Some(error.clone());
                Next::End { error: Some(error) }
            }
        }
    }

    fn complete(&mut self, _: ThreadId, result: CallResult) {
        self.in_call = false;
        self.returned(result);
    }

    fn call_back(&mut self, _: ProcessId, _: u64) {
        // Balar's traces have no host functions.
    }

    fn receive(&mut self, _: ProcessId, _: u32, _: Arc<[u8]>) {
        // Every copy of theirs is waited for.
    }

    fn printed(&mut self, _: ProcessId, _: &[u8], _: &[u8]) {
        // They do not say what kernels print.
    }

    fn verification(&self) -> Verification {
        match (&self.different, self.differences) {
            (Some(text), 1) => Verification::Failed(text.clone()),
            (Some(text), count) => Verification::Failed(format!("{text}; {} more copies differ", count - 1)),
            (None, _) if self.compared => Verification::Passed,
            (None, _) => Verification::NotChecked,
        }
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}
