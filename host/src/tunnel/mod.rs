//! The tunnel between a real CUDA program and the simulator.
//!
//! ```text
//!   program, thread 1 ── Client ──┐  Unix socket: frames             ┌─ trait Host ── HostCpu unit
//!   program, thread 2 ── Client ──┼──────────────────────── Server ──┘
//!   program, callbacks ─ Client ──┤  shared pages: bulk data
//!   program, accesses ── Client ──┘
//! ```
//!
//! Each thread of the program that makes CUDA calls has a connection of its own: a call and its reply take turns on it. A
//! connection has a ring of shared pages, through which payloads and results go, large ones in chunks, so that the
//! memory that the tunnel takes does not grow with them.
//!
//! **Invariants:** nothing that a program sends can harm the simulator, be it malformed or cut short; it ends the connection.
//! Nothing on the program's side of the tunnel panics, raises a signal or changes anything else of the process.
//!
//! `wire.rs` has frames, `shared.rs` and `bulk.rs` data through shared pages, `client.rs` and `server` the two ends: connections,
//! processes, and the end of killed ones. Memory is in anonymous files that vanish with their processes. A thread of a program that
//! computes for more than 100 ms while others wait in calls is not waited for any longer: a thread that spins until another thread's call
//! returns would hang the run.

mod address;
mod bulk;
mod client;
mod server;
mod shared;
mod socket;
mod wire;

pub use client::{Client, Reply, SIMULATOR_ENDED, Welcome, is_simulator_gone};
pub use server::{Control, ProgramEnd, Server, ServerOptions, SocketFolder, StopReason, remove_folder, signal_name};
pub use shared::{DEFAULT_PAGE_BYTES, PAGE_BYTES};
pub use wire::{Role, VERSION};

/// Environment variable of programs that run on the simulator: the path of the socket.
pub const SOCKET_VARIABLE: &str = "BALAR_ACTORS_SOCKET";

/// Environment variable of such programs: how their own accesses to managed memory become known. Where it is [`ASSUMED`], the system is
/// not asked to tell of them.
pub const ACCESSES_VARIABLE: &str = "BALAR_ACTORS_HOST_ACCESSES";

/// Environment variable of such programs: which threads tell of their named ranges. Where it is [`EVERY_THREAD`], all do, as long as the
/// process uses the simulator; otherwise those that call CUDA.
pub const RANGES_VARIABLE: &str = "BALAR_ACTORS_RANGES";

/// The value of [`RANGES_VARIABLE`] for all threads.
pub const EVERY_THREAD: &str = "every-thread";

/// The value of [`ACCESSES_VARIABLE`] for all managed memory being taken to be accessed between waits.
pub const ASSUMED: &str = "assumed";
