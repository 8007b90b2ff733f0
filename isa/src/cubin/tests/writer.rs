//! Writes ELF files byte by byte.

/// A section to be written.
#[derive(Clone, Debug, Default)]
pub struct TestSection {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub info: u32,
    pub alignment: u64,
    pub data: Vec<u8>,
    /// Its size where the file has no bytes of it.
    pub bytes: Option<u64>,
}

/// A symbol to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestSymbol {
    pub name: &'static str,
    /// Binding (high four bits) and kind.
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
    pub bytes: u64,
}

/// A file to be written: its header's fields, sections from number 1 on, symbols from number 1 on.
#[derive(Clone, Debug)]
pub struct TestFile {
    pub os_abi: u8,
    pub abi_version: u8,
    pub kind: u16,
    pub version: u32,
    pub flags: u32,
    pub sections: Vec<TestSection>,
    pub symbols: Vec<TestSymbol>,
}

impl TestFile {
    /// The section of a name.
    pub fn section(&mut self, name: &str) -> &mut TestSection {
        self.sections.iter_mut().find(|section| section.name == name).expect("the section")
    }

    /// The symbol of a name.
    pub fn symbol(&mut self, name: &str) -> &mut TestSymbol {
        self.symbols.iter_mut().find(|symbol| symbol.name == name).expect("the symbol")
    }

    /// The file's bytes: header, contents of sections, the table of sections.
    pub fn bytes(&self) -> Vec<u8> {
        let mut names = vec![0];
        let mut symbols = vec![0; 24];
        for symbol in &self.symbols {
            symbols.extend(name(&mut names, symbol.name).to_le_bytes());
            symbols.extend([symbol.info, symbol.other]);
            symbols.extend(symbol.section.to_le_bytes());
            symbols.extend([symbol.value, symbol.bytes].iter().flat_map(|number| number.to_le_bytes()));
        }
        let table = |name, kind, data| TestSection { name, kind, data, alignment: 1, ..TestSection::default() };
        let mut sections = vec![TestSection::default()];
        sections.extend(self.sections.iter().cloned());
        let symbol_table = sections.len() as u32;
        sections.extend([table(".symtab", 2, symbols), table(".strtab", 3, names), table(".shstrtab", 3, Vec::new())]);
        let mut section_names = vec![0];
        let starts: Vec<u32> = sections.iter().map(|section| name(&mut section_names, section.name)).collect();
        sections.last_mut().expect("a section").data = section_names;
        let mut file = vec![0; 64];
        let mut headers = Vec::new();
        for (section, start) in sections.iter().zip(starts) {
            let link = match section.kind {
                2 => symbol_table + 1,
                4 | 9 => symbol_table,
                _ => 0,
            };
            let bytes = section.bytes.unwrap_or(section.data.len() as u64);
            headers.extend([start, section.kind].iter().flat_map(|number| number.to_le_bytes()));
            let numbers = [section.flags, 0, file.len() as u64, bytes];
            headers.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            headers.extend([link, section.info].iter().flat_map(|number| number.to_le_bytes()));
            headers.extend([section.alignment, 0].iter().flat_map(|number| number.to_le_bytes()));
            file.extend(&section.data);
        }
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (file[7], file[8]) = (self.os_abi, self.abi_version);
        file[16..18].copy_from_slice(&self.kind.to_le_bytes());
        file[18] = 190;
        file[20..24].copy_from_slice(&self.version.to_le_bytes());
        let table = file.len() as u64;
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[48..52].copy_from_slice(&self.flags.to_le_bytes());
        let count = sections.len() as u16;
        for (at, number) in [(52, 64), (58, 64), (60, count), (62, count - 1)] {
            file[at..at + 2].copy_from_slice(&number.to_le_bytes());
        }
        file.extend(headers);
        file
    }
}

/// Appends a name to a table, and says where it is.
fn name(names: &mut Vec<u8>, name: &str) -> u32 {
    if name.is_empty() {
        return 0;
    }
    let at = names.len() as u32;
    names.extend(name.bytes().chain([0]));
    at
}

/// Words, as a file has them.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A record of attributes with a payload of words.
pub fn record(number: u8, payload: &[u32]) -> Vec<u8> {
    let mut record = vec![4, number, payload.len() as u8 * 4, 0];
    record.extend(words(payload));
    record
}

/// A record of attributes with a small value: form 1 has none, 2 a byte, 3 two bytes.
pub fn small_record(form: u8, number: u8, value: u16) -> Vec<u8> {
    let [low, high] = value.to_le_bytes();
    vec![form, number, low, high]
}
