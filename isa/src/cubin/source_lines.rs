//! Line tables: from which line of a source file each instruction was compiled.
//!
//! `.debug_line` is as DWARF has it (version 2 or 3), its addresses relocations against functions. NVIDIA adds an extended opcode, 0x90:
//! the following rows belong to a function that was inlined at the place of an earlier row. The opcode has the number of that row, counted
//! from 1 in the sequence, and the offset of the function's name in `.debug_str`. Where the row is 0, the following rows belong to no
//! inlined function. Own findings from the output of ptxas 12.9 and 13.5.

use super::elf::File;
use super::error::CubinError;
use crate::source_lines::{PlaceId, SourceLines};
use gimli::{
    DebugLine, DebugLineOffset, DwLne, EndianSlice, LineInstruction, LineProgramHeader, LineRow, LittleEndian,
};
use gimli::{IncompleteLineProgram, Reader as _};
use object::LittleEndian as LE;
use object::read::elf::{Rel as _, Rela as _, SectionHeader as _};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The section of line tables.
const LINES: &str = ".debug_line";
/// The section with the names of functions.
const NAMES: &str = ".debug_str";
/// Rows of an inlined function follow.
const INLINED_CALL: DwLne = DwLne(0x90);
/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;
/// The relocation of an address, `R_CUDA_64`.
const ADDRESS_64: u32 = 2;
/// Bits of an address inside a section; above them is the number of the section.
const SECTION_SHIFT: u32 = 32;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The places of a function's code.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineTable {
    /// From which address on the place is which, ascending.
    rows: Vec<(u64, Option<PlaceId>)>,
}

impl LineTable {
    /// The place of the instruction at an address of the section.
    pub fn place_at(&self, address: u64) -> Option<PlaceId> {
        let after = self.rows.partition_point(|(first, _)| *first <= address);
        self.rows.get(after.checked_sub(1)?)?.1
    }
}

/// The line tables of cubins by the number of the section of code, counted through the files as [`Cubin::linked`](super::Cubin::linked)
/// does. Files without line tables have none.
///
/// # Errors
///
/// A file or a table that breaks its format.
pub(crate) fn line_tables(
    images: &[Arc<[u8]>],
    lines: &mut SourceLines,
) -> Result<BTreeMap<usize, LineTable>, CubinError> {
    let mut tables: BTreeMap<usize, LineTable> = BTreeMap::new();
    let mut first = 0;
    for image in images {
        let file = File::read(image)?;
        let names = file.named(NAMES).find(|(_, _, rest)| rest.is_empty()).map_or(&[][..], |(_, it, _)| it.data);
        for (number, section, _) in file.named(LINES).filter(|(_, _, rest)| rest.is_empty()) {
            let data = relocated(&file, number)?;
            let broken = |error: gimli::Error| {
                CubinError::section(section.name, 0, format!("{error}, expected the line table of code"))
            };
            read(&data, names, lines, |section, address, place| {
                tables.entry(first + section).or_default().rows.push((address, place));
            })
            .map_err(broken)?;
        }
        first += file.sections.len();
    }
    // Rows of one address: the last counts. The end of a sequence counts for what no other has.
    for table in tables.values_mut() {
        table.rows.sort_by_key(|(address, place)| (*address, place.is_some()));
    }
    Ok(tables)
}

/// The bytes of a section of line tables, with the section number and offset of code for each address.
fn relocated(file: &File<'_>, number: usize) -> Result<Vec<u8>, CubinError> {
    let mut data = file.sections[number].data.to_vec();
    for section in file.sections.iter().filter(|section| section.info as usize == number) {
        let broken =
            |error: object::Error| CubinError::section(section.name, 0, format!("{error}, expected relocations"));
        let rel = section.header.rel(LE, file.bytes).map_err(broken)?;
        let rela = section.header.rela(LE, file.bytes).map_err(broken)?;
        let rel = rel.map_or(&[][..], |(entries, _)| entries).iter();
        let rel = rel.map(|entry| (entry.r_offset(LE), entry.r_type(LE), entry.r_sym(LE), None));
        let rela = rela.map_or(&[][..], |(entries, _)| entries).iter();
        let rela = rela.map(|entry| {
            (entry.r_offset(LE), entry.r_type(LE, false), entry.r_sym(LE, false), Some(entry.r_addend(LE)))
        });
        // Others are names, which are right as long as the file's names stay where they are.
        for (offset, _, symbol, addend) in rel.chain(rela).filter(|(_, kind, ..)| *kind == ADDRESS_64) {
            let symbol = &file.symbols[file.symbol(symbol, section.name, offset)?];
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            let place = offset.checked_add(ADDRESS_BYTES).and_then(|end| data.get_mut(offset..end));
            let (Some(place), Some(code)) = (place, symbol.section) else { continue };
            let before = place.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
            let inside = symbol.value.wrapping_add_signed(addend.unwrap_or(before));
            let address = (code as u64) << SECTION_SHIFT | inside & ((1 << SECTION_SHIFT) - 1);
            place.copy_from_slice(&address.to_le_bytes());
        }
    }
    Ok(data)
}

/// Runs the programs of all units: tells of each row its section of code, its address there, and its place; `None` for the first address
/// behind a sequence.
fn read(
    data: &[u8],
    names: &[u8],
    lines: &mut SourceLines,
    mut tell: impl FnMut(usize, u64, Option<PlaceId>),
) -> gimli::Result<()> {
    let mut offset = 0;
    while offset < data.len() {
        let section = DebugLine::new(data, LittleEndian);
        let mut program = section.program(DebugLineOffset(offset), ADDRESS_BYTES as u8, None, None)?;
        let header = program.header().clone();
        offset += header.unit_length() + usize::from(header.format().initial_length_size());
        let mut unit = Unit { names, rows: Vec::new(), context: None };
        let mut instructions = header.instructions();
        let mut row = LineRow::new(&header);
        while let Some(instruction) = instructions.next_instruction(&header)? {
            if let LineInstruction::UnknownExtended(INLINED_CALL, operands) = instruction {
                unit.enter(operands)?;
                continue;
            }
            if !row.execute(instruction, &mut program)? {
                continue;
            }
            let (section, address) =
                ((row.address() >> SECTION_SHIFT) as usize, row.address() & ((1 << SECTION_SHIFT) - 1));
            let place = unit.row(&program, &row, lines);
            tell(section, address, if row.end_sequence() { None } else { Some(place) });
            if row.end_sequence() {
                unit.rows.clear();
                unit.context = None;
            }
            row.reset(&header);
        }
    }
    Ok(())
}

/// The state of a unit beyond DWARF's own.
struct Unit<'a> {
    names: &'a [u8],
    /// The places of the sequence's rows so far.
    rows: Vec<PlaceId>,
    /// The function that the next rows are of, and the row of its call.
    context: Option<(&'a str, PlaceId)>,
}

impl<'a> Unit<'a> {
    /// Takes in that the next rows are of an inlined function, or of none.
    fn enter(&mut self, mut operands: Bytes<'_>) -> gimli::Result<()> {
        let (row, name) = (operands.read_uleb128()?, operands.read_uleb128()?);
        let call = usize::try_from(row).ok().and_then(|row| self.rows.get(row.checked_sub(1)?));
        self.context = call.map(|call| (self.name(name), *call));
        Ok(())
    }

    /// The name at an offset.
    fn name(&self, offset: u64) -> &'a str {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.names.get(offset..)).unwrap_or_default();
        let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// Takes in a row.
    fn row(&mut self, program: &IncompleteLineProgram<Bytes<'_>>, row: &LineRow, lines: &mut SourceLines) -> PlaceId {
        let file = file_name(program.header(), row);
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(u32::MAX));
        let place = lines.add(&file, line, self.context);
        self.rows.push(place);
        place
    }
}

/// The name of a row's file, with its folder.
fn file_name(header: &LineProgramHeader<Bytes<'_>>, row: &LineRow) -> String {
    let Some(file) = row.file(header) else { return format!("file {}", row.file_index()) };
    let text = |value: gimli::AttributeValue<Bytes<'_>>| match value {
        gimli::AttributeValue::String(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    let name = text(file.path_name()).unwrap_or_default();
    // Folder 0 is the one that was compiled in, which is not told before version 5.
    match file.directory(header).and_then(text) {
        Some(folder) if !name.starts_with('/') && !folder.is_empty() => {
            format!("{}/{name}", folder.trim_end_matches('/'))
        }
        _ => name,
    }
}
