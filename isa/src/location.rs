//! The places of a program's instructions: in a function of a cubin, or in a PTX text. Counts by instruction are told apart by these
//! places, and found again in the same file.

use crate::machine::program::MachineProgram;
use crate::program::Program;
use crate::sass::INSTRUCTION_BYTES;
use crate::source_lines::SourcePlace;
use xxhash_rust::xxh3::Xxh3;

/// The function that the instructions of the device runtime are said to be in.
pub const DEVICE_RUNTIME: &str = "(device runtime)";

/// Where an instruction of a program stands.
#[derive(Clone, Debug)]
pub struct InstructionLocation<'p> {
    /// The function of the cubin or of the PTX that it is in.
    pub function: &'p str,
    /// The inner function of an instruction, where a function of a cubin has others inside its code; else the function itself.
    pub inner_function: &'p str,
    /// Tells the code of the function from other code: the [digest](crate::cubin::Function::digest) of a function of a cubin, or the digest
    /// of the PTX texts.
    pub digest: u64,
    /// Its address, bytes from the beginning of the function; for PTX its number in the program.
    pub address: u64,
    /// The PTX file, and the line in it, counted from 1; `None` of machine code.
    pub line: Option<(&'p str, u32)>,
    /// The line of a source file that it was compiled from, where the code says so.
    pub source: Option<SourcePlace<'p>>,
    /// Its text.
    pub text: String,
}

impl Program {
    /// The places of its instructions, with their program counters, ascending. Words between the functions of machine code are left out.
    pub fn locations(&self) -> impl Iterator<Item = (u32, InstructionLocation<'_>)> {
        let digest = if self.is_machine_code() { 0 } else { self.digest_of_texts() };
        (0..self.len() as u32).filter_map(move |pc| {
            let location = match &self.machine {
                Some(machine) => machine_location(machine, pc),
                None => Some(self.ptx_location(pc, digest)),
            };
            Some((pc, InstructionLocation { source: self.source_place(pc), ..location? }))
        })
    }

    fn ptx_location(&self, pc: u32, digest: u64) -> InstructionLocation<'_> {
        let position = self.position(pc);
        let after = self.functions.partition_point(|(first, _)| *first <= pc);
        let function = self.functions.get(after.saturating_sub(1)).map_or(&*self.name, |(_, name)| name);
        InstructionLocation {
            function,
            inner_function: function,
            digest,
            address: u64::from(pc),
            line: Some((self.file_name(pc), position.line)),
            source: None,
            text: position.text.to_owned(),
        }
    }

    /// The digest of its texts, one after another.
    fn digest_of_texts(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.sources.iter().for_each(|(_, source)| hash.update(source.text().as_bytes()));
        hash.digest()
    }
}

fn machine_location(machine: &MachineProgram, pc: u32) -> Option<InstructionLocation<'_>> {
    let Some(instruction) = machine.instruction(pc) else {
        let address = (u64::from(pc) - machine.decoded() as u64) * INSTRUCTION_BYTES as u64;
        return Some(InstructionLocation {
            function: DEVICE_RUNTIME,
            inner_function: DEVICE_RUNTIME,
            digest: 0,
            address,
            line: None,
            source: None,
            text: String::new(),
        });
    };
    let after = machine.sections.partition_point(|section| section.first <= pc);
    let section = machine.sections.get(after.checked_sub(1)?)?;
    let word = pc - section.first;
    let address = u64::from(word) * INSTRUCTION_BYTES as u64;
    (word < section.words).then(|| InstructionLocation {
        function: &section.name,
        inner_function: machine.function(pc).1,
        digest: section.digest,
        address,
        line: None,
        source: None,
        text: instruction.at(address).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use crate::cubin::Cubin;
    use crate::machine::MachineModule;
    use crate::module::PtxModule;

    #[test]
    fn machine_code_is_told_by_function_and_address() {
        let image = include_bytes!("../tests/cubins/vectoradd.sm_70.cubin");
        let module = MachineModule::read([image.as_slice().into()]).expect("a cubin");
        let program = module.program("vectorAdd", &[]).expect("it is executed");
        let cubin = Cubin::read(image).expect("a cubin");
        let function = cubin.kernels().next().expect("a kernel");
        let locations: Vec<_> = program.locations().filter(|(_, it)| it.function == "vectorAdd").collect();
        assert_eq!(locations.len(), function.code.len() / 16);
        let (pc, fourth) = &locations[4];
        assert_eq!((*pc, fourth.address, fourth.line), (4, 0x40, None));
        assert_eq!(fourth.text, "IMAD R6, R6, c[0x0][0x0], R3");
        assert!(locations.iter().all(|(_, location)| location.digest == function.digest()));
    }

    #[test]
    fn ptx_is_told_by_number_and_line() {
        let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n .reg .b32 %r<2>;\n mov.u32 %r1, 1;\n exit;\n}\n";
        let of = |text: &str| {
            let program =
                PtxModule::parse("k.ptx", text).expect("the text is PTX").program("k", &[]).expect("it decodes");
            program
                .locations()
                .map(|(_, it)| (it.address, it.line.map(|(_, line)| line), it.text, it.digest))
                .collect::<Vec<_>>()
        };
        let (address, line, first, digest) = of(text).swap_remove(0);
        assert_eq!((address, line, first.as_str()), (0, Some(6), "mov.u32 %r1, 1;"));
        assert_ne!(of(&text.replace("%r1, 1", "%r1, 2"))[0].3, digest);
    }
}
