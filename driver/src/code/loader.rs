//! Loading code: before the run that of a built-in workload, during it whatever programs load.

use super::assembler::AssemblyError;
use super::cache::{CodeCache, ModuleKernel};
use super::module::{CodeModule, ModuleSource};
use super::tables::{DriverTables, KernelSource, KernelTable, ProgramTable, Symbol, SymbolTable};
use crate::effect::MemoryChange;
use balar_host::CudaError;
use balar_host::call::{BUILT_IN_MODULE, ModuleFunction, ModuleVariable, VariableKind};
use balar_isa::fatbin::ImageError;
use balar_isa::machine::{MachineError, Placement};
use balar_isa::module;
use balar_isa::ptx::PtxErrors;
use balar_protocol::ContextId;
use std::sync::Arc;

/// Alignment of a variable and of the device heap, as `cudaMalloc` aligns.
const ALIGNMENT: u64 = 256;

/// What a module needs room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A variable: a managed one in the host window, any other in the GPU's memory.
    Variable(VariableKind),
    /// The device heap, in the GPU's memory.
    Heap,
}

/// Where modules get memory from: the allocator of the simulated host's driver.
pub trait ModuleMemory {
    /// The address of `bytes` new bytes, at a multiple of `alignment`, a power of two; `None` where there are none left.
    fn allocate(&mut self, room: Room, bytes: u64, alignment: u64) -> Option<u64>;

    /// Gives back what [`Self::allocate`] gave.
    fn free(&mut self, address: u64);
}

/// Which code is to be loaded, and where.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    /// The context that it is loaded in.
    pub context: ContextId,
    /// The compute capability of its GPU.
    pub compute_capability: (u32, u32),
    /// The module's number, which no other of the context has.
    pub module: u32,
    /// The code.
    pub source: &'a ModuleSource,
    /// Bytes of the device heap, which is made where kernels of the module allocate; `None` where the context has one.
    pub heap_bytes: Option<u64>,
}

/// A module that was loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadedModule {
    /// Its kernels.
    pub functions: Vec<ModuleFunction>,
    /// Its variables.
    pub variables: Vec<ModuleVariable>,
    /// The device heap that was made for it: first address, bytes.
    pub heap: Option<(u64, u64)>,
    /// What the user should know.
    pub warning: Option<String>,
}

/// Why a module was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The image.
    #[error("{name}: {error}")]
    Image {
        /// The image's name.
        name: String,
        /// What is wrong with it.
        error: ImageError,
    },
    /// The PTX texts.
    #[error(transparent)]
    Ptx(#[from] Box<PtxErrors>),
    /// The machine code.
    #[error("{name}: {error}")]
    Machine {
        /// The files.
        name: String,
        /// What is wrong with them.
        error: MachineError,
    },
    /// Machine code is asked for, and nothing makes any of the PTX texts.
    #[error("{name}: {found}; there is no assembler (ptxas) for the PTX")]
    NoAssembler {
        /// The code.
        name: String,
        /// What there is instead of machine code.
        found: String,
    },
    /// Machine code is asked for, and the assembler does not make any of the PTX texts.
    #[error("{name}: {error}")]
    Assembly {
        /// The texts.
        name: String,
        /// Why.
        error: AssemblyError,
    },
    /// The PTX texts are for a later generation of GPUs.
    #[error("cudaErrorNoKernelImageForDevice: {0}")]
    Target(Box<PtxErrors>),
    /// The memory has no room for what it needs.
    #[error("{name} needs {bytes} bytes of memory for {what}, more than is free")]
    Memory {
        /// The parts of the module.
        name: String,
        /// What did not fit.
        what: String,
        /// Bytes of it.
        bytes: u64,
    },
}

impl LoadError {
    /// The error that CUDA's calls return.
    pub fn cuda_error(&self) -> CudaError {
        match self {
            LoadError::Image { error: ImageError::NoCode { .. } | ImageError::NoMachineCode { .. }, .. } => {
                CudaError::NoKernelImageForDevice
            }
            LoadError::Machine { error: MachineError::Architecture(_), .. } => CudaError::NoKernelImageForDevice,
            LoadError::Image { .. } | LoadError::Machine { .. } => CudaError::InvalidKernelImage,
            LoadError::Ptx(_) | LoadError::Assembly { error: AssemblyError::Refused(_), .. } => CudaError::InvalidPtx,
            LoadError::Target(_) | LoadError::NoAssembler { .. } | LoadError::Assembly { .. } => {
                CudaError::NoKernelImageForDevice
            }
            LoadError::Memory { .. } => CudaError::MemoryAllocation,
        }
    }
}

/// Loads and unloads modules.
#[derive(Clone, Debug)]
pub struct ModuleLoader {
    kernels: Arc<KernelTable>,
    symbols: Arc<SymbolTable>,
    programs: Arc<ProgramTable>,
    code: Arc<CodeCache>,
}

impl ModuleLoader {
    /// Loads into these tables.
    pub fn new(tables: &DriverTables) -> ModuleLoader {
        ModuleLoader {
            kernels: Arc::clone(&tables.kernels),
            symbols: Arc::clone(&tables.symbols),
            programs: Arc::clone(&tables.programs),
            code: Arc::clone(&tables.code),
        }
    }

    /// Loads a module: places its variables and, where its kernels allocate, the device heap; leaves what memory needs in
    /// `changes`, initial values included; and adds kernels and variables to the tables.
    ///
    /// # Errors
    ///
    /// Mistakes in the code, or too little memory; nothing is loaded then, and nothing stays allocated. A kernel that cannot run
    /// is no error but one of its launches.
    pub fn load(
        &self,
        request: &LoadRequest,
        changes: &mut Vec<MemoryChange>,
        memory: &mut dyn ModuleMemory,
    ) -> Result<LoadedModule, LoadError> {
        let cached = self.code.linked(request.source)?;
        let module = &cached.module;
        module.check_target(request.compute_capability)?;
        let placements = module.placements();
        let mut addresses = Vec::with_capacity(placements.len());
        let mut allocated = Vec::new();
        for placement in &placements {
            if module.is_number(placement) {
                addresses.push(self.symbols.number_reference());
                continue;
            }
            match place(placement, request, memory) {
                Ok(address) => {
                    addresses.push(address);
                    allocated.push(address);
                }
                Err(error) => return Err(give_back(allocated, memory, error)),
            }
        }
        let heap = match heap(module, request, memory) {
            Ok(heap) => heap,
            Err(error) => return Err(give_back(allocated, memory, error)),
        };
        let mut loaded = LoadedModule { heap, ..LoadedModule::default() };
        for (index, (placement, &address)) in placements.iter().zip(&addresses).enumerate() {
            if module.is_number(placement) {
                continue;
            }
            let bytes = placement.bytes.max(1);
            changes.push(MemoryChange::Map { process: request.context.process(), address, bytes });
            if let Some(bytes) = module.initial_value(index, &addresses) {
                changes.push(MemoryChange::Write { address, bytes: bytes.into() });
            }
        }
        let mut constant_bytes = 0;
        for variable in module.variables() {
            let kind = kind_of(variable.kind);
            if kind == VariableKind::Constant {
                constant_bytes += variable.bytes;
            }
            let address = addresses[variable.placement] + variable.offset;
            let symbol = Symbol { address, bytes: variable.bytes, kind };
            self.symbols.insert(request.context, request.module, &variable.name, symbol);
            loaded.variables.push(ModuleVariable { name: variable.name.into(), address, bytes: variable.bytes, kind });
        }
        if let Some((address, bytes)) = heap {
            changes.push(MemoryChange::Heap { context: request.context, address, bytes });
        }
        if let Some(architecture) = module.later_architecture(request.compute_capability) {
            let (major, minor) = request.compute_capability;
            loaded.warning = Some(format!(
                "{}: PTX for compute_{architecture} on a GPU of compute capability {major}.{minor}",
                request.source.names()
            ));
        }
        let decoded = cached.kernels(&addresses);
        let constant_bytes = u32::try_from(constant_bytes).unwrap_or(u32::MAX);
        for (number, (name, slots)) in module.kernels().into_iter().enumerate() {
            let (ptx_version, binary_version) = module.versions(&name, request.compute_capability);
            let ptx_version = request.source.target().unwrap_or(ptx_version);
            let kernel = KernelSource {
                kernel: ModuleKernel {
                    module: Arc::clone(&cached),
                    decoded: Arc::clone(&decoded),
                    name: Arc::clone(&name),
                    number,
                },
                programs: Arc::clone(&self.programs),
                id: self.programs.reserve(),
                constant_bytes,
                ptx_version,
                binary_version,
            };
            self.kernels.insert_source(request.context, request.module, kernel);
            let parameters = slots.iter().map(|slot| (slot.offset, slot.bytes)).collect();
            loaded.functions.push(ModuleFunction { name, parameters });
        }
        self.code.note_allocated(request.context, request.module, allocated);
        self.code.note_loaded(request.source);
        Ok(loaded)
    }

    /// Ends a module: nothing of its code runs any more. Its variables end. Of the built-in module 0 or one that is not
    /// loaded, false.
    pub fn unload(
        &self,
        context: ContextId,
        module: u32,
        changes: &mut Vec<MemoryChange>,
        memory: &mut dyn ModuleMemory,
    ) -> bool {
        let removed = if module == BUILT_IN_MODULE { None } else { self.code.take_allocated(context, module) };
        let Some(addresses) = removed else { return false };
        for address in addresses {
            changes.push(MemoryChange::Unmap { address });
            memory.free(address);
        }
        self.symbols.remove(context, module);
        for program in self.kernels.remove(context, module) {
            self.programs.remove(program);
        }
        true
    }
}

/// The address of what needs a place.
fn place(placement: &Placement, request: &LoadRequest, memory: &mut dyn ModuleMemory) -> Result<u64, LoadError> {
    let room = Room::Variable(kind_of(placement.kind));
    let alignment = placement.alignment.max(ALIGNMENT).next_power_of_two();
    let address = memory.allocate(room, placement.bytes.max(1), alignment);
    address.ok_or_else(|| no_room(request, format!("its variable {}", placement.name), placement.bytes))
}

/// The device heap, where one is made.
fn heap(
    module: &CodeModule,
    request: &LoadRequest,
    memory: &mut dyn ModuleMemory,
) -> Result<Option<(u64, u64)>, LoadError> {
    let Some(bytes) = request.heap_bytes.filter(|_| module.allocates()) else { return Ok(None) };
    let start = memory.allocate(Room::Heap, bytes, ALIGNMENT);
    Ok(Some((start.ok_or_else(|| no_room(request, "the device heap".to_owned(), bytes))?, bytes)))
}

fn no_room(request: &LoadRequest, what: String, bytes: u64) -> LoadError {
    LoadError::Memory { name: request.source.names(), what, bytes }
}

/// Frees what was allocated before something failed.
fn give_back(allocated: Vec<u64>, memory: &mut dyn ModuleMemory, error: LoadError) -> LoadError {
    allocated.into_iter().for_each(|address| memory.free(address));
    error
}

fn kind_of(kind: module::VariableKind) -> VariableKind {
    match kind {
        module::VariableKind::Global => VariableKind::Global,
        module::VariableKind::Constant => VariableKind::Constant,
        module::VariableKind::Managed => VariableKind::Managed,
        module::VariableKind::Texture | module::VariableKind::Sampler => VariableKind::Texture,
        module::VariableKind::Surface => VariableKind::Surface,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::memory::{HOST_BASE, gpu_base};
    use balar_isa::program::Program;
    use balar_protocol::cuda::ProgramId;
    use std::collections::BTreeMap;

    const TEXT: &str = "
        .version 7.0 .target sm_75 .address_size 64
        .extern .func (.param .b64 r) malloc (.param .b64 n);
        .extern .func undefined_function ();
        .visible .global .align 4 .u32 counter = 7;
        .visible .const .align 4 .b8 table[12] = {1, 2, 3};
        .visible .global .attribute(.managed) .align 8 .u64 both = counter;
        .visible .entry use(.param .u64 a, .param .u32 n, .param .align 8 .b8 s[24]) .maxntid 96, 1, 1 {
            .reg .b32 r; ld.global.u32 r, [counter]; ret;
        }
        .visible .entry refused() { .reg .b32 r; call undefined_function; ret; }";

    /// Hands out addresses upwards, and knows which were given back.
    struct Upwards {
        device: u64,
        host: u64,
        left: usize,
        freed: Vec<u64>,
        asked: Vec<(Room, u64)>,
    }

    impl Upwards {
        fn new(gpu: usize, left: usize) -> Upwards {
            Upwards { device: gpu_base(gpu), host: HOST_BASE, left, freed: Vec::new(), asked: Vec::new() }
        }
    }

    impl ModuleMemory for Upwards {
        fn allocate(&mut self, room: Room, bytes: u64, alignment: u64) -> Option<u64> {
            self.asked.push((room, bytes));
            self.left = self.left.checked_sub(1)?;
            let next = match room {
                Room::Variable(VariableKind::Managed) => &mut self.host,
                _ => &mut self.device,
            };
            let address = next.next_multiple_of(alignment);
            *next = address + bytes;
            Some(address)
        }

        fn free(&mut self, address: u64) {
            self.freed.push(address);
        }
    }

    /// A driver's tables, and the allocations of the GPUs.
    #[derive(Default)]
    struct Node {
        tables: DriverTables,
        memory: BTreeMap<u64, Vec<u8>>,
    }

    impl Node {
        fn apply(&mut self, changes: Vec<MemoryChange>) {
            for change in changes {
                match change {
                    MemoryChange::Map { address, bytes, .. } => {
                        self.memory.insert(address, vec![0; bytes as usize]);
                    }
                    MemoryChange::Unmap { address } => {
                        self.memory.remove(&address);
                    }
                    MemoryChange::Write { address, bytes } => {
                        let allocation = self.memory.get_mut(&address).expect("a variable is written where it begins");
                        allocation[..bytes.len()].copy_from_slice(&bytes);
                    }
                    MemoryChange::Heap { bytes, .. } => assert_eq!(bytes, 4096),
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
    }

    fn load(
        node: &mut Node,
        gpu: usize,
        module: u32,
        text: &str,
        room: &mut Upwards,
    ) -> Result<LoadedModule, LoadError> {
        load_source(node, gpu, module, &ModuleSource::Ptx(vec![("test.ptx".to_owned(), text.into())]), room)
    }

    fn load_source(
        node: &mut Node,
        gpu: usize,
        module: u32,
        source: &ModuleSource,
        room: &mut Upwards,
    ) -> Result<LoadedModule, LoadError> {
        let request = LoadRequest {
            context: ContextId::first(gpu),
            compute_capability: (7, 0),
            module,
            source,
            heap_bytes: Some(4096),
        };
        let mut changes = Vec::new();
        let loaded = ModuleLoader::new(&node.tables).load(&request, &mut changes, room);
        node.apply(changes);
        loaded
    }

    fn word(node: &Node, address: u64) -> Option<u64> {
        let bytes = node.memory.get(&address)?;
        Some(u64::from(u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))))
    }

    #[test]
    fn a_module_is_loaded_for_each_gpu_and_unloaded() {
        let mut node = Node::default();
        for gpu in [0, 1] {
            let mut room = Upwards::new(gpu, 9);
            let loaded = load(&mut node, gpu, 3, TEXT, &mut room).expect("the text is right");
            let places = [gpu_base(gpu), gpu_base(gpu) + 256, HOST_BASE];
            let variables: Vec<_> = loaded.variables.iter().map(|v| (&*v.name, v.address, v.bytes, v.kind)).collect();
            assert_eq!(
                variables,
                [
                    ("counter", places[0], 4, VariableKind::Global),
                    ("table", places[1], 12, VariableKind::Constant),
                    ("both", places[2], 8, VariableKind::Managed),
                ]
            );
            assert_eq!(
                places.map(|place| word(&node, place)),
                [Some(7), Some(0x0003_0201), Some(places[0] as u32 as u64)]
            );
            assert_eq!(loaded.heap, Some((gpu_base(gpu) + 512, 4096)));
            assert_eq!(room.asked.last(), Some(&(Room::Heap, 4096)));
            assert_eq!(
                loaded.warning.as_deref(),
                Some("test.ptx: PTX for compute_75 on a GPU of compute capability 7.0")
            );

            let [usable, _] = &loaded.functions[..] else { panic!("two kernels") };
            assert_eq!((&*usable.name, &usable.parameters[..]), ("use", &[(0, 8), (8, 4), (16, 24)][..]));
            let kernel = node.tables.kernels.find(ContextId::first(gpu), 3, "use").expect("loaded").expect("decoded");
            let attributes = kernel.attributes();
            assert_eq!((attributes.maximum_threads, attributes.constant_bytes), (96, 12));
            assert_eq!((attributes.ptx_version, attributes.binary_version), (75, 70));
            assert!(node.tables.programs.get(kernel.code.id()).is_some());
            let refused = node.tables.kernels.find(ContextId::first(gpu), 3, "refused").expect("known");
            assert!(refused.is_err_and(|why| why.contains("undefined_function")));
            assert_eq!(
                node.tables.symbols.find(ContextId::first(gpu), 3, "table").map(|symbol| symbol.bytes),
                Some(12)
            );
            assert!(
                node.tables.kernels.find(ContextId::first(gpu), 4, "use").is_none()
                    && node.tables.symbols.find(ContextId::first(gpu), 4, "table").is_none()
            );
        }
        assert_eq!(node.tables.code.len(), 1, "the same text is read once");
        let kernel = node.tables.kernels.find(ContextId::first(0), 3, "use").expect("loaded").expect("decoded");
        let (mut room, mut changes) = (Upwards::new(0, 0), Vec::new());
        let mut unload = |gpu, module| {
            ModuleLoader::new(&node.tables).unload(ContextId::first(gpu), module, &mut changes, &mut room)
        };
        assert_eq!([unload(0, 3), unload(0, 3), unload(0, 0), unload(2, 3)], [true, false, false, false]);
        node.apply(changes);
        assert_eq!(room.freed, [gpu_base(0), gpu_base(0) + 256, HOST_BASE]);
        assert_eq!([0, 1].map(|gpu| word(&node, gpu_base(gpu))), [None, Some(7)]);
        assert!(
            node.tables.kernels.find(ContextId::first(0), 3, "use").is_none()
                && node.tables.programs.get(kernel.code.id()).is_none()
        );
        assert!(
            node.tables.kernels.find(ContextId::first(1), 3, "use").is_some()
                && node.tables.symbols.find(ContextId::first(1), 3, "both").is_some()
        );
    }

    #[test]
    fn programs_of_the_same_addresses_are_decoded_once() {
        let mut node = Node::default();
        let mut programs = Vec::new();
        for module in [1, 2] {
            load(&mut node, 0, module, TEXT, &mut Upwards::new(0, 9)).expect("the text is right");
            let kernel =
                node.tables.kernels.find(ContextId::first(0), module, "use").expect("loaded").expect("decoded");
            programs.push((kernel.code.id(), kernel.code.program::<Program>().expect("decoded")));
        }
        assert!(programs[0].0 != programs[1].0 && Arc::ptr_eq(&programs[0].1, &programs[1].1));
    }

    #[test]
    fn a_kernel_is_decoded_when_it_is_first_looked_up() {
        let mut node = Node::default();
        load(&mut node, 0, 1, TEXT, &mut Upwards::new(0, 9)).expect("the text is right");
        let text = TEXT.replace(".entry use", ".entry first() { ret; } .visible .entry use");
        load(&mut node, 0, 2, &text, &mut Upwards::new(0, 9)).expect("the text is right");
        let find = |name: &str| {
            let kernel = node.tables.kernels.find(ContextId::first(0), 2, name).expect("loaded");
            kernel.expect("decoded").code.id()
        };
        // The first module has the programs 1 and 2; the second one's are numbered in the order of the text, too.
        let numbers = [ProgramId(3), ProgramId(4)];
        assert!(numbers.iter().all(|id| node.tables.programs.get(*id).is_none()), "nobody has asked for a kernel");
        assert_eq!([find("use"), find("use"), find("first")], [numbers[1], numbers[1], numbers[0]]);
        assert!(numbers.iter().all(|id| node.tables.programs.get(*id).is_some()));
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let mut node = Node::default();
        for (left, what) in [(1, "table"), (2, "both"), (3, "the device heap")] {
            let mut room = Upwards::new(0, left);
            let error = load(&mut node, 0, 1, TEXT, &mut room).expect_err("too little memory");
            assert_eq!(error.cuda_error(), CudaError::MemoryAllocation);
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(room.freed.len(), left);
            assert_eq!(word(&node, gpu_base(0)), None);
        }
        let error = load(&mut node, 0, 1, ".version 7.0 nonsense", &mut Upwards::new(0, 9)).expect_err("no PTX");
        assert_eq!(error.cuda_error(), CudaError::InvalidPtx);
        let later = TEXT.replace("sm_75", "sm_80");
        let error = load(&mut node, 0, 1, &later, &mut Upwards::new(0, 9)).expect_err("PTX for a later GPU");
        assert_eq!(error.cuda_error(), CudaError::NoKernelImageForDevice);
        let why = "PTX for sm_80 on a GPU of compute capability 7.0";
        assert!(error.to_string().contains("test.ptx:2:22: ") && error.to_string().contains(why), "{error}");
        assert!(node.tables.kernels.find(ContextId::first(0), 1, "use").is_none());
    }

    const CUBIN: &[u8] = include_bytes!("../../../isa/tests/cubins/variables.sm_70.cubin");
    const REFERENCES: &[u8] = include_bytes!("../../../isa/tests/cubins/references.sm_70.cubin");

    fn machine(image: &[u8]) -> ModuleSource {
        ModuleSource::machine(vec![("test.cubin".to_owned(), image.into())])
    }

    #[test]
    fn sections_of_machine_code_are_allocations_with_variables_in_them() {
        let mut node = Node::default();
        let mut room = Upwards::new(0, 9);
        let loaded = load_source(&mut node, 0, 1, &machine(CUBIN), &mut room).expect("a cubin");
        let base = gpu_base(0);
        let sections = [base, base + 0x100, base + 0x500];
        let managed = [HOST_BASE, HOST_BASE + 256];
        let heap = base + 0x600;
        let variable = |name: &str| {
            let found = loaded.variables.iter().find(|it| &*it.name == name).expect("the variable");
            let symbol = node.tables.symbols.find(ContextId::first(0), 1, name).expect("the same");
            assert_eq!((symbol.address, symbol.bytes, symbol.kind), (found.address, found.bytes, found.kind));
            (found.address, found.bytes, found.kind)
        };
        assert_eq!(variable("third"), (sections[0], 8, VariableKind::Global));
        assert_eq!(variable("values"), (sections[1] + 0x320, 40, VariableKind::Global));
        assert_eq!(variable("first"), (sections[2] + 0x10, 8, VariableKind::Constant));
        assert_eq!(variable("counter"), (managed[0], 4, VariableKind::Managed));
        assert_eq!(variable("scratch"), (managed[1], 800, VariableKind::Managed));
        assert_eq!(loaded.heap, Some((heap, 4096)));
        let pointer = |address: u64, at: usize| {
            let bytes = node.memory.get(&address).expect("an allocation");
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        assert_eq!([pointer(sections[0], 0), pointer(sections[2], 0x10)], [12, 4].map(|at| sections[1] + 0x320 + at));
        assert_eq!(word(&node, managed[0]), Some(5));
        let [compute, ..] = &loaded.functions[..] else { panic!("kernels") };
        assert_eq!((&*compute.name, &compute.parameters[..]), ("compute", &[(0, 8), (8, 4)][..]));
        assert_eq!(node.tables.code.isa(), "sass");
        load(&mut node, 0, 2, TEXT, &mut Upwards::new(1, 9)).expect("the text is right");
        assert_eq!(node.tables.code.isa(), "mixed");

        let mut changes = Vec::new();
        assert!(ModuleLoader::new(&node.tables).unload(ContextId::first(0), 1, &mut changes, &mut room));
        node.apply(changes);
        assert!(sections.iter().chain(&managed).all(|address| !node.memory.contains_key(address)));
        assert_eq!(room.freed, [sections[0], sections[1], sections[2], managed[0], managed[1]]);
    }

    #[test]
    fn references_of_machine_code_have_numbers_of_their_own() {
        let mut node = Node::default();
        let mut room = Upwards::new(0, 9);
        let mut seen = Vec::new();
        for module in [1, 2] {
            let loaded = load_source(&mut node, 0, module, &machine(REFERENCES), &mut room).expect("a cubin");
            for (name, kind) in [
                ("picture", VariableKind::Texture),
                ("other_picture", VariableKind::Texture),
                ("drawing", VariableKind::Surface),
            ] {
                let found = loaded.variables.iter().find(|it| &*it.name == name).expect("the reference");
                assert_eq!((found.kind, found.bytes), (kind, 0));
                seen.push(found.address);
            }
        }
        assert_eq!(seen, (0..6).map(|number| (1 << 31) + number).collect::<Vec<_>>());
        // One section, and the number of a texture in it.
        assert_eq!((room.asked.len(), word(&node, gpu_base(0))), (2, Some(1 << 31 | 1)));
        let mut changes = Vec::new();
        assert!(ModuleLoader::new(&node.tables).unload(ContextId::first(0), 1, &mut changes, &mut room));
        assert_eq!((changes.len(), &room.freed[..]), (1, &[gpu_base(0)][..]));
    }

    #[test]
    fn machine_code_that_cannot_be_loaded_leaves_nothing_behind() {
        let mut node = Node::default();
        for (left, what) in [(0, ".nv.global.init"), (3, "counter"), (5, "the device heap")] {
            let mut room = Upwards::new(0, left);
            let error = load_source(&mut node, 0, 1, &machine(CUBIN), &mut room).expect_err("too little memory");
            assert_eq!(error.cuda_error(), CudaError::MemoryAllocation);
            assert!(error.to_string().starts_with("test.cubin needs ") && error.to_string().contains(what), "{error}");
            assert_eq!((room.freed.len(), node.memory.len()), (left, 0));
        }
        let mut relocatable = CUBIN.to_vec();
        relocatable[16] = 1;
        let error =
            load_source(&mut node, 0, 1, &machine(&relocatable), &mut Upwards::new(0, 9)).expect_err("not linked");
        assert_eq!(error.cuda_error(), CudaError::InvalidKernelImage);
        assert!(error.to_string().starts_with("test.cubin: machine code that is to be linked"), "{error}");
    }
}
