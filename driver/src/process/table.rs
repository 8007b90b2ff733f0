//! The processes of the program, each with its belongings.
//!
//! Each process numbers its belongings by itself, so no process can name those of another. Processes share memory ([`crate::memory`]), the
//! order of operations, and the copy engines.

use super::context::{Context, ContextFailure};
use super::images::Images;
use super::modules::ModuleList;
use crate::effect::{Effects, MemoryChange};
use crate::keys::StreamKey;
use crate::memory::Memory;
use crate::order::events::Events;
use crate::order::operations::Operations;
use crate::order::streams::Streams;
use crate::outcome::{Caller, Failure, no_stream};
use balar_host::call::ProfilerCall;
use balar_host::{CallResult, ThreadId};
use balar_protocol::detail::ProfilerRanges;
use balar_protocol::ranges::RangePath;
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Its contexts, by GPU.
    pub contexts: Vec<Context>,
    pub streams: Streams,
    pub events: Events,
    pub modules: ModuleList,
    pub images: Images,
    /// The last error a call returned, in words.
    pub last_error: Option<Failure>,
    /// Its messages to profilers.
    pub ranges: ProfilerRanges,
    /// It has ended: its contexts go when nothing of them is under way.
    pub ended: bool,
}

impl Process {
    /// On a node of so many GPUs.
    fn new(process: ProcessId, gpus: usize) -> Process {
        Process {
            contexts: (0..gpus).map(|_| Context::default()).collect(),
            streams: Streams::new(process, gpus),
            events: Events::default(),
            modules: ModuleList::default(),
            images: Images::default(),
            last_error: None,
            ranges: ProfilerRanges::default(),
            ended: false,
        }
    }

    /// Its context on a GPU that there is.
    pub fn context(&mut self, context: ContextId) -> &mut Context {
        &mut self.contexts[context.gpu()]
    }

    /// The stream that a thread means.
    pub fn find_stream(&self, context: ContextId, stream: u32) -> Result<StreamKey, Failure> {
        self.streams.find(context.gpu(), stream).ok_or_else(|| no_stream(stream))
    }
}

/// Processes that have made a call and have not ended, or whose work is still under way.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Processes {
    all: BTreeMap<ProcessId, Process>,
    /// How many GPUs there are.
    gpus: usize,
}

impl Processes {
    /// There are none yet, on a node of so many GPUs.
    pub fn new(gpus: usize) -> Processes {
        Processes { all: BTreeMap::new(), gpus }
    }

    /// A process, from its first call on.
    pub fn of(&mut self, process: ProcessId) -> &mut Process {
        self.all.entry(process).or_insert_with(|| Process::new(process, self.gpus))
    }

    /// The process that a context is of.
    pub fn own(&mut self, context: ContextId) -> &mut Process {
        self.of(context.process())
    }

    /// A context, whose GPU there is.
    pub fn context(&mut self, context: ContextId) -> &mut Context {
        self.own(context).context(context)
    }

    /// A process that has made a call.
    pub fn get(&self, process: ProcessId) -> Option<&Process> {
        self.all.get(&process)
    }

    /// All of them.
    pub fn numbers(&self) -> Vec<ProcessId> {
        self.all.keys().copied().collect()
    }

    /// The contexts of a process.
    pub fn contexts_of(&self, process: ProcessId) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.gpus).map(move |gpu| ContextId::new(process, gpu))
    }

    /// The contexts of all processes.
    pub fn contexts(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.all.keys().flat_map(|process| self.contexts_of(*process))
    }

    /// A process's messages to profilers.
    fn ranges(&self, process: ProcessId) -> &ProfilerRanges {
        static NONE: ProfilerRanges = ProfilerRanges::NONE;
        self.get(process).map_or(&NONE, |process| &process.ranges)
    }

    /// The innermost named range that a thread is in.
    pub fn range_of(&self, caller: Caller) -> Option<RangePath> {
        let ThreadId(thread) = caller.thread;
        self.ranges(caller.context.process()).innermost(thread)
    }

    /// A thread tells profilers something: launches and copies that it asks for from now on are in other ranges.
    pub fn profiler_call(&mut self, caller: Caller, call: ProfilerCall) {
        let ranges = &mut self.own(caller.context).ranges;
        let ThreadId(thread) = caller.thread;
        match call {
            ProfilerCall::Start => ranges.is_profiling = true,
            ProfilerCall::Stop => ranges.is_profiling = false,
            ProfilerCall::Begin(name) => ranges.begin(thread, &name),
            ProfilerCall::End(name) => ranges.end(thread, &name),
        }
    }

    /// Asynchronous work failed: from now on every call of the context returns the error. The first one stays.
    pub fn fail(
        &mut self,
        context: ContextId,
        failure: ContextFailure,
        operations: &mut Operations,
        memory: &mut Memory,
    ) {
        let own = self.own(context);
        if own.ended || own.context(context).sticky.is_some() {
            return;
        }
        own.context(context).sticky = Some(failure);
        for address in operations.drop_waiting(context) {
            memory.is_not_ending(context, address);
        }
    }

    /// Has a context failed?
    pub fn has_failed(&mut self, context: ContextId) -> bool {
        self.context(context).sticky.is_some()
    }

    /// The error of the failed context, as a call's result. The program's standard error stream has its words the first time.
    pub fn sticky_error(&mut self, context: ContextId, effects: &mut Effects) -> CallResult {
        let own = self.own(context);
        let Some(failure) = &mut own.context(context).sticky else { return CallResult::None };
        let (error, words, text) = (failure.error, failure.take_words(), failure.text.clone());
        own.last_error = Some((error, text));
        if let Some(words) = words {
            effects.tell(context.process(), &words);
        }
        CallResult::Error(error)
    }

    /// Why a context has failed: the first one that has failed and was not reset.
    pub fn failure(&self) -> Option<&ContextFailure> {
        self.all.values().flat_map(|process| &process.contexts).find_map(|context| context.sticky.as_ref())
    }

    /// Destroyed textures and surfaces end when no kernel launched before is left.
    pub fn end_images(&mut self, operations: &Operations, effects: &mut Effects) {
        for images in self.all.values_mut().map(|process| &mut process.images) {
            for (context, handle) in images.take_ended(operations) {
                effects.change(MemoryChange::Image { process: context.process(), handle, image: None });
            }
        }
    }

    /// Is anything under way of a process that has ended?
    pub fn has_ended(&self) -> bool {
        self.all.values().any(|process| process.ended)
    }

    /// Processes that have ended and have no work under way.
    pub fn to_forget(&self, operations: &Operations) -> Vec<ProcessId> {
        let is_idle = |process: ProcessId| self.contexts_of(process).all(|context| operations.count(context) == 0);
        let ended = self.all.iter().filter(|(_, process)| process.ended).map(|(process, _)| *process);
        ended.filter(|process| is_idle(*process)).collect()
    }

    /// A process is gone.
    pub fn forget(&mut self, process: ProcessId) {
        self.all.remove(&process);
    }
}
