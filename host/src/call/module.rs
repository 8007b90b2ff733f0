//! Kernels and variables of loaded code, and launches.

use balar_protocol::residency::AccessPolicyWindow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The module that is loaded from the start: that of a built-in workload.
pub const BUILT_IN_MODULE: u32 = 0;

/// A kernel of a loaded module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The module, as [`CallResult::Module`](super::CallResult::Module) gave it, or
    /// [`BUILT_IN_MODULE`].
    pub module: u32,
    /// Its name in the PTX.
    pub name: Arc<str>,
}

impl Function {
    /// A kernel of the built-in module.
    pub fn built_in(name: impl Into<Arc<str>>) -> Function {
        Function { module: BUILT_IN_MODULE, name: name.into() }
    }
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel.
    pub function: Function,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_memory_bytes: u32,
    /// Stream that orders the kernel.
    pub stream: u32,
    /// The kernel's parameters, laid out as its PTX declares them.
    pub parameters: Vec<u8>,
    /// Whether all blocks must run at once, so that they can wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster in x, y and z, where the launch says so.
    pub cluster: Option<[u32; 3]>,
    /// Whether the program allows clusters of the kernel of more blocks than every GPU with clusters runs.
    pub non_portable_cluster: bool,
    /// The memory whose accesses have a property, where the launch or its stream names some.
    pub access_policy: Option<AccessPolicyWindow>,
}

/// A kernel that a module has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFunction {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Offset and size of each parameter in the parameter block, bytes.
    pub parameters: Vec<(u32, u32)>,
}

/// A variable of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariableKind {
    /// `__device__`.
    Global,
    /// `__constant__`.
    Constant,
    /// `__managed__`: in the host window.
    Managed,
    /// A texture reference.
    Texture,
    /// A surface reference.
    Surface,
}

/// A variable that a module has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleVariable {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its kind.
    pub kind: VariableKind,
}

/// The attributes that `cudaFuncGetAttributes` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionAttributes {
    /// Static shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// User constant memory, bytes.
    pub constant_bytes: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// Threads that a block of it can have.
    pub maximum_threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// PTX version, ten times major plus minor of the architecture it was compiled for: 70.
    pub ptx_version: u32,
    /// Architecture that it runs on: 70.
    pub binary_version: u32,
    /// Dynamic shared memory that launches may ask for, bytes.
    pub maximum_dynamic_shared_bytes: u32,
    /// Blocks of a cluster in x, y and z that it is compiled for, where it is.
    pub cluster: Option<[u32; 3]>,
    /// Whether its launches must say the clusters.
    pub cluster_must_be_set: bool,
}
