//! The lines of source files that instructions were compiled from, where the compiler has left them in the code (nvcc -lineinfo): `.loc` in
//! PTX, line tables in cubins.
//!
//! Nothing here is looked at while a program runs. The line tables of machine code are read when they are first asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The places in source files that code names, each once. A place whose function was inlined names the place of the call.
#[derive(Clone, Debug, Default)]
pub struct SourceLines {
    files: Vec<Arc<str>>,
    places: Vec<Place>,
    known_files: BTreeMap<Arc<str>, u32>,
    known_places: BTreeMap<Place, PlaceId>,
}

/// A place in a source file: an index into [`SourceLines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceId(u32);

/// A line, and where it has come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: u32,
    line: u32,
    /// The function that was inlined, and the place of the call, which was added before.
    inlined: Option<(Arc<str>, PlaceId)>,
}

impl SourceLines {
    /// Adds a line of a file, or finds it. `inlined` is the (mangled) name of the function that it is in, where that was inlined, with
    /// the place of the call.
    pub fn add(&mut self, file: &str, line: u32, inlined: Option<(&str, PlaceId)>) -> PlaceId {
        let file = match self.known_files.get(file) {
            Some(&known) => known,
            None => {
                let (name, number): (Arc<str>, _) = (file.into(), self.files.len() as u32);
                self.known_files.insert(Arc::clone(&name), number);
                self.files.push(name);
                number
            }
        };
        let inlined = inlined.map(|(function, call)| (function.into(), call));
        let place = Place { file, line, inlined };
        let next = PlaceId(self.places.len() as u32);
        let id = *self.known_places.entry(place.clone()).or_insert(next);
        if id == next {
            self.places.push(place);
        }
        id
    }

    /// The place of a number.
    pub fn place(&self, id: PlaceId) -> SourcePlace<'_> {
        SourcePlace { lines: self, place: &self.places[id.0 as usize] }
    }
}

/// A line of a source file.
#[derive(Clone, Copy, Debug)]
pub struct SourcePlace<'a> {
    lines: &'a SourceLines,
    place: &'a Place,
}

impl<'a> SourcePlace<'a> {
    /// The file, as the compiler names it.
    pub fn file(&self) -> &'a str {
        &self.lines.files[self.place.file as usize]
    }

    /// The line, counted from 1; 0 of code that has no line.
    pub fn line(&self) -> u32 {
        self.place.line
    }

    /// The (mangled) name of the function that was inlined here; `None` of code of the function itself.
    pub fn inlined_function(&self) -> Option<&'a str> {
        self.place.inlined.as_ref().map(|(function, _)| &**function)
    }

    /// Where the function was called that was inlined here.
    pub fn call(&self) -> Option<SourcePlace<'a>> {
        self.place.inlined.as_ref().map(|(_, call)| self.lines.place(*call))
    }
}

/// The places of a program's instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct InstructionLines {
    /// The places.
    pub lines: SourceLines,
    /// The place of each instruction, by program counter. Shorter than the program where the last have none.
    pub by_pc: Vec<Option<PlaceId>>,
}

impl InstructionLines {
    /// Gives an instruction its place.
    pub fn set(&mut self, pc: usize, place: Option<PlaceId>) {
        if place.is_some() {
            self.by_pc.resize(self.by_pc.len().max(pc + 1), None);
            self.by_pc[pc] = place;
        }
    }

    /// The place of an instruction.
    pub fn place(&self, pc: u32) -> Option<SourcePlace<'_>> {
        let id = (*self.by_pc.get(pc as usize)?)?;
        Some(self.lines.place(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineModule;
    use crate::module::PtxModule;

    /// `weighted` is inlined at line 18 of `tile_sums`, and is called at line 12 by `twice`, which is inlined at line 20.
    const TEXT: &str = "\
.version 7.2
.target sm_70
.address_size 64
.visible .entry k()
{
 .reg .b32 %r<4>;
 mov.u32 %r1, 0;
 .loc 1 18 5
 add.u32 %r2, %r1, 1;
 .loc 1 5 3, function_name $name, inlined_at 1 18 5
 add.u32 %r2, %r2, 2;
 .loc 1 20 9
 .loc 2 12 1, function_name $name+2, inlined_at 1 20 9
 .loc 1 5 3, function_name $name, inlined_at 2 12 1
 add.u32 %r2, %r2, 3;
 .loc 1 6 1, function_name $other, inlined_at 3 4 5
 add.u32 %r2, %r2, 4;
 .loc 7 9 1
 ret;
}
.file 1 \"sums.cu\"
.file 2 \"a/twice.h\"
.section .debug_str { $name: .b8 102, 0, 103
 .b8 0x68,0 }
";

    /// The chain of a place, innermost first: function, file and line.
    fn chain(place: Option<SourcePlace<'_>>) -> Vec<String> {
        let places = std::iter::successors(place, |place| place.call());
        places.map(|it| format!("{}@{}:{}", it.inlined_function().unwrap_or("-"), it.file(), it.line())).collect()
    }

    #[test]
    fn ptx_has_lines_and_what_was_inlined() {
        let program = PtxModule::parse("k.ptx", TEXT).expect("PTX").program("k", &[]).expect("it decodes");
        let of = |text: &str| {
            let found = program.locations().find(|(_, it)| it.text.starts_with(text)).expect(text);
            chain(program.source_place(found.0))
        };
        assert_eq!(of("mov"), [] as [&str; 0], "no .loc is before it");
        assert_eq!(of("add.u32 %r2, %r1, 1"), ["-@sums.cu:18"]);
        assert_eq!(of("add.u32 %r2, %r2, 2"), ["f@sums.cu:5", "-@sums.cu:18"]);
        assert_eq!(of("add.u32 %r2, %r2, 3"), ["f@sums.cu:5", "gh@a/twice.h:12", "-@sums.cu:20"]);
        // A name that no section has, and a file that no directive names.
        assert_eq!(of("add.u32 %r2, %r2, 4"), ["$other@sums.cu:6", "-@file 3:4"]);
        assert_eq!(of("ret"), ["-@file 7:9"]);
        // As messages have them: the instruction is in line 11 of the PTX.
        let at = |text: &str| program.locations().find(|(_, it)| it.text.starts_with(text)).expect(text).0;
        let inlined = "sums.cu:5, inlined at sums.cu:18 (k.ptx:11: add.u32 %r2, %r2, 2;)";
        assert_eq!(program.describe(at("add.u32 %r2, %r2, 2")), inlined);
        assert_eq!(program.describe(at("mov")), "k.ptx:7: mov.u32 %r1, 0;");
    }

    #[test]
    fn code_without_lines_has_none() {
        let text = TEXT.lines().filter(|line| !line.contains(".loc")).collect::<Vec<_>>().join("\n");
        let program = PtxModule::parse("k.ptx", &text).expect("PTX").program("k", &[]).expect("it decodes");
        assert!(program.source_lines.is_none() && program.source_place(0).is_none());
        let image = include_bytes!("../tests/cubins/vectoradd.sm_70.cubin");
        let module = MachineModule::read([image.as_slice().into()]).expect("a cubin");
        let program = module.program("vectorAdd", &[]).expect("it is executed");
        assert!((0..program.len() as u32).all(|pc| program.source_place(pc).is_none()));
    }
}
