//! Cubins as modules: their kernels, and the variables that need a place in device memory.
//!
//! Variables lie at offsets in sections, and a section is one allocation. Managed variables share these sections in the file, but lie
//! in memory of their own: the code names them through their symbols alone. A texture or surface reference has a number instead of a
//! place; slots of constant bank 0 hold it.

use super::code::{MachineCode, PARAMETERS_AT, ParameterBase, kernel_address};
use super::functions::{FunctionsKey, FunctionsOfModule};
use super::launched::launched_by;
use super::link::{self, Linker};
use super::lowering::{decode, lower_decoded};
use super::places::{PlacedVariable, Placement, Places, data_relocations};
use super::reach::reached_functions;
use super::shared::{Parts, SharedFunctions};
use super::stack::LocalMemory;
use super::system_calls::{further_system_calls, system_calls};
use super::{MAXIMUM_SECTION_BYTES, MachineError, lower};
use crate::cubin::{BlockLimit, Cubin, Function, SymbolKind};
use crate::execution::SystemCall;
use crate::program::Program;
use crate::program::parts::{ClusterNeeds, ParameterSlot, Resources};
use crate::sass;
use std::sync::Arc;

/// A kernel that is not decoded yet.
#[derive(Clone, Debug)]
struct Kernel {
    name: Box<str>,
    /// The number of its file.
    file: usize,
    parameters: Vec<ParameterSlot>,
}

/// A cubin of the module: a file that was linked, or all those together that were not.
#[derive(Clone, Debug)]
struct File {
    /// The file itself, or those that are linked with each other.
    images: Vec<Arc<[u8]>>,
    places: Places,
    architecture: u32,
    virtual_architecture: u32,
    /// The number of its first kernel among those of the module.
    first_kernel: usize,
}

/// Cubins that were read. Their sections get addresses before their kernels are decoded. Relocatable ones are linked with each other;
/// no other refers to another.
#[derive(Clone, Debug)]
pub struct MachineModule {
    files: Vec<File>,
    placements: Vec<Placement>,
    variables: Vec<PlacedVariable>,
    kernels: Vec<Kernel>,
    allocates: bool,
    functions: FunctionsOfModule,
    launches: bool,
}

impl MachineModule {
    /// Reads cubins.
    ///
    /// # Errors
    ///
    /// A cubin that is malformed, is for another architecture than the simulated ones, or claims more memory than any GPU has; kernels that
    /// several of them define; and relocatable ones that do not fit each other. Code that cannot run is an error of
    /// [`MachineModule::program`].
    pub fn read(images: impl IntoIterator<Item = Arc<[u8]>>) -> Result<Self, MachineError> {
        let mut module = MachineModule {
            files: Vec::new(),
            placements: Vec::new(),
            variables: Vec::new(),
            kernels: Vec::new(),
            allocates: false,
            functions: FunctionsOfModule::default(),
            launches: false,
        };
        let mut pieces: Vec<Arc<[u8]>> = Vec::new();
        for image in images {
            let cubin = Cubin::read(&image)?;
            if !sass::ARCHITECTURES.contains(&cubin.architecture) {
                return Err(MachineError::Architecture(cubin.architecture));
            }
            check_sections(&cubin)?;
            if cubin.is_relocatable {
                pieces.push(image);
            } else {
                module.add(&cubin, vec![Arc::clone(&image)])?;
            }
        }
        if !pieces.is_empty() {
            module.add(&cubin(&pieces)?, pieces.clone())?;
        }
        Ok(module)
    }

    /// Adds a file, which was found to be right.
    fn add(&mut self, cubin: &Cubin<'_>, images: Vec<Arc<[u8]>>) -> Result<(), MachineError> {
        let places = Places::new(cubin, &mut self.placements);
        data_relocations(cubin)?;
        let first_kernel = self.kernels.len();
        for variable in places.variables(cubin) {
            // Files that were linked can have several of a name that are each seen by a part of the code alone.
            if self.variables.iter().all(|other| other.name != variable.name) {
                self.variables.push(variable);
            }
        }
        for function in cubin.kernels() {
            if self.kernels.iter().any(|kernel| *kernel.name == *function.name) {
                return Err(MachineError::TwoKernels(function.name.to_owned()));
            }
            let slots = function.parameters.parameters.iter();
            let parameters = slots.map(|slot| ParameterSlot { offset: slot.offset, bytes: slot.bytes }).collect();
            self.kernels.push(Kernel { name: function.name.into(), file: self.files.len(), parameters });
        }
        self.allocates |=
            cubin.undefined_symbols().any(|symbol| symbol.kind == SymbolKind::Function && symbol.name == "malloc");
        self.launches |= system_calls(cubin).any(SystemCall::launches);
        let architecture = cubin.architecture;
        self.files.push(File {
            images,
            places,
            architecture,
            virtual_architecture: cubin.virtual_architecture.unwrap_or(architecture),
            first_kernel,
        });
        Ok(())
    }

    /// The architecture that the code is for, the highest of its files: 75. 0 where there is no file.
    pub fn architecture(&self) -> u32 {
        self.files.iter().map(|file| file.architecture).max().unwrap_or(0)
    }

    /// The architecture of a kernel's code, and that of the PTX that it was compiled from; 0 where there is no such kernel.
    pub fn architectures_of(&self, kernel: &str) -> (u32, u32) {
        let file = self.kernel(kernel).and_then(|kernel| self.files.get(kernel.file));
        file.map_or((0, 0), |file| (file.architecture, file.virtual_architecture))
    }

    /// The parts that need a place or a number, in the order of the files.
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// The variables, with their places.
    pub fn variables(&self) -> &[PlacedVariable] {
        &self.variables
    }

    /// Whether a function may allocate from the device heap.
    pub fn allocates(&self) -> bool {
        self.allocates
    }

    /// Whether its kernels may launch kernels.
    pub fn launches(&self) -> bool {
        self.launches
    }

    /// The kernels that a kernel can launch: the addresses that stand for them, and their names. None for a name that is no kernel, or is
    /// refused.
    pub fn launched_by(&self, kernel: &str) -> Vec<(u64, &str)> {
        let Some(file) = self.kernel(kernel).and_then(|kernel| self.files.get(kernel.file)) else { return Vec::new() };
        let names = cubin(&file.images).map(|cubin| launched_by(&cubin, kernel)).unwrap_or_default();
        let named = |number: usize| {
            Some((kernel_address(file.first_kernel + number), &*self.kernels.get(file.first_kernel + number)?.name))
        };
        names.into_iter().filter_map(named).collect()
    }

    /// Names of the kernels, in the order of the files.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| &*kernel.name)
    }

    /// The parameters of each kernel, in the order of [`MachineModule::kernels`].
    pub fn kernel_parameters(&self) -> impl Iterator<Item = Vec<ParameterSlot>> {
        self.kernels.iter().map(|kernel| kernel.parameters.clone())
    }

    fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| *kernel.name == *name)
    }

    /// The bytes that a placement begins with, where `addresses[i]` is the address of `placements()[i]`, or its number. `None` where
    /// all are zero, or where there is no such placement.
    pub fn initial_value(&self, placement: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        let file = self.files.iter().rev().find(|file| file.places.first() <= placement)?;
        let cubin = cubin(&file.images).ok()?;
        Linker::new(&cubin, &file.places, addresses, file.first_kernel).initial_value(placement)
    }

    /// Links one kernel with the functions that it can reach. `addresses` are as for [`MachineModule::initial_value`].
    ///
    /// # Errors
    ///
    /// There is no such kernel, or it or one of these functions names an undefined symbol, or it asks for more than a GPU has.
    pub fn code(&self, kernel: &str, addresses: &[u64]) -> Result<MachineCode, MachineError> {
        self.with_kernel(kernel, addresses, |kernel| {
            let functions: Vec<&Function<'_>> =
                [kernel.entry].into_iter().chain(kernel.reached.iter().copied()).collect();
            let (words, starts) = kernel.linker.words(&functions, 0)?;
            let parts = Parts::of(&words, 0, &functions, &kernel.linker);
            let local = LocalMemory::of(kernel.entry, [&parts], words.len());
            Ok(MachineCode {
                words,
                functions: starts,
                sections: kernel.linker.sections(&functions),
                ..kernel.code(&local)?
            })
        })
    }

    /// Decodes one kernel and the functions that it can reach. `addresses` are as for [`MachineModule::initial_value`]. Functions that
    /// another program has, which still is there, are not decoded again.
    ///
    /// # Errors
    ///
    /// As [`MachineModule::code`]; and instructions that the simulator does not execute.
    pub fn program(&self, kernel: &str, addresses: &[u64]) -> Result<Program, MachineError> {
        self.with_kernel(kernel, addresses, |kernel| match kernel.shared_words() {
            Some(first) => self.program_with_shared_functions(&kernel, addresses, first),
            None => Ok(lower(&self.code(kernel.entry.name, addresses)?)?),
        })
    }

    /// Lowers a kernel whose functions, from word `first` of its program on, are shared.
    fn program_with_shared_functions(
        &self,
        kernel: &LinkedKernel<'_>,
        addresses: &[u64],
        first: usize,
    ) -> Result<Program, MachineError> {
        let LinkedKernel { cubin, entry, reached, linker, .. } = kernel;
        let (mut words, mut functions) = linker.words(&[entry], 0)?;
        words.resize(first, link::NOP);
        let own_parts = Parts::of(&words, 0, &[entry], linker);
        let mut code = MachineCode { words, functions, ..kernel.code(&LocalMemory::default())? };
        let decoded = decode(&code)?;
        let key = FunctionsKey {
            file: kernel.file,
            addresses: addresses.to_vec(),
            sections: reached.iter().map(|function| function.section).collect(),
            is_serial: !decoded.is_scheduled(),
        };
        let is_serial = key.is_serial;
        let shared =
            self.functions.get(key, &code.bank_2, || SharedFunctions::new(cubin, linker, reached, first, is_serial))?;
        let local = LocalMemory::of(entry, [&own_parts, &shared.parts], first + shared.words());
        functions = std::mem::take(&mut code.functions);
        functions.extend(shared.starts.iter().cloned());
        let sections = linker.sections(&[entry]).into_iter().chain(shared.sections.iter().cloned()).collect();
        let MachineCode { words, .. } = code;
        let words_behind = shared.words() as u32;
        let code = MachineCode { words, words_behind, functions, sections, ..kernel.code(&local)? };
        Ok(lower_decoded(&code, decoded, Some(&shared))?)
    }

    /// Finds a kernel and the functions that it reaches.
    fn with_kernel<T>(
        &self,
        name: &str,
        addresses: &[u64],
        make: impl FnOnce(LinkedKernel<'_>) -> Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        let missing = || MachineError::NoKernel(name.to_owned());
        let number = self.kernel(name).ok_or_else(missing)?.file;
        let file = self.files.get(number).ok_or_else(missing)?;
        let cubin = cubin(&file.images)?;
        let entry = cubin.kernels().find(|function| function.name == name).ok_or_else(missing)?;
        let area = &entry.parameters;
        if area.bytes > 0 && area.offset < PARAMETERS_AT {
            let what = format!("parameters from {:#x} of constant bank 0 on, expected {PARAMETERS_AT:#x}", area.offset);
            return Err(MachineError::Kernel { kernel: name.to_owned(), what });
        }
        let reached = reached_functions(&cubin, entry)?;
        let linker = Linker::new(&cubin, &file.places, addresses, file.first_kernel).of_kernel(entry, &reached);
        make(LinkedKernel { cubin: &cubin, file: number, images: &file.images, entry, reached, linker })
    }
}

/// A kernel in its file, with the functions that it reaches.
struct LinkedKernel<'a> {
    cubin: &'a Cubin<'a>,
    /// The number of the file.
    file: usize,
    images: &'a [Arc<[u8]>],
    entry: &'a Function<'a>,
    reached: Vec<&'a Function<'a>>,
    linker: Linker<'a>,
}

impl LinkedKernel<'_> {
    /// The first word of its functions, where they are shared with other kernels: in files that were linked.
    fn shared_words(&self) -> Option<usize> {
        let first = self.reached.iter().map(|function| self.linker.first_word(function)).min();
        first.filter(|_| !self.cubin.is_relocatable)
    }

    /// Everything but words and functions.
    fn code(&self, local: &LocalMemory) -> Result<MachineCode, MachineError> {
        let LinkedKernel { cubin, entry, linker, .. } = self;
        let area = &entry.parameters;
        let slots = area.parameters.iter();
        Ok(MachineCode {
            name: entry.name.to_owned(),
            architecture: cubin.architecture,
            resources: resources(entry, &self.reached, linker.shared_memory(), local)?,
            parameters: slots.map(|slot| ParameterSlot { offset: slot.offset, bytes: slot.bytes }).collect(),
            parameter_base: if area.bytes > 0 { ParameterBase(area.offset) } else { ParameterBase::default() },
            parameter_bytes: area.bytes,
            fixed_slots: linker.fixed_slots(entry)?,
            system_calls: further_system_calls(cubin),
            bank_2: linker.bank_2(),
            bank_3: linker.constant_variables(),
            bank_4: linker.bank_4(),
            open_stack_bytes: local.open_stack_bytes,
            images: self.images.to_vec(),
            ..MachineCode::default()
        })
    }
}

/// The cubin of a file: one that was linked, or several that are linked here.
fn cubin(images: &[Arc<[u8]>]) -> Result<Cubin<'_>, MachineError> {
    let files = images.iter().map(|image| Cubin::read(image)).collect::<Result<Vec<_>, _>>()?;
    match <[Cubin<'_>; 1]>::try_from(files) {
        Ok([file]) if !file.is_relocatable => Ok(file),
        Ok(file) => Ok(Cubin::linked(file.into())?),
        Err(files) => Ok(Cubin::linked(files)?),
    }
}

/// Checks that a file's demands can be met: without an image nothing limits its claims.
fn check_sections(cubin: &Cubin<'_>) -> Result<(), MachineError> {
    let sections = cubin.global_sections.iter().map(|section| (section.section, section.bytes));
    let shared = cubin.functions.iter().map(|function| (function.section, function.shared_memory.bytes));
    for (section, bytes) in sections.chain(shared) {
        if bytes > MAXIMUM_SECTION_BYTES {
            let section = cubin.sections.get(section).copied().unwrap_or_default().to_owned();
            return Err(MachineError::SectionSize { section, bytes });
        }
    }
    Ok(())
}

/// The demands of a kernel on an SM.
fn resources(
    entry: &Function<'_>,
    reached: &[&Function<'_>],
    (reserved_shared_bytes, shared): (u32, u64),
    local: &LocalMemory,
) -> Result<Resources, MachineError> {
    let shared_bytes = u32::try_from(shared).map_err(|_| MachineError::Kernel {
        kernel: entry.name.to_owned(),
        what: format!("{shared} bytes of shared memory, more than any GPU has"),
    })?;
    let registers = reached.iter().map(|function| function.registers).chain([entry.registers]).max();
    let product = |[x, y, z]: [u32; 3]| x.saturating_mul(y).saturating_mul(z);
    Ok(Resources {
        registers_per_thread: registers.unwrap_or(0),
        shared_bytes,
        reserved_shared_bytes,
        local_bytes: local.bytes,
        maximum_threads: match entry.block_limit {
            Some(BlockLimit::Maximum(block)) => Some(product(block)),
            _ => None,
        },
        required_block: match entry.block_limit {
            Some(BlockLimit::Required(block)) => Some(block),
            _ => None,
        },
        clusters: ClusterNeeds {
            required: entry.cluster,
            is_explicit: entry.needs_cluster,
            maximum_size: entry.maximum_cluster,
        },
    })
}
