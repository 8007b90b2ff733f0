//! The CUDA calls that a host program makes, what they return, and the trait of a host program.

use std::fmt;
use std::sync::Arc;

use crate::image::{ArrayDescription, Resource, TextureDescription};

/// A program of the host CPU: it makes one CUDA call after another.
///
/// The simulated host CPU asks for a call, models its cost, and hands back its result with the request for the next
/// one. A call that blocks the host (a synchronous copy, a synchronisation) has its result when it is over; any other
/// one at once.
pub trait HostProgram: Send {
    /// The next call. `previous` is the result of the call before, [`CallResult::Start`] the first time. After
    /// [`Call::Exit`] it is not asked again.
    fn next(&mut self, previous: CallResult) -> Call;

    /// Takes the bytes of an asynchronous copy from the device, before the call that waits for it returns.
    fn receive(&mut self, transfer: u32, data: Vec<u8>);

    /// Takes what kernels have printed since it was called last, before the call that brings it returns: a launch, a
    /// synchronisation, a copy that the host waits for, or the end of the program.
    fn printed(&mut self, text: &[u8]) {
        let _ = text;
    }

    /// Compares what the device computed with a host computation. Meaningful after [`Call::Exit`]; the expected values
    /// are computed here, once.
    fn verification(&self) -> &Verification;

    /// What the workload measured itself, in the order to show. Empty before [`Call::Exit`].
    fn measurements(&self) -> Vec<Measurement>;
}

/// One CUDA call, or other act, of a host program.
///
/// Streams are numbered as [`CallResult::Stream`] gave them; 0 is the default stream. Pointers are device addresses.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `cudaMalloc`; gives [`CallResult::Pointer`].
    Malloc {
        /// Bytes wanted.
        bytes: u64,
    },
    /// `cudaFree`.
    Free {
        /// What a `Malloc` gave.
        pointer: u64,
    },
    /// `cudaMemcpy` or `cudaMemcpyAsync` from host to device.
    MemcpyHostToDevice {
        /// Device address of the first byte.
        destination: u64,
        /// The bytes.
        data: Arc<[u8]>,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaMemcpy` or `cudaMemcpyAsync` from device to host. A synchronous one gives [`CallResult::Data`]; the bytes
    /// of an asynchronous one go to [`HostProgram::receive`].
    MemcpyDeviceToHost {
        /// Device address of the first byte.
        source: u64,
        /// Bytes to copy.
        bytes: u64,
        /// The program's own number for this copy.
        transfer: u32,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaMemcpy` or `cudaMemcpyAsync` within the device.
    MemcpyDeviceToDevice {
        /// Device address of the first byte written.
        destination: u64,
        /// Device address of the first byte read.
        source: u64,
        /// Bytes to copy.
        bytes: u64,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaMemset` or `cudaMemsetAsync`.
    Memset {
        /// Device address of the first byte.
        pointer: u64,
        /// The value of every byte.
        value: u8,
        /// Bytes to set.
        bytes: u64,
        /// Stream that orders the operation.
        stream: u32,
        /// Whether the call returns before it is done.
        asynchronous: bool,
    },
    /// `cudaLaunchKernel` or `cudaLaunchCooperativeKernel`: returns at once.
    Launch {
        /// The kernel's name in the PTX.
        kernel: Arc<str>,
        /// Thread blocks in x, y and z.
        grid: [u32; 3],
        /// Threads of a block in x, y and z.
        block: [u32; 3],
        /// Dynamic shared memory of a block.
        shared_memory_bytes: u32,
        /// Stream that orders the kernel.
        stream: u32,
        /// The kernel's parameters, laid out as its PTX declares them: each at the next multiple of its size.
        parameters: Vec<u8>,
        /// Whether all blocks must run at once, so that they can wait for each other.
        cooperative: bool,
    },
    /// `cudaMallocArray` or `cudaMalloc3DArray`; gives [`CallResult::Object`], the array's number.
    ArrayCreate {
        /// What it holds.
        description: ArrayDescription,
    },
    /// `cudaFreeArray`: waits for the device.
    ArrayDestroy {
        /// The array.
        array: u64,
    },
    /// `cudaMemcpy3D` or `cudaMemcpy3DAsync` of a whole array from the host.
    ArrayWrite {
        /// The array.
        array: u64,
        /// All texels: rows without gaps, slices or layers one after another.
        data: Arc<[u8]>,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaMemcpy3D` or `cudaMemcpy3DAsync` of a whole array to the host; its bytes come as those of
    /// [`Call::MemcpyDeviceToHost`] do.
    ArrayRead {
        /// The array.
        array: u64,
        /// The program's own number for this copy.
        transfer: u32,
        /// Stream that orders the copy.
        stream: u32,
        /// Whether the call returns before the copy is done.
        asynchronous: bool,
    },
    /// `cudaCreateTextureObject`; gives [`CallResult::Object`], the handle that kernels take as a 64-bit parameter.
    TextureCreate {
        /// What it reads.
        resource: Resource,
        /// How.
        description: TextureDescription,
    },
    /// `cudaCreateSurfaceObject`; gives [`CallResult::Object`], the handle that kernels take as a 64-bit parameter.
    SurfaceCreate {
        /// The array that it accesses.
        array: u64,
    },
    /// `cudaDestroyTextureObject` or `cudaDestroySurfaceObject`.
    ImageDestroy {
        /// The handle.
        object: u64,
    },
    /// `cudaBindTexture` and its like: gives a meaning to a `.texref` of the module.
    TextureBind {
        /// Its name in the PTX.
        name: Arc<str>,
        /// What it reads.
        resource: Resource,
        /// How.
        description: TextureDescription,
    },
    /// `cudaBindSurfaceToArray`: gives a meaning to a `.surfref` of the module.
    SurfaceBind {
        /// Its name in the PTX.
        name: Arc<str>,
        /// The array that it accesses.
        array: u64,
    },
    /// `cudaStreamCreate`; gives [`CallResult::Stream`].
    StreamCreate,
    /// `cudaStreamDestroy`.
    StreamDestroy {
        /// The stream.
        stream: u32,
    },
    /// `cudaStreamSynchronize`: waits for everything in the stream.
    StreamSynchronize {
        /// The stream.
        stream: u32,
    },
    /// `cudaDeviceSynchronize`: waits for everything on the device.
    DeviceSynchronize,
    /// The host computes by itself for a while.
    Compute {
        /// Host time it takes.
        nanoseconds: u64,
    },
    /// Reads the host's clock, that is, simulated time; gives [`CallResult::Time`].
    ReadClock,
    /// The program ends. `error` names the CUDA error that it gave up on, if any.
    Exit {
        /// The call that failed, and how.
        error: Option<CallFailure>,
    },
}

impl Call {
    /// The name of the CUDA function, or of the act.
    pub fn name(&self) -> &'static str {
        match self {
            Call::Malloc { .. } => "cudaMalloc",
            Call::Free { .. } => "cudaFree",
            Call::MemcpyHostToDevice { asynchronous: false, .. }
            | Call::MemcpyDeviceToHost { asynchronous: false, .. }
            | Call::MemcpyDeviceToDevice { asynchronous: false, .. } => "cudaMemcpy",
            Call::MemcpyHostToDevice { .. } | Call::MemcpyDeviceToHost { .. } | Call::MemcpyDeviceToDevice { .. } => {
                "cudaMemcpyAsync"
            }
            Call::Memset { asynchronous: false, .. } => "cudaMemset",
            Call::Memset { .. } => "cudaMemsetAsync",
            Call::Launch { cooperative: true, .. } => "cudaLaunchCooperativeKernel",
            Call::Launch { .. } => "cudaLaunchKernel",
            Call::ArrayCreate { .. } => "cudaMalloc3DArray",
            Call::ArrayDestroy { .. } => "cudaFreeArray",
            Call::ArrayWrite { asynchronous: false, .. } | Call::ArrayRead { asynchronous: false, .. } => {
                "cudaMemcpy3D"
            }
            Call::ArrayWrite { .. } | Call::ArrayRead { .. } => "cudaMemcpy3DAsync",
            Call::TextureCreate { .. } => "cudaCreateTextureObject",
            Call::SurfaceCreate { .. } => "cudaCreateSurfaceObject",
            Call::ImageDestroy { .. } => "cudaDestroyTextureObject",
            Call::TextureBind { .. } => "cudaBindTexture",
            Call::SurfaceBind { .. } => "cudaBindSurfaceToArray",
            Call::StreamCreate => "cudaStreamCreate",
            Call::StreamDestroy { .. } => "cudaStreamDestroy",
            Call::StreamSynchronize { .. } => "cudaStreamSynchronize",
            Call::DeviceSynchronize => "cudaDeviceSynchronize",
            Call::Compute { .. } => "compute",
            Call::ReadClock => "read clock",
            Call::Exit { .. } => "exit",
        }
    }
}

/// What a call gives back.
#[derive(Clone, Debug, PartialEq)]
pub enum CallResult {
    /// No call has been made yet.
    Start,
    /// The call succeeded and gives no value.
    None,
    /// The address of an allocation.
    Pointer(u64),
    /// The number of an array, or the handle of a texture or surface object; not 0.
    Object(u64),
    /// The number of a new stream, not 0.
    Stream(u32),
    /// The bytes of a synchronous copy from the device.
    Data(Vec<u8>),
    /// Simulated time.
    Time {
        /// Since the start of the simulation.
        picoseconds: u64,
    },
    /// The call failed, or reports that earlier work did.
    Error(CudaError),
}

/// An error code of the CUDA runtime, with the number and name that `driver_types.h` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CudaError {
    /// A parameter out of its range.
    InvalidValue,
    /// Device memory is exhausted.
    MemoryAllocation,
    /// A grid, block or shared memory size that the device cannot run.
    InvalidConfiguration,
    /// No symbol of that name in the module.
    InvalidSymbol,
    /// A texture that blends texels which are not read as floats.
    InvalidFilterSetting,
    /// A channel format that textures do not have.
    InvalidChannelDescriptor,
    /// A pointer that no allocation holds.
    InvalidDevicePointer,
    /// No kernel of that name.
    InvalidDeviceFunction,
    /// No stream of that number.
    InvalidResourceHandle,
    /// A kernel accessed memory outside every allocation.
    IllegalAddress,
    /// A launch needs more registers or shared memory than an SM has.
    LaunchOutOfResources,
    /// A kernel ended by a trap.
    LaunchFailure,
    /// A kernel ended by an `assert` that does not hold.
    Assert,
    /// A kernel met an instruction that the device does not have.
    IllegalInstruction,
    /// A kernel accessed an address that is no multiple of the access's size.
    MisalignedAddress,
    /// A cooperative launch of more blocks than the device runs at once.
    CooperativeLaunchTooLarge,
    /// A kernel's calls nested deeper than a thread's stack is large.
    HardwareStackError,
    /// A kernel called or branched to where there is no code.
    InvalidPc,
    /// The device does not do this.
    NotSupported,
}

impl CudaError {
    /// The code's number.
    pub fn code(self) -> u32 {
        match self {
            CudaError::InvalidValue => 1,
            CudaError::MemoryAllocation => 2,
            CudaError::InvalidConfiguration => 9,
            CudaError::InvalidSymbol => 13,
            CudaError::InvalidDevicePointer => 17,
            CudaError::InvalidChannelDescriptor => 20,
            CudaError::InvalidFilterSetting => 26,
            CudaError::InvalidDeviceFunction => 98,
            CudaError::InvalidResourceHandle => 400,
            CudaError::IllegalAddress => 700,
            CudaError::LaunchOutOfResources => 701,
            CudaError::Assert => 710,
            CudaError::HardwareStackError => 714,
            CudaError::IllegalInstruction => 715,
            CudaError::MisalignedAddress => 716,
            CudaError::InvalidPc => 718,
            CudaError::LaunchFailure => 719,
            CudaError::CooperativeLaunchTooLarge => 720,
            CudaError::NotSupported => 801,
        }
    }

    /// The code's name in C.
    pub fn name(self) -> &'static str {
        match self {
            CudaError::InvalidValue => "cudaErrorInvalidValue",
            CudaError::MemoryAllocation => "cudaErrorMemoryAllocation",
            CudaError::InvalidConfiguration => "cudaErrorInvalidConfiguration",
            CudaError::InvalidSymbol => "cudaErrorInvalidSymbol",
            CudaError::InvalidDevicePointer => "cudaErrorInvalidDevicePointer",
            CudaError::InvalidChannelDescriptor => "cudaErrorInvalidChannelDescriptor",
            CudaError::InvalidFilterSetting => "cudaErrorInvalidFilterSetting",
            CudaError::InvalidDeviceFunction => "cudaErrorInvalidDeviceFunction",
            CudaError::InvalidResourceHandle => "cudaErrorInvalidResourceHandle",
            CudaError::IllegalAddress => "cudaErrorIllegalAddress",
            CudaError::LaunchOutOfResources => "cudaErrorLaunchOutOfResources",
            CudaError::Assert => "cudaErrorAssert",
            CudaError::IllegalInstruction => "cudaErrorIllegalInstruction",
            CudaError::MisalignedAddress => "cudaErrorMisalignedAddress",
            CudaError::LaunchFailure => "cudaErrorLaunchFailure",
            CudaError::CooperativeLaunchTooLarge => "cudaErrorCooperativeLaunchTooLarge",
            CudaError::HardwareStackError => "cudaErrorHardwareStackError",
            CudaError::InvalidPc => "cudaErrorInvalidPc",
            CudaError::NotSupported => "cudaErrorNotSupported",
        }
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.name(), self.code())
    }
}

impl std::error::Error for CudaError {}

/// A CUDA call that failed, as a host program reports it when it gives up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {error}")]
pub struct CallFailure {
    /// The function, with what was asked of it.
    pub call: String,
    /// The error.
    pub error: CudaError,
}

/// Whether a workload's result is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The workload has no result to check, or did not get as far as one.
    NotChecked,
    /// The result is what the host computes.
    Passed,
    /// The result is wrong.
    Failed {
        /// The first difference.
        message: String,
    },
}

impl Verification {
    /// `true` and `false` where the result was checked, as the result format has it.
    pub fn verified(&self) -> Option<bool> {
        match self {
            Verification::NotChecked => None,
            Verification::Passed => Some(true),
            Verification::Failed { .. } => Some(false),
        }
    }
}

/// A value that a workload measured itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}
