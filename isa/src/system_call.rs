//! The functions that compiled code calls and that the driver supplies: those of the device runtime.
//!
//! Programs that launch kernels from kernels are linked with a library (`libcudadevrt`), whose functions are device code themselves. For
//! work that they cannot do alone they call the driver, by functions whose names begin with `__cuda_syscall_cnpv2`, and `cnp` for the first
//! version of dynamic parallelism. The library's own PTX declares their shapes (own findings: CUDA 12.9 and 13.5).

use serde::{Deserialize, Serialize};

/// A function of the device runtime that compiled code calls without defining it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum SystemCall {
    /// `vprintf(format, arguments)`: two generic addresses; returns the number of arguments, negative on failure.
    Print,
    /// `malloc(bytes)`: returns a generic address, 0 where the heap is exhausted.
    Allocate,
    /// `free(pointer)`.
    Free,
    /// `__assertfail(message, file, line, function, character size)`: ends the kernel.
    Assert,
    /// `cudaGraphSetConditional(handle, value)`: sets the condition of a conditional node of a graph.
    SetCondition,
    /// A buffer for the parameters of a launch, for the kernel at an address, with grid, block and dynamic shared memory; returns its
    /// address, 0 where there is none.
    ParameterBuffer,
    /// The same by alignment and size, for a launch that says the rest itself.
    SizedParameterBuffer,
    /// Launches the kernel of a buffer into a stream; returns an error of the driver.
    LaunchBuffer,
    /// Launches the kernel at an address: parameters, addresses of grid and block, dynamic shared memory, stream; returns an error of
    /// the driver.
    Launch,
    /// The calling thread's last error becomes this one, which is returned.
    SetLastError,
    /// Returns the calling thread's last error.
    LastError,
    /// Writes a new stream to an address; returns an error of the driver, as all that follow do.
    CreateStream,
    /// A stream gets no more launches.
    DestroyStream,
    /// A stream waits for an event.
    WaitEvent,
    /// Writes a new event to an address.
    CreateEvent,
    /// An event is to be over when the work in a stream is.
    RecordEvent,
    /// An event is needed no more.
    DestroyEvent,
    /// Writes the number of the device to an address.
    Device,
}

/// A parameter of a function, or its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// 32 bits.
    Word,
    /// 64 bits.
    Wide,
    /// Three words in a row, by value: the extent of a grid or a block. Each is an argument.
    Extent,
}

/// Arguments that a function can have.
pub const MOST_ARGUMENTS: usize = 8;

use Passed::{Extent, Wide, Word};
use SystemCall as S;

/// The functions that launch kernels, or serve that, by the ends of their names.
const OF_LAUNCHES: [(&str, SystemCall); 13] = [
    ("GetParameterBufferV2", S::ParameterBuffer),
    ("GetParameterBuffer", S::SizedParameterBuffer),
    ("LaunchDeviceV2", S::LaunchBuffer),
    ("LaunchDevice", S::Launch),
    ("SetLastError", S::SetLastError),
    ("GetLastError", S::LastError),
    ("StreamCreate", S::CreateStream),
    ("StreamDestroy", S::DestroyStream),
    ("StreamWaitEvent", S::WaitEvent),
    ("EventCreate", S::CreateEvent),
    ("EventRecord", S::RecordEvent),
    ("EventDestroy", S::DestroyEvent),
    ("GetDevice", S::Device),
];

impl SystemCall {
    /// All of them, in the order of their numbers.
    pub const ALL: [SystemCall; 18] = [
        S::Print,
        S::Allocate,
        S::Free,
        S::Assert,
        S::SetCondition,
        S::ParameterBuffer,
        S::SizedParameterBuffer,
        S::LaunchBuffer,
        S::Launch,
        S::SetLastError,
        S::LastError,
        S::CreateStream,
        S::DestroyStream,
        S::WaitEvent,
        S::CreateEvent,
        S::RecordEvent,
        S::DestroyEvent,
        S::Device,
    ];

    /// The one that code gives this name.
    pub fn named(name: &str) -> Option<SystemCall> {
        let of_launches = ["__cuda_syscall_cnpv2", "cnp"].iter().find_map(|beginning| name.strip_prefix(beginning));
        if let Some(end) = of_launches {
            return OF_LAUNCHES.iter().find(|(known, _)| *known == end).map(|(_, call)| *call);
        }
        Some(match name {
            "vprintf" => S::Print,
            "malloc" => S::Allocate,
            "free" => S::Free,
            "__assertfail" => S::Assert,
            "cudaGraphSetConditional" => S::SetCondition,
            _ => return None,
        })
    }

    /// Its parameters.
    pub const fn parameters(self) -> &'static [Passed] {
        match self {
            S::Print | S::LaunchBuffer | S::RecordEvent => &[Wide, Wide],
            S::Allocate | S::Free | S::DestroyStream | S::DestroyEvent | S::Device => &[Wide],
            S::Assert => &[Wide, Wide, Word, Wide, Wide],
            S::SetCondition | S::CreateStream | S::CreateEvent => &[Wide, Word],
            S::ParameterBuffer => &[Wide, Extent, Extent, Word],
            S::SizedParameterBuffer => &[Word, Word],
            S::Launch => &[Wide, Wide, Wide, Wide, Word, Wide],
            S::SetLastError => &[Word],
            S::LastError => &[],
            S::WaitEvent => &[Wide, Wide, Word],
        }
    }

    /// Its result, where it has one.
    pub const fn result(self) -> Option<Passed> {
        match self {
            S::Free | S::Assert | S::SetCondition => None,
            S::Allocate | S::ParameterBuffer | S::SizedParameterBuffer => Some(Wide),
            _ => Some(Word),
        }
    }

    /// For each argument in order, whether it has 64 bits.
    pub fn arguments(self) -> impl Iterator<Item = bool> {
        self.parameters()
            .iter()
            .flat_map(|parameter| match parameter {
                Word => &[false][..],
                Wide => &[true],
                Extent => &[false; 3],
            })
            .copied()
    }

    /// Does it launch a kernel, or make ready for that?
    pub const fn launches(self) -> bool {
        matches!(self, S::ParameterBuffer | S::SizedParameterBuffer | S::LaunchBuffer | S::Launch)
    }
}

/// How the refusal of a function ends that programs get from CUDA.
pub(crate) const NOT_SIMULATED: &str = "is not simulated";

/// Why a function is refused that programs get from CUDA and that nobody defines: the feature that it is of. `None` of any other.
pub(crate) fn refusal(name: &str) -> Option<String> {
    let of_library = ["cudaLaunchDevice", "cudaGetParameterBuffer", "__cudaCDP2"];
    Some(match name {
        _ if of_library.iter().any(|beginning| name.starts_with(beginning)) => {
            format!(
                "{name} of the device runtime is not there: the code is not linked with cudadevrt (dynamic parallelism)"
            )
        }
        _ if name.ends_with("DeviceSynchronize") => {
            format!(
                "a kernel that waits for those it has launched (dynamic parallelism before CUDA 12: {name}) {NOT_SIMULATED}"
            )
        }
        "cudaGraphLaunch" => format!("a graph that a kernel launches ({name} in device code) {NOT_SIMULATED}"),
        _ if name.starts_with("cudaGraph") => {
            format!("a graph that a kernel changes ({name} in device code) {NOT_SIMULATED}")
        }
        _ if name.starts_with("__cuda_syscall_CGS") => {
            format!("cooperative groups of the device runtime's first version ({name}) {NOT_SIMULATED}")
        }
        _ if name.starts_with("__cuda_syscall_cnp") || name.starts_with("cnp") => {
            format!("a function of the device runtime (dynamic parallelism: {name}) {NOT_SIMULATED}")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_the_device_runtime_are_known_by_name() {
        for (name, call) in [
            ("__cuda_syscall_cnpv2GetParameterBufferV2", SystemCall::ParameterBuffer),
            ("__cuda_syscall_cnpv2GetParameterBuffer", SystemCall::SizedParameterBuffer),
            ("cnpLaunchDeviceV2", SystemCall::LaunchBuffer),
            ("cnpGetDevice", SystemCall::Device),
            ("cudaGraphSetConditional", SystemCall::SetCondition),
        ] {
            assert_eq!(SystemCall::named(name), Some(call), "{name}");
        }
        assert_eq!(SystemCall::named("__cuda_syscall_cnpv2DeviceSynchronize"), None);
    }

    #[test]
    fn arguments_fit_where_they_are_kept() {
        for (number, call) in SystemCall::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, number);
            assert!(call.arguments().count() <= MOST_ARGUMENTS, "{call:?}");
        }
        let widths: Vec<bool> = SystemCall::ParameterBuffer.arguments().collect();
        assert_eq!(widths, [true, false, false, false, false, false, false, false]);
    }
}
