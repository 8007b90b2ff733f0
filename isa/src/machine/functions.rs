//! Functions that kernels of a file have in common.
//!
//! Libraries have files in which any of dozens of kernels may reach any of hundreds of functions, through pointers: NCCL 2.21 has 2.9
//! million words of such functions, and 42 kernels. In files that were linked the functions lie at the same places behind the code of each
//! kernel. So they are linked and lowered once, and programs share them.

use super::code::MachineCode;
use super::error::MachineError;
use super::link::Linker;
use super::lowering::lower_functions;
use super::shared::{Parts, SharedFunctions};
use super::system_calls::further_system_calls;
use crate::cubin::{Cubin, Function};
use crate::program::parts::Resources;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The inputs of the functions' code beside the kernel. Kernels with the same inputs share the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionsKey {
    /// The number of their file.
    pub file: usize,
    /// Where its sections lie.
    pub addresses: Vec<u64>,
    /// Their sections.
    pub sections: Vec<usize>,
    /// Whether the kernel is code that is not scheduled, so that they are executed as such, too.
    pub is_serial: bool,
}

impl SharedFunctions {
    /// Links and lowers functions, from word `first` of a program on.
    pub(super) fn new(
        cubin: &Cubin<'_>,
        linker: &Linker<'_>,
        functions: &[&Function<'_>],
        first: usize,
        is_serial: bool,
    ) -> Result<SharedFunctions, MachineError> {
        let (words, starts) = linker.words(functions, first)?;
        let parts = Parts::of(&words, first, functions, linker);
        let registers = cubin.functions.iter().map(|function| function.registers).max().unwrap_or(0);
        let code = MachineCode {
            architecture: cubin.architecture,
            words,
            first_word: first as u32,
            functions: starts,
            resources: Resources { registers_per_thread: registers, ..Resources::default() },
            system_calls: further_system_calls(cubin),
            bank_2: linker.bank_2(),
            bank_3: linker.constant_variables(),
            bank_4: linker.bank_4(),
            ..MachineCode::default()
        };
        let lowered = lower_functions(&code, is_serial)?;
        Ok(SharedFunctions { lowered, starts: code.functions, sections: linker.sections(functions), parts })
    }
}

/// The functions that programs of a module have, as long as there are such programs; and why others cannot be lowered.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionsOfModule(Arc<Mutex<Vec<(FunctionsKey, Known)>>>);

#[derive(Debug)]
enum Known {
    Lowered(Weak<SharedFunctions>),
    Refused(MachineError),
}

impl FunctionsOfModule {
    /// Functions for a kernel with a constant bank 2, made where there are none yet.
    pub fn get(
        &self,
        key: FunctionsKey,
        bank_2: &[u8],
        make: impl FnOnce() -> Result<SharedFunctions, MachineError>,
    ) -> Result<Arc<SharedFunctions>, MachineError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, known)| !matches!(known, Known::Lowered(functions) if functions.strong_count() == 0));
        for (_, known) in known.iter().filter(|(other, _)| *other == key) {
            match known {
                Known::Refused(error) => return Err(error.clone()),
                Known::Lowered(functions) => {
                    let fits = |it: &Arc<SharedFunctions>| {
                        it.lowered.indexed_bank_2.as_ref().is_none_or(|indexed| indexed == bank_2)
                    };
                    if let Some(functions) = functions.upgrade().filter(fits) {
                        return Ok(functions);
                    }
                }
            }
        }
        match make() {
            Ok(functions) => {
                let functions = Arc::new(functions);
                known.push((key, Known::Lowered(Arc::downgrade(&functions))));
                Ok(functions)
            }
            Err(error) => {
                known.push((key, Known::Refused(error.clone())));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cubin::Cubin;
    use crate::machine::{MachineModule, lower};
    use crate::program::Program;
    use std::sync::Arc;

    const LINKED: &[u8] = include_bytes!("../../tests/cubins/linked.sm_75.cubin");

    fn module() -> (MachineModule, Vec<u64>) {
        let module = MachineModule::read([LINKED.into()]).expect("a cubin");
        let addresses = (1..=module.placements().len() as u64).map(|number| number << 20).collect();
        (module, addresses)
    }

    /// The description of each instruction, and its timing.
    fn instructions(program: &Program) -> Vec<String> {
        // Rows of registers may lie elsewhere.
        let timing = |pc| {
            let timing = program.timing(pc);
            format!("{:?} {:?} {:?} {:?}", timing.pipe, timing.latency, timing.count, timing.control)
        };
        (0..program.len() as u32).map(|pc| format!("{} {}", program.describe(pc), timing(pc))).collect()
    }

    #[test]
    fn kernels_with_the_same_functions_share_them_and_are_what_they_are_alone() {
        let (module, addresses) = module();
        let cubin = Cubin::read(LINKED).expect("a cubin");
        assert!(cubin.functions.iter().any(|function| !function.is_entry), "it has functions");
        let names: Vec<&str> = module.kernels().collect();
        let programs: Vec<Program> =
            names.iter().map(|name| module.program(name, &addresses).expect("a program")).collect();
        for (name, program) in names.iter().zip(&programs) {
            let alone = lower(&module.code(name, &addresses).expect("it is linked")).expect("a program");
            assert_eq!(instructions(program), instructions(&alone), "{name}");
            let resources = |program: &Program| format!("{:?}", program.resources());
            assert_eq!(resources(program), resources(&alone), "{name}");
            let places = |program: &Program| -> Vec<String> {
                program
                    .locations()
                    .map(|(pc, it)| format!("{pc} {} {:#x} {}", it.function, it.address, it.text))
                    .collect()
            };
            assert_eq!(places(program), places(&alone), "{name}");
        }
        let sharing = programs.iter().filter(|program| Arc::strong_count(&program.shared) > 2).count();
        assert!(sharing >= 2, "{sharing} of {} share functions", programs.len());
        // At other addresses they are others.
        let moved: Vec<u64> = addresses.iter().map(|address| address + 4096).collect();
        let elsewhere = module.program(names[0], &moved).expect("a program");
        assert!(programs.iter().all(|program| !Arc::ptr_eq(&program.shared, &elsewhere.shared)));
    }
}
