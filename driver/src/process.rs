//! What a process of the program has of its own: contexts, streams, events, modules, textures.
//!
//! Each process numbers what it has made by itself, so none can name what belongs to another. What they share is memory
//! ([`crate::memory`]), the order of operations, and the copy engines.

use crate::Driver;
use crate::calls::Caller;
use crate::contexts::Context;
use crate::effect::Effect;
use crate::images::Images;
use crate::ipc::Imports;
use crate::modules::Modules;
use crate::order::events::Events;
use crate::order::streams::Streams;
use balar_host::call::ProfilerCall;
use balar_host::{CudaError, ThreadId};
use balar_protocol::detail::ProfilerRanges;
use balar_protocol::ranges::RangePath;
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};

/// A process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    /// By GPU.
    pub contexts: Vec<Context>,
    pub streams: Streams,
    pub events: Events,
    pub modules: Modules,
    pub images: Images,
    /// Memory of other processes that it has opened.
    pub imports: Imports,
    /// The last error a call returned, in words.
    pub last_error: Option<(CudaError, String)>,
    /// It does not tell what it accesses of managed memory by itself.
    pub assumes_host_accesses: bool,
    /// What it has told profilers.
    pub ranges: ProfilerRanges,
    /// It has ended: its contexts go when nothing of them is under way.
    pub ended: bool,
}

impl Process {
    /// On a node of so many GPUs.
    pub fn new(process: ProcessId, gpus: usize) -> Process {
        Process {
            contexts: (0..gpus).map(|_| Context::default()).collect(),
            streams: Streams::new(process, gpus),
            events: Events::default(),
            modules: Modules::default(),
            images: Images::default(),
            imports: Imports::default(),
            last_error: None,
            assumes_host_accesses: false,
            ranges: ProfilerRanges::default(),
            ended: false,
        }
    }
}

impl Driver {
    /// A process, from its first call on.
    pub(crate) fn process(&mut self, process: ProcessId) -> &mut Process {
        let gpus = self.gpus.len();
        self.state.processes.entry(process).or_insert_with(|| Process::new(process, gpus))
    }

    /// What a process has told profilers.
    pub(crate) fn ranges(&self, process: ProcessId) -> &ProfilerRanges {
        static NONE: ProfilerRanges = ProfilerRanges::NONE;
        self.state.processes.get(&process).map_or(&NONE, |process| &process.ranges)
    }

    /// A thread tells profilers something: launches and copies that it asks for from now on are in other ranges.
    pub(crate) fn profiler_call(&mut self, caller: Caller, call: ProfilerCall) {
        let ranges = &mut self.process(caller.context.process()).ranges;
        let ThreadId(thread) = caller.thread;
        match call {
            ProfilerCall::Start => ranges.is_profiling = true,
            ProfilerCall::Stop => ranges.is_profiling = false,
            ProfilerCall::Begin(name) => ranges.begin(thread, &name),
            ProfilerCall::End(name) => ranges.end(thread, &name),
        }
    }

    /// The innermost named range that a thread is in.
    pub(crate) fn range_of(&self, caller: Caller) -> Option<RangePath> {
        let ThreadId(thread) = caller.thread;
        self.ranges(caller.context.process()).innermost(thread)
    }

    /// The process that a context is of.
    pub(crate) fn own(&mut self, context: ContextId) -> &mut Process {
        self.process(context.process())
    }

    /// A context, whose GPU there is.
    pub(crate) fn context(&mut self, context: ContextId) -> &mut Context {
        &mut self.own(context).contexts[context.gpu()]
    }

    /// The contexts of a process.
    pub(crate) fn contexts_of(&self, process: ProcessId) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.gpus.len()).map(move |gpu| ContextId::new(process, gpu))
    }

    /// A process has ended: no thread of it makes calls any more. Work of it that has begun is done first; where it was killed, its
    /// kernels end at once. Then everything that it had goes.
    pub fn end_process(&mut self, process: ProcessId, was_killed: bool) {
        if !self.state.processes.contains_key(&process) {
            return;
        }
        self.process(process).ended = true;
        for context in self.contexts_of(process) {
            if was_killed {
                // What others wait for goes on: nobody is left to say otherwise.
                self.state.operations.drop_waiting(context);
                if self.state.operations.count(context) > 0 {
                    self.want(Effect::Abort(context));
                }
            }
        }
        self.state.operations.end_host_functions(process);
        self.forget_ended();
    }

    /// Is anything under way of a process that has ended?
    pub fn has_ended_processes(&self) -> bool {
        self.state.processes.values().any(|process| process.ended)
    }

    /// Processes that have ended go when nothing of them is under way.
    pub(crate) fn forget_ended(&mut self) {
        let ended: Vec<ProcessId> =
            self.state.processes.iter().filter(|(_, process)| process.ended).map(|(process, _)| *process).collect();
        for process in ended {
            let contexts: Vec<ContextId> = self.contexts_of(process).collect();
            if contexts.iter().any(|&context| self.state.operations.count(context) > 0) {
                continue;
            }
            for context in contexts {
                self.reset_context(context);
            }
            self.end_pinned(process);
            self.close_imports(process);
            self.state.memories.iter_mut().for_each(|memory| memory.forget(process));
            self.state.window.forget(process);
            self.state.processes.remove(&process);
        }
    }
}
