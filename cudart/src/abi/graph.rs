//! Graphs: the work of their nodes, their edges, and the results of instantiating them.
//!
//! Structures of CUDA 13 begin with those of CUDA 12, which begin with those of CUDA 11: the types here are the common
//! beginnings, addresses and handles as numbers.

use super::pool::MemPoolProps;
use bytemuck::{Pod, Zeroable};

/// Values of `cudaGraphNodeType`.
pub mod node_type {
    /// `cudaGraphNodeTypeKernel`.
    pub const KERNEL: u32 = 0;
    /// `cudaGraphNodeTypeMemcpy`.
    pub const MEMCPY: u32 = 1;
    /// `cudaGraphNodeTypeMemset`.
    pub const MEMSET: u32 = 2;
    /// `cudaGraphNodeTypeHost`.
    pub const HOST: u32 = 3;
    /// `cudaGraphNodeTypeGraph`.
    pub const GRAPH: u32 = 4;
    /// `cudaGraphNodeTypeEmpty`.
    pub const EMPTY: u32 = 5;
    /// `cudaGraphNodeTypeWaitEvent`.
    pub const WAIT_EVENT: u32 = 6;
    /// `cudaGraphNodeTypeEventRecord`.
    pub const EVENT_RECORD: u32 = 7;
    /// `cudaGraphNodeTypeExtSemaphoreSignal`.
    pub const SEMAPHORE_SIGNAL: u32 = 8;
    /// `cudaGraphNodeTypeExtSemaphoreWait`.
    pub const SEMAPHORE_WAIT: u32 = 9;
    /// `cudaGraphNodeTypeMemAlloc`.
    pub const MEM_ALLOC: u32 = 10;
    /// `cudaGraphNodeTypeMemFree`.
    pub const MEM_FREE: u32 = 11;
    /// `cudaGraphNodeTypeConditional`.
    pub const CONDITIONAL: u32 = 13;
}

/// `cudaKernelNodeParams`, and the beginning of `cudaKernelNodeParamsV2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct KernelNodeParams {
    /// The host's name of the kernel, or the handle of one.
    pub function: u64,
    /// Thread blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Zero.
    pub padding: u32,
    /// Address of an array of addresses, one a parameter.
    pub parameters: u64,
    /// Address of a list that says where all parameters lie together.
    pub extra: u64,
}

/// `cudaMemsetParams`, and the beginning of `cudaMemsetParamsV2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemsetParams {
    /// First address.
    pub destination: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// The value of every element.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element_bytes: u32,
    /// Elements of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
}

/// `cudaHostNodeParams`, and the beginning of `cudaHostNodeParamsV2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct HostNodeParams {
    /// Address of the function.
    pub function: u64,
    /// The argument of the function.
    pub data: u64,
}

/// `cudaMemAllocNodeParams` and `cudaMemAllocNodeParamsV2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemAllocNodeParams {
    /// Where the memory comes from.
    pub pool: MemPoolProps,
    /// Address of an array of `cudaMemAccessDesc`.
    pub access: u64,
    /// Their number.
    pub access_count: u64,
    /// Bytes wanted.
    pub bytes: u64,
    /// The address that the node was given.
    pub pointer: u64,
}

/// Values of `cudaGraphConditionalNodeType`.
pub mod conditional_type {
    /// `cudaGraphCondTypeIf`.
    pub const IF: u32 = 0;
    /// `cudaGraphCondTypeWhile`.
    pub const WHILE: u32 = 1;
    /// `cudaGraphCondTypeSwitch`.
    pub const SWITCH: u32 = 2;
}

/// `cudaConditionalNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ConditionalNodeParams {
    /// The handle of the condition.
    pub handle: u64,
    /// See [`conditional_type`].
    pub kind: u32,
    /// How many graphs the node has.
    pub size: u32,
    /// The address of their handles.
    pub graphs: u64,
    /// The context of the node (since CUDA 13).
    pub context: u64,
}

/// `cudaGraphNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct GraphNodeParams {
    /// See [`node_type`].
    pub kind: u32,
    reserved: [u32; 3],
    /// The parameters of that type of node.
    pub value: [u64; 29],
    reserved_end: u64,
}

impl GraphNodeParams {
    /// The parameters as a type of node has them: `T` is one of the types of this module, or of copies.
    pub fn value<T: Pod>(&self) -> &T {
        bytemuck::from_bytes(&bytemuck::bytes_of(&self.value)[..size_of::<T>()])
    }

    /// As [`value`](GraphNodeParams::value), to write the parameters.
    pub fn value_mut<T: Pod>(&mut self) -> &mut T {
        bytemuck::from_bytes_mut(&mut bytemuck::bytes_of_mut(&mut self.value)[..size_of::<T>()])
    }
}

/// Where the `cudaMemcpy3DParms` lie in `cudaMemcpyNodeParams`, in 64-bit words.
pub const MEMCPY_NODE_PARAMETERS: usize = 2;

/// `cudaGraphEdgeData`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
pub struct EdgeData {
    /// When the edge is satisfied: 0 at the end of the node.
    pub from_port: u8,
    /// The part of the second node that waits: 0 all of it.
    pub to_port: u8,
    /// `cudaGraphDependencyType`: 0 default, 1 programmatic.
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 5],
}

/// `cudaGraphInstantiateParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct InstantiateParams {
    /// See [`instantiate_flags`].
    pub flags: u64,
    /// Stream of the upload.
    pub upload_stream: u64,
    /// The node that cannot be, if any.
    pub error_node: u64,
    /// `cudaGraphInstantiateResult`: 0 success, 1 error, 2 invalid structure, 3 not supported, 5 a condition without a node.
    pub result: u32,
    /// Zero.
    pub padding: u32,
}

/// Flags of `cudaGraphInstantiate`.
pub mod instantiate_flags {
    /// `cudaGraphInstantiateFlagAutoFreeOnLaunch`.
    pub const AUTO_FREE_ON_LAUNCH: u64 = 1;
    /// `cudaGraphInstantiateFlagUpload`.
    pub const UPLOAD: u64 = 2;
    /// `cudaGraphInstantiateFlagDeviceLaunch`.
    pub const DEVICE_LAUNCH: u64 = 4;
    /// `cudaGraphInstantiateFlagUseNodePriority`.
    pub const USE_NODE_PRIORITY: u64 = 8;
}

/// `cudaGraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct UpdateResultInfo {
    /// `cudaGraphExecUpdateResult`: see [`update_result`].
    pub result: u32,
    /// Zero.
    pub padding: u32,
    /// The node of the new graph.
    pub error_node: u64,
    /// Where an edge is wrong, the node that it comes from.
    pub error_from_node: u64,
}

/// Values of `cudaGraphExecUpdateResult`.
pub mod update_result {
    /// `cudaGraphExecUpdateSuccess`.
    pub const SUCCESS: u32 = 0;
    /// `cudaGraphExecUpdateError`.
    pub const ERROR: u32 = 1;
    /// `cudaGraphExecUpdateErrorTopologyChanged`.
    pub const TOPOLOGY_CHANGED: u32 = 2;
    /// `cudaGraphExecUpdateErrorNodeTypeChanged`.
    pub const NODE_TYPE_CHANGED: u32 = 3;
    /// `cudaGraphExecUpdateErrorFunctionChanged`.
    pub const FUNCTION_CHANGED: u32 = 4;
    /// `cudaGraphExecUpdateErrorParametersChanged`.
    pub const PARAMETERS_CHANGED: u32 = 5;
    /// `cudaGraphExecUpdateErrorNotSupported`.
    pub const NOT_SUPPORTED: u32 = 6;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<KernelNodeParams>(56, 8);
        assert_eq!(offset_of!(KernelNodeParams, grid), 8);
        assert_eq!(offset_of!(KernelNodeParams, shared_bytes), 32);
        assert_eq!(offset_of!(KernelNodeParams, parameters), 40);
        assert_eq!(offset_of!(KernelNodeParams, extra), 48);
        check::<MemsetParams>(40, 8);
        assert_eq!(offset_of!(MemsetParams, value), 16);
        assert_eq!(offset_of!(MemsetParams, width), 24);
        check::<HostNodeParams>(16, 8);
        check::<MemAllocNodeParams>(120, 8);
        assert_eq!(offset_of!(MemAllocNodeParams, access), 88);
        assert_eq!(offset_of!(MemAllocNodeParams, bytes), 104);
        assert_eq!(offset_of!(MemAllocNodeParams, pointer), 112);
        check::<ConditionalNodeParams>(32, 8);
        assert_eq!(offset_of!(ConditionalNodeParams, graphs), 16);
        check::<GraphNodeParams>(256, 8);
        assert_eq!(offset_of!(GraphNodeParams, value), 16);
        assert_eq!(offset_of!(GraphNodeParams, reserved_end), 248);
        check::<EdgeData>(8, 1);
        check::<InstantiateParams>(32, 8);
        assert_eq!(offset_of!(InstantiateParams, error_node), 16);
        assert_eq!(offset_of!(InstantiateParams, result), 24);
        check::<UpdateResultInfo>(24, 8);
        assert_eq!(offset_of!(UpdateResultInfo, error_node), 8);
        assert_eq!(offset_of!(UpdateResultInfo, error_from_node), 16);
    }

    #[test]
    fn parameters_of_any_node_are_those_of_its_type() {
        let mut parameters = GraphNodeParams::zeroed();
        parameters.value_mut::<HostNodeParams>().data = 17;
        assert_eq!(parameters.value[1], 17);
        parameters.value[2] = 5 | 4 << 32;
        assert_eq!(
            (parameters.value::<MemsetParams>().value, parameters.value::<MemsetParams>().element_bytes),
            (5, 4)
        );
    }
}
