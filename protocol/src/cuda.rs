//! The CUDA protocol: kernel launches from the host to the CTA scheduler, and what became of them.

use crate::context::ContextId;
use crate::detail::Detail;
use crate::device_launch::{DeviceKernel, LaunchOrigin};
use crate::message::Side;
use crate::ranges::RangePath;
use crate::time::SimTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A kernel launch's number, counted from 1 within a run. 0 means "no launch".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaunchId(pub u32);

/// As results number launches: from 0. Those that kernels make are told apart by a letter.
impl fmt::Display for LaunchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_of_device() {
            return write!(formatter, "d{}", self.device_number());
        }
        self.0.saturating_sub(1).fmt(formatter)
    }
}

/// The number of a loaded kernel's code, counted from 1 within a run. 0 means "no code".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u32);

/// A kernel's code: a number, by which a saved state names it, and the decoded program for whoever runs it.
///
/// This crate knows no programs: whoever runs the code asks for it by its type.
#[derive(Clone, Default)]
pub struct Code {
    id: ProgramId,
    program: Option<Arc<dyn Any + Send + Sync>>,
}

impl Code {
    /// The decoded `program` under a number that no other has.
    pub fn new<P: Any + Send + Sync>(id: ProgramId, program: Arc<P>) -> Code {
        Code { id, program: Some(program) }
    }

    /// Its number.
    pub fn id(&self) -> ProgramId {
        self.id
    }

    /// The decoded program; `None` where it is of another type, or the code is known by its number alone.
    pub fn program<P: Any + Send + Sync>(&self) -> Option<Arc<P>> {
        Arc::clone(self.program.as_ref()?).downcast().ok()
    }
}

/// A code is written as its number, and read back as that alone: who reads a state completes its codes.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.id.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        ProgramId::deserialize(deserializer).map(|id| Code { id, program: None })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// Its number.
    pub id: LaunchId,
    /// The context that it runs in.
    pub context: ContextId,
    /// Which code.
    pub code: Code,
    /// The kernel's name as the program gives it.
    pub name: Arc<str>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub dynamic_shared_bytes: u32,
    /// Static and dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// Registers of a thread (for the SM's register file).
    pub registers_per_thread: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// Parameter block as the kernel reads it.
    pub parameters: Arc<[u8]>,
    /// Stream it was launched into.
    pub stream: u32,
    /// Kernels of one queue run one after another: those of a stream, or of a chain of a graph.
    pub queue: u32,
    /// Kernels of lower numbers start first.
    pub priority: i32,
    /// Of a cooperative launch, whose CTAs all run at once: the device address of its grid workspace. 0 of any other.
    pub grid_workspace: u64,
    /// How closely it is simulated.
    pub detail: Detail,
    /// Its process was between `cudaProfilerStart` and `cudaProfilerStop`.
    pub is_profiled: bool,
    /// The innermost named range that the thread was in that launched it.
    pub range: Option<RangePath>,
    /// Who has launched it, where that was a kernel.
    pub origin: Option<Arc<LaunchOrigin>>,
    /// The kernels that it can launch, and those that these can, by address. Empty where it launches none.
    pub device_kernels: Arc<[DeviceKernel]>,
}

impl KernelLaunch {
    /// Must all CTAs run at once?
    pub fn is_cooperative(&self) -> bool {
        self.grid_workspace != 0
    }

    /// CTAs of the grid.
    pub fn cta_count(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a CTA.
    pub fn threads_per_cta(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a CTA.
    pub fn warps_per_cta(&self) -> u32 {
        self.threads_per_cta().div_ceil(32)
    }
}

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

/// Messages of the CUDA protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CudaMessage {
    /// Host to CTA scheduler: run this kernel after the earlier ones of its stream.
    Launch(Arc<KernelLaunch>),
    /// Host to CTA scheduler: this context, which has failed, begins anew.
    Reset(ContextId),
    /// Host to CTA scheduler: everything of this context ends at once, for its process has been killed.
    Abort(ContextId),
    /// CTA scheduler to host: the last CTA has ended, or the kernel failed.
    LaunchCompleted {
        /// Which launch.
        launch: LaunchId,
        /// Why it failed, if it did.
        fault: Option<Box<KernelFault>>,
        /// From when to when it ran, on the GPU; `None` if it did not begin.
        ran: Option<Box<(SimTime, SimTime)>>,
    },
}

impl CudaMessage {
    /// Which side sends it: the host is the client, the CTA scheduler the server.
    pub const fn sender(&self) -> Side {
        match self {
            CudaMessage::Launch(_) | CudaMessage::Reset(_) | CudaMessage::Abort(_) => Side::Client,
            CudaMessage::LaunchCompleted { .. } => Side::Server,
        }
    }
}
