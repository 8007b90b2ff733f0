//! Functions: kernels, and in relocatable files the functions that kernels call.

use super::info::Attribute;
use super::memory::ConstantBank;
use super::symbol::Binding;
use xxhash_rust::xxh3::xxh3_64;

/// Local memory of a thread that a function needs, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackSizes {
    /// The function's own frame (`FRAME_SIZE`).
    pub frame: Option<u32>,
    /// The stack that it needs with all functions that it calls (`MIN_STACK_SIZE`); `None` where this is not said, or not known: for
    /// recursion and calls through pointers ptxas 13.5 writes `0xffff_ffff`. ptxas 12.9 leaves the needs of such calls out of the sum, and
    /// writes 0 for a kernel whose inner functions have frames.
    pub minimum: Option<u32>,
    /// `MAX_STACK_SIZE`, which only relocatable files and older linkers' files have; `None` as above.
    pub maximum: Option<u32>,
}

/// Where a kernel's parameters are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterArea {
    /// Their first byte in constant bank 0 (`PARAM_CBANK`): 0x160 from Volta to Ada, 0x210 for Hopper.
    pub offset: u32,
    /// Their bytes together (`PARAM_CBANK`, `CBANK_PARAM_SIZE`).
    pub bytes: u32,
    /// They, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a kernel (`KPARAM_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its first byte in the area.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// How many threads a block may have in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLimit {
    /// No more threads than the product of these (`MAX_THREADS`, PTX `.maxntid`).
    Maximum([u32; 3]),
    /// These exactly (`REQNTID`, PTX `.reqntid`).
    Required([u32; 3]),
}

/// Static shared memory of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Bytes for every block. Dynamic shared memory comes after them.
    pub bytes: u64,
    /// The alignment of its first byte.
    pub alignment: u64,
}

impl Default for SharedMemory {
    fn default() -> Self {
        Self { bytes: 0, alignment: 1 }
    }
}

/// A branch to an address in a register (`INDIRECT_BRANCH_TARGETS`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectBranch {
    /// The branch, in bytes from the beginning of the code.
    pub offset: u32,
    /// Where it can go, likewise.
    pub targets: Vec<u32>,
}

/// A function inside the code of another: one that a kernel calls and that lies behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerFunction<'data> {
    /// Its name: `$kernel$function` or `$__internal_0_$__cuda_sm70_...`, or as it was declared.
    pub name: &'data str,
    /// The number of its symbol.
    pub symbol: usize,
    /// Who sees it.
    pub binding: Binding,
    /// Its first byte in the code.
    pub offset: u64,
    /// Its bytes, padding included.
    pub bytes: u64,
    /// Its need of local memory.
    pub stack: StackSizes,
}

/// A function: a section `.text.NAME` and the sections that belong to it. Offsets of instructions are in bytes from the beginning of the
/// code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'data> {
    /// Its name.
    pub name: &'data str,
    /// The number of its section.
    pub section: usize,
    /// The number of its symbol.
    pub symbol: usize,
    /// Whether the host can launch it: a kernel.
    pub is_entry: bool,
    /// Who sees it: `Local` for a kernel that was declared `static`.
    pub binding: Binding,
    /// Its instructions, 16 bytes each, and those of [`Self::inner`].
    pub code: &'data [u8],
    /// Registers of a thread: `REGCOUNT`, or else the high byte of the section's information.
    pub registers: u32,
    /// The high byte of the section's information alone.
    pub section_registers: u32,
    /// Barriers of a block, the highest number that it uses and one: `NUM_BARRIERS`, or before the eighth version of the format bits
    /// 20 to 26 of the section's flags.
    pub barriers: u32,
    /// Most registers that the compiler was allowed (`MAXREG_COUNT`); 255 without a limit.
    pub register_limit: Option<u32>,
    /// Its static shared memory (`.nv.shared.NAME`).
    pub shared_memory: SharedMemory,
    /// Its need of local memory.
    pub stack: StackSizes,
    /// `CRS_STACK_SIZE`, where there are calls or divergent regions: 0, or `0xffff_ffff` where the stack's size is not known.
    pub call_return_stack: Option<u32>,
    /// Its parameters.
    pub parameters: ParameterArea,
    /// How large its blocks may be, where it says so.
    pub block_limit: Option<BlockLimit>,
    /// The CTAs of its clusters in each dimension, where it says so (`CTA_PER_CLUSTER`, PTX `.reqnctapercluster`).
    pub cluster: Option<[u32; 3]>,
    /// Whether its launches must have clusters (`EXPLICIT_CLUSTER`, PTX `.explicitcluster`; where the PTX names the clusters, too).
    pub needs_cluster: bool,
    /// CTAs that a cluster of it can have, where it says so (`MAX_CLUSTER_RANK`, PTX `.maxclusterrank`).
    pub maximum_cluster: Option<u32>,
    /// Its `EXIT` instructions.
    pub exits: Vec<u32>,
    /// Its indirect branches.
    pub indirect_branches: Vec<IndirectBranch>,
    /// The symbols from outside that it refers to, by number (`EXTERNS`).
    pub externs: Vec<usize>,
    /// Its calls of functions that the driver supplies, `vprintf` for one (`SYSCALL_OFFSETS`).
    pub system_calls: Vec<u32>,
    /// Instructions of cooperative groups: those with a mask of lanes (`COOP_GROUP_INSTR_OFFSETS`).
    pub cooperative_group_instructions: Vec<u32>,
    /// The registers with their masks (`COOP_GROUP_MASK_REGIDS`): `0x0500_0000` and the register's number, or `0xffff_ffff` for none. As
    /// many as there are such instructions, or none at all.
    pub cooperative_group_mask_registers: Vec<u32>,
    /// Instructions that work on a whole warp (`INT_WARP_WIDE_INSTR_OFFSETS`).
    pub warp_wide_instructions: Vec<u32>,
    /// Whether it reads the block's third index (`CTAIDZ_USED`).
    pub uses_block_index_z: bool,
    /// Whether it has matrix instructions (`WMMA_USED`).
    pub uses_matrix_instructions: bool,
    /// The version of CUDA that it was compiled for, ten times the major number plus the minor one: 129 (`CUDA_API_VERSION`).
    pub api_version: Option<u32>,
    /// Attributes that nothing above has: `SW_WAR`, `UNUSED_LOAD_BYTE_OFFSET` and the like.
    pub other_attributes: Vec<Attribute<'data>>,
    /// The functions inside its code, ordered by offset.
    pub inner: Vec<InnerFunction<'data>>,
    /// Its constant banks: 0 (parameters and values that the driver sets), 2 (constants of the compiler).
    pub constant_banks: Vec<ConstantBank<'data>>,
}

impl<'data> Function<'data> {
    /// Its image of a constant bank.
    pub fn constant_bank(&self, bank: u32) -> Option<&ConstantBank<'data>> {
        self.constant_banks.iter().find(|image| image.bank == bank)
    }

    /// A number that tells its code, as the file has it, from other code: xxHash (XXH3) of the bytes.
    pub fn digest(&self) -> u64 {
        xxh3_64(self.code)
    }
}
