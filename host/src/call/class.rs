//! Classes of calls by their work for the host: by class, calls are charged and counted.

/// A kind of call. A node's host CPU gives each a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClass {
    /// The program computes by itself for so long.
    Compute {
        /// Host time.
        nanoseconds: u64,
    },
    /// It reads the clock.
    Clock,
    /// A thread ends: no call of CUDA.
    Exit,
    /// A host function has run: no call of CUDA.
    CallBack,
    /// Memory is made.
    Allocation,
    /// Memory ends.
    Free,
    /// Other questions and changes of memory, textures and limits.
    Memory,
    /// Advice about managed memory: free of charge where nobody takes it.
    Advice,
    /// The program itself reads or writes managed memory: no call of CUDA.
    Access,
    /// Tools ask about the node: no call of CUDA, and nobody is told.
    Management,
    /// A kernel is launched.
    Launch,
    /// A graph is launched.
    GraphLaunch,
    /// Streams are made and end.
    Stream,
    /// The program waits for work.
    Synchronisation,
    /// Copies and fills.
    Copy,
    /// Events, and questions about streams.
    Event,
    /// Modules and attributes of kernels.
    Module,
}
