//! What ended a kernel before its time, and where.

use crate::launch::{KernelLaunch, LaunchId, LaunchOrigin};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What an access that failed was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultAccess {
    /// Reading.
    Load,
    /// Writing.
    Store,
    /// Reading, modifying and writing, whether or not the old value is returned.
    Atomic,
    /// Using an `mbarrier` object.
    Barrier,
}

impl fmt::Display for FaultAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultAccess::Load => "load",
            FaultAccess::Store => "store",
            FaultAccess::Atomic => "atomic",
            FaultAccess::Barrier => "mbarrier",
        })
    }
}

/// The memory that an access that failed was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultSpace {
    /// Memory of the node.
    Global,
    /// The CTA's shared memory.
    Shared,
    /// The thread's private memory.
    Local,
    /// Constant banks.
    Constant,
    /// The kernel's parameter block.
    Parameter,
}

impl fmt::Display for FaultSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultSpace::Global => "global",
            FaultSpace::Shared => "shared",
            FaultSpace::Local => "local",
            FaultSpace::Constant => "const",
            FaultSpace::Parameter => "param",
        })
    }
}

/// What ended a kernel before its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultCause {
    /// An access outside every allocation.
    IllegalAddress {
        /// The address.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
        /// What it was to do.
        access: FaultAccess,
        /// Which memory it was for.
        space: FaultSpace,
    },
    /// An address that is not a multiple of the access size.
    MisalignedAddress {
        /// The address.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
        /// What it was to do.
        access: FaultAccess,
        /// Which memory it was for.
        space: FaultSpace,
    },
    /// An access to the shared memory of a CTA of the cluster that has ended, or that does not exist.
    AbsentCta {
        /// The rank that the address names.
        rank: u32,
        /// The address in the cluster's shared memory.
        address: u64,
    },
    /// `free` of an address that begins no live block of the device heap.
    InvalidFree {
        /// The address.
        address: u64,
    },
    /// A texture or surface access through a handle that names none.
    InvalidImage {
        /// The handle.
        handle: u64,
    },
    /// A surface access outside the surface, where the instruction does not allow it.
    OutsideSurface {
        /// The coordinates as the instruction has them.
        coordinates: [i32; 4],
        /// The surface's texels in x, y, z.
        extent: [u32; 3],
        /// Its layers.
        layers: u32,
    },
    /// A `trap` instruction.
    Trap,
    /// A device-side `assert` that does not hold.
    AssertionFailed {
        /// The expression.
        message: String,
        /// The source file.
        file: String,
        /// Its line.
        line: u32,
        /// The function that asserts.
        function: String,
        /// Lanes of the warp whose assertion it is.
        lanes: u32,
    },
    /// Calls nested deeper than a thread's stack is large.
    StackOverflow {
        /// Bytes of the stack.
        bytes: u32,
    },
    /// A call or branch to where there is no code; the text says what it named.
    InvalidTarget(String),
    /// An instruction that the simulator does not execute; the text names it.
    Unsupported(String),
    /// Where hazards are checked: a register of machine code that is read or written too early, or a lane whose member masks contradict
    /// each other; the text names it.
    Hazard(String),
}

impl fmt::Display for FaultCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultCause::IllegalAddress { address, bytes, access, space } => {
                write!(f, "illegal address {address:#x} in a {bytes}-byte {space} {access}")
            }
            FaultCause::MisalignedAddress { address, bytes, access, space } => {
                write!(f, "misaligned address {address:#x} in a {bytes}-byte {space} {access}")
            }
            FaultCause::AbsentCta { rank, address } => write!(
                f,
                "an access at {address:#x} to the shared memory of the CTA of rank {rank}, which is not or no longer in the cluster"
            ),
            FaultCause::InvalidFree { address } => {
                write!(f, "free of {address:#x}, where no block of the device heap begins")
            }
            FaultCause::InvalidImage { handle } => write!(f, "{handle:#x} is no texture or surface object"),
            FaultCause::OutsideSurface { coordinates, extent: [x, y, z], layers } => write!(
                f,
                "a surface access at {coordinates:?} (in the instruction's order) outside a surface of {x} x {y} x {z} texels in \
                 {layers} layers"
            ),
            FaultCause::Trap => f.write_str("trap"),
            FaultCause::AssertionFailed { message, file, line, function, .. } => {
                write!(f, "{file}:{line}: {function}: Assertion `{message}` failed.")
            }
            FaultCause::StackOverflow { bytes } => {
                write!(f, "stack overflow: calls nested deeper than the {bytes} bytes of a thread's stack hold")
            }
            FaultCause::InvalidTarget(what) => write!(f, "invalid program counter: {what}"),
            FaultCause::Unsupported(what) => write!(f, "unsupported instruction {what}"),
            FaultCause::Hazard(what) => write!(f, "hazard: {what}"),
        }
    }
}

/// Where and why a kernel failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFault {
    /// What happened.
    pub cause: FaultCause,
    /// The kernel.
    pub kernel: Arc<str>,
    /// The launch.
    pub launch: LaunchId,
    /// The CTA in the grid.
    pub cta: [u32; 3],
    /// The thread in the CTA (the first lane that failed).
    pub thread: [u32; 3],
    /// The instruction: its place in the source, or its index.
    pub instruction: String,
    /// Who has launched the kernel, where that was a kernel.
    pub origin: Option<Arc<LaunchOrigin>>,
}

impl KernelFault {
    /// A fault of a thread of a launch, in this instruction.
    pub fn of(
        launch: &KernelLaunch,
        cta: [u32; 3],
        thread: [u32; 3],
        cause: FaultCause,
        instruction: String,
    ) -> KernelFault {
        let (kernel, origin) = (Arc::clone(&launch.name), launch.origin.clone());
        KernelFault { cause, kernel, launch: launch.id, cta, thread, instruction, origin }
    }

    /// Who has launched the kernel, in words, where that was a kernel.
    fn by_whom(&self) -> String {
        self.origin.as_ref().map_or_else(String::new, |origin| format!(", {origin}"))
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.cta;
        let [tx, ty, tz] = self.thread;
        if let FaultCause::AssertionFailed { message, file, line, function, .. } = &self.cause {
            // As the CUDA runtime words it.
            return write!(
                f,
                "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed. \
                 In kernel {} (launch {}){}, at {}",
                self.kernel,
                self.launch,
                self.by_whom(),
                self.instruction
            );
        }
        write!(
            f,
            "{} by kernel {} (launch {}){}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz}), at {}",
            self.cause,
            self.kernel,
            self.launch,
            self.by_whom(),
            self.instruction
        )
    }
}
