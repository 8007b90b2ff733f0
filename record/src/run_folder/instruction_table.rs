//! instructions.csv: the counts of each instruction of the kernels that ran.

use balar_actors::catalogue::KernelProfile;
use balar_isa::location::InstructionLocation;
use balar_isa::source_lines::SourcePlace;
use balar_protocol::statistics::StatisticDefinition;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The file's name in the folder of a run.
pub const FILE: &str = "instructions.csv";

/// The columns that tell an instruction from others, before the counters.
pub const PLACE: [&str; 13] = [
    "gpu",
    "kernel",
    "isa",
    "function",
    "code",
    "address",
    "file",
    "line",
    "source_file",
    "source_line",
    "source_function",
    "inlined_at",
    "text",
];

/// The separator between the call sites of a chain of inlined functions.
pub const CALL_SEPARATOR: char = ';';
/// The number of innermost calls of a chain that are written.
const MOST_CALLS: usize = 64;

/// The place of an instruction, as the file has it. Code that is loaded several times is the same code.
type InstructionKey<'a> = (&'a str, &'a str, &'static str, &'a str, u64, u64);

/// An instruction of a kernel.
struct InstructionRow<'a> {
    key: InstructionKey<'a>,
    line: Option<(&'a str, u32)>,
    source: SourceColumns,
    text: String,
    counts: Vec<u64>,
}

/// The line of a source file that an instruction was compiled from, as the file has it: empty fields where the code does not say.
#[derive(Default)]
struct SourceColumns {
    file: String,
    line: String,
    function: String,
    inlined_at: String,
}

impl SourceColumns {
    fn of(location: &InstructionLocation<'_>) -> SourceColumns {
        let own = location.inner_function;
        let function = |place: &SourcePlace<'_>| place.inlined_function().unwrap_or(own).to_owned();
        let Some(place) = location.source else {
            return SourceColumns { function: own.to_owned(), ..SourceColumns::default() };
        };
        let calls = std::iter::successors(place.call(), SourcePlace::call).take(MOST_CALLS);
        let calls = calls.map(|call| {
            let file = call.file().replace(CALL_SEPARATOR, ",");
            format!("{}@{file}:{}", function(&call), call.line())
        });
        // Line 0 is that of code which the compiler has added.
        let is_known = place.line() > 0;
        SourceColumns {
            file: if is_known { place.file().to_owned() } else { String::new() },
            line: if is_known { place.line().to_string() } else { String::new() },
            function: function(&place),
            inlined_at: calls.collect::<Vec<_>>().join(&CALL_SEPARATOR.to_string()),
        }
    }
}

/// Writes a line for each instruction of the functions in which something ran, with a header.
///
/// # Errors
///
/// If `writer` fails.
pub fn write(profiles: &[KernelProfile], writer: &mut dyn Write) -> io::Result<()> {
    let columns = profiles.first().map_or(&[] as &[StatisticDefinition], |profile| profile.columns);
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(PLACE.into_iter().chain(columns.iter().map(|column| column.name)))?;
    for InstructionRow { key: (gpu, kernel, isa, function, digest, address), line, source, text, counts } in
        rows(profiles)
    {
        let (file, line) = line.map_or(("", String::new()), |(file, line)| (file, line.to_string()));
        let (code, address) = (code(digest), address.to_string());
        table.write_field(gpu)?;
        let SourceColumns { file: source_file, line: source_line, function: source_function, inlined_at } = &source;
        let place = [kernel, isa, function, &code, &address, file, &line];
        for field in place.into_iter().chain([source_file, source_line, source_function, inlined_at, &*text]) {
            table.write_field(field)?;
        }
        for count in counts {
            table.write_field(count.to_string())?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

/// How the file names code.
pub fn code(digest: u64) -> String {
    format!("{digest:016x}")
}

/// The instructions, kernel by kernel in the order of the profiles.
fn rows(profiles: &[KernelProfile]) -> Vec<InstructionRow<'_>> {
    let mut rows: Vec<InstructionRow<'_>> = Vec::new();
    let mut known: BTreeMap<InstructionKey<'_>, usize> = BTreeMap::new();
    for profile in profiles {
        let program = &profile.program;
        let isa = if program.is_machine_code() { "sass" } else { "ptx" };
        let ran = |pc: u32| profile.counts(pc).iter().any(|&count| count > 0);
        let functions = program.locations().filter(|&(pc, _)| ran(pc)).map(|(_, location)| location.function);
        let functions: BTreeSet<&str> = functions.collect();
        for (pc, location) in program.locations().filter(|(_, location)| functions.contains(location.function)) {
            let key = (&*profile.gpu, &**program.name(), isa, location.function, location.digest, location.address);
            let counts = profile.counts(pc);
            if let Some(&row) = known.get(&key) {
                rows[row].counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                continue;
            }
            known.insert(key, rows.len());
            let source = SourceColumns::of(&location);
            rows.push(InstructionRow {
                key,
                line: location.line,
                source,
                text: location.text,
                counts: counts.to_vec(),
            });
        }
    }
    rows
}
