use super::*;
use crate::code::Replacement;
use balar_host::CudaError;
use balar_host::memory::{HOST_BASE, gpu_base};
use balar_isa::program::Program;
use balar_protocol::cuda::ProgramId;
use balar_protocol::detail::KernelPattern;
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
                    // What others have left there.
                    self.memory.insert(address, vec![0xab; bytes as usize]);
                }
                MemoryChange::Unmap { address } => {
                    self.memory.remove(&address);
                }
                MemoryChange::Write { address, bytes } => {
                    let allocation = self.memory.get_mut(&address).expect("a variable is written where it begins");
                    allocation[..bytes.len()].copy_from_slice(&bytes);
                }
                MemoryChange::Zero { address, bytes } => {
                    self.memory.get_mut(&address).expect("a variable begins there")[..bytes as usize].fill(0);
                }
                MemoryChange::Heap { bytes, .. } => assert_eq!(bytes, 4096),
                other => panic!("unexpected {other:?}"),
            }
        }
    }
}

fn load(node: &mut Node, gpu: usize, module: u32, text: &str, room: &mut Upwards) -> Result<LoadedModule, LoadError> {
    load_source(node, gpu, module, &ModuleSource::Ptx(vec![("test.ptx".to_owned(), text.into())]), room)
}

fn load_source(
    node: &mut Node,
    gpu: usize,
    module: u32,
    source: &ModuleSource,
    room: &mut Upwards,
) -> Result<LoadedModule, LoadError> {
    load_with(node, (gpu, module), source, room, None)
}

fn load_with(
    node: &mut Node,
    (gpu, module): (usize, u32),
    source: &ModuleSource,
    room: &mut Upwards,
    replacements: Option<&CodeChoice>,
) -> Result<LoadedModule, LoadError> {
    let request = LoadRequest {
        context: ContextId::first(gpu),
        compute_capability: (7, 0),
        module,
        source,
        heap_bytes: Some(4096),
        launch_bytes: None,
        replacements,
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
        assert_eq!(places.map(|place| word(&node, place)), [Some(7), Some(0x0003_0201), Some(places[0] as u32 as u64)]);
        assert_eq!(loaded.heap, Some((gpu_base(gpu) + 512, 4096)));
        assert_eq!(room.asked.last(), Some(&(Room::Heap, 4096)));
        assert_eq!(loaded.warning.as_deref(), Some("test.ptx: PTX for compute_75 on a GPU of compute capability 7.0"));

        let [usable, _] = &loaded.functions[..] else { panic!("two kernels") };
        assert_eq!((&*usable.name, &usable.parameters[..]), ("use", &[(0, 8), (8, 4), (16, 24)][..]));
        let kernel = node.tables.kernels.find(ContextId::first(gpu), 3, "use").expect("loaded").expect("decoded");
        let attributes = kernel.attributes((7, 0));
        assert_eq!((attributes.maximum_threads, attributes.constant_bytes), (96, 12));
        assert_eq!((attributes.ptx_version, attributes.binary_version), (75, 70));
        assert!(node.tables.programs.get(kernel.code.id()).is_some());
        let refused = node.tables.kernels.find(ContextId::first(gpu), 3, "refused").expect("known");
        assert!(refused.is_err_and(|why| why.contains("undefined_function")));
        assert_eq!(node.tables.symbols.find(ContextId::first(gpu), 3, "table").map(|symbol| symbol.bytes), Some(12));
        assert!(
            node.tables.kernels.find(ContextId::first(gpu), 4, "use").is_none()
                && node.tables.symbols.find(ContextId::first(gpu), 4, "table").is_none()
        );
    }
    assert_eq!(node.tables.code.len(), 1, "the same text is read once");
    let kernel = node.tables.kernels.find(ContextId::first(0), 3, "use").expect("loaded").expect("decoded");
    let (mut room, mut changes) = (Upwards::new(0, 0), Vec::new());
    let mut unload =
        |gpu, module| ModuleLoader::new(&node.tables).unload(ContextId::first(gpu), module, &mut changes, &mut room);
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

/// The kernel `use` has three instructions, and writes the variable of the program's code.
#[test]
fn a_kernel_runs_the_code_that_the_user_gives_it() {
    let own = ModuleSource::Ptx(vec![("test.ptx".to_owned(), TEXT.into())]);
    let other = "
        .version 7.0 .target sm_70 .address_size 64
        .visible .global .align 4 .u32 counter;
        .visible .entry use(.param .u64 a, .param .u32 n, .param .align 8 .b8 s[24]) .maxntid 64, 1, 1 {
            .reg .b32 r; mov.u32 r, 5; st.global.u32 [counter], r; ret;
        }";
    let choice = |name: &'static str, text: &str| CodeChoice {
        isa: crate::code::IsaChoice::Ptx,
        replacements: vec![Replacement::new(
            KernelPattern::new(move |kernel| kernel == name),
            "mine.ptx".to_owned(),
            text.as_bytes().into(),
        )],
        ..CodeChoice::default()
    };
    let load = |choice: &CodeChoice| {
        let (mut node, mut room) = (Node::default(), Upwards::new(0, 9));
        let loaded = load_with(&mut node, (0, 1), &own, &mut room, Some(choice));
        let kernel = node.tables.kernels.find(ContextId::first(0), 1, "use");
        loaded.map(|_| kernel.expect("loaded").expect("decoded").attributes((7, 0)))
    };
    let replaced = choice("use", other);
    let attributes = load(&replaced).expect("it fits");
    assert_eq!((attributes.maximum_threads, attributes.ptx_version), (64, 70));
    assert!(replaced.replacements[0].is_used());
    let unused = choice("absent", other);
    assert_eq!(load(&unused).expect("it is the program's own").maximum_threads, 96);
    assert!(!unused.replacements[0].is_used());
    for (changed, why) in [
        (other.replace(".entry use", ".entry uses"), "it has no kernel of this name; it has: uses"),
        (other.replace(".param .u32 n", ".param .u64 n"), "its kernel has other parameters"),
        (other.replace("counter", "count"), "it has a variable `count`, which the program's code has not"),
    ] {
        let error = load(&choice("use", &changed)).expect_err(why).to_string();
        assert_eq!(error, format!("--code: mine.ptx cannot take the place of the code of use: {why}"));
    }
}

#[test]
fn programs_of_the_same_addresses_are_decoded_once() {
    let mut node = Node::default();
    let mut programs = Vec::new();
    for module in [1, 2] {
        load(&mut node, 0, module, TEXT, &mut Upwards::new(0, 9)).expect("the text is right");
        let kernel = node.tables.kernels.find(ContextId::first(0), module, "use").expect("loaded").expect("decoded");
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
    assert!(error.to_string().contains("test.ptx:2:18: ") && error.to_string().contains(why), "{error}");
    assert!(node.tables.kernels.find(ContextId::first(0), 1, "use").is_none());
}

const CUBIN: &[u8] = include_bytes!("../../../../isa/tests/cubins/variables.sm_70.cubin");
const REFERENCES: &[u8] = include_bytes!("../../../../isa/tests/cubins/references.sm_70.cubin");

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
    // Variables without initial values are zero, whatever was there before.
    let is_zero = |address: u64| node.memory[&address].iter().all(|byte| *byte == 0);
    assert!(is_zero(sections[1]) && is_zero(managed[1]));
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
    let twice = ["one", "other"].map(|name| (name.to_owned(), relocatable.as_slice().into()));
    let twice = ModuleSource::machine(twice.to_vec());
    let error = load_source(&mut node, 0, 1, &twice, &mut Upwards::new(0, 9)).expect_err("all twice");
    assert_eq!(error.cuda_error(), CudaError::InvalidKernelImage);
    assert!(error.to_string().starts_with("one, other: two of the cubins that are linked define "), "{error}");
}
