//! Instructions of a kernel, summed by instruction, line, function or opcode.

use crate::options::hotspots::By;
use balar_actors::topology::nearest;
use balar_record::kernel_name::readable_name;
use balar_record::run_folder::instructions::{EXECUTED, ISSUE, InstructionProfile, ProfileRow, STALL, SourceLine};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What of a kernel ran, over all GPUs.
#[derive(Debug)]
pub struct KernelHotspots<'a> {
    /// Its name, as the code has it.
    pub name: String,
    /// "sass" or "ptx".
    pub isa: String,
    /// Does its code name lines of source files?
    pub has_source: bool,
    /// GPUs that it ran on.
    pub gpus: usize,
    /// All of it.
    pub total: Counts<'a>,
    /// Its parts, in the order of the code or as they are sorted.
    pub rows: Vec<HotRow<'a>>,
}

/// A part of a kernel.
#[derive(Debug)]
pub struct HotRow<'a> {
    /// The function: of a line the one whose source it is of, of an instruction the one that it is in.
    pub function: String,
    /// The line.
    pub line: Option<SourceLine>,
    /// Of an instruction: its address in the function, of PTX its number.
    pub address: Option<u64>,
    /// Of an instruction: its text. Of an opcode: that.
    pub text: String,
    /// Instructions in the code.
    pub instructions: usize,
    /// What was counted.
    pub counts: Counts<'a>,
}

/// What was counted of something.
#[derive(Clone, Debug)]
pub struct Counts<'a> {
    columns: &'a [String],
    counts: Vec<u64>,
}

impl<'a> Counts<'a> {
    fn none(columns: &'a [String]) -> Counts<'a> {
        Counts { columns, counts: vec![0; columns.len()] }
    }

    fn add(&mut self, counts: &[u64]) {
        self.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    }

    /// All counters by name.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, u64)> {
        self.columns.iter().map(String::as_str).zip(self.counts.iter().copied())
    }

    /// A counter; `None` where the run has none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.all().find(|(column, _)| *column == name).map(|(_, count)| count)
    }

    /// How often warps executed it.
    pub fn executed(&self) -> u64 {
        self.get(EXECUTED).unwrap_or(0)
    }

    /// Cycles in which warps issued it, or waited to.
    pub fn cycles(&self) -> u64 {
        self.all().filter(|(name, _)| name.starts_with(STALL)).map(|(_, count)| count).sum()
    }

    /// Lanes inside the active mask, on average; `None` where it did not run.
    pub fn lanes(&self) -> Option<f64> {
        quotient(self.get("thread_inst_executed")?, self.executed())
    }

    /// Sectors of an access of global or local memory, on average; `None` where there was none.
    pub fn sectors_per_access(&self) -> Option<f64> {
        let both = |load: &str, store: &str| Some(self.get(load)? + self.get(store)?);
        let sectors = both("l1_sectors_load", "l1_sectors_store")?;
        quotient(sectors, both("l1_accesses_load", "l1_accesses_store")?)
    }

    /// Sectors of a load, on average; `None` where there was none.
    pub fn sectors_per_load(&self) -> Option<f64> {
        quotient(self.get("l1_sectors_load")?, self.get("l1_accesses_load")?)
    }

    /// Sectors of a store, on average; `None` where there was none.
    pub fn sectors_per_store(&self) -> Option<f64> {
        quotient(self.get("l1_sectors_store")?, self.get("l1_accesses_store")?)
    }

    /// The same in words: `4.0`, or `4/32` where a row has loads and stores that differ; `None` where there was no access.
    pub fn sectors(&self) -> Option<String> {
        let short = |sectors: f64| format!("{sectors:.1}").trim_end_matches(".0").to_owned();
        match (self.sectors_per_load(), self.sectors_per_store()) {
            (Some(load), Some(store)) if short(load) != short(store) => {
                Some(format!("{}/{}", short(load), short(store)))
            }
            (load, store) => load.or(store).map(|sectors| format!("{sectors:.1}")),
        }
    }

    /// The more of both; 0 where there was no access.
    fn most_sectors(&self) -> f64 {
        self.sectors_per_load().unwrap_or(0.0).max(self.sectors_per_store().unwrap_or(0.0))
    }

    /// Wavefronts of shared memory beyond the least; `None` where shared memory was not accessed.
    pub fn bank_conflicts(&self) -> Option<u64> {
        let wavefronts = self.get("shared_wavefronts_load")? + self.get("shared_wavefronts_store")?;
        self.get("shared_memory_bank_conflicts").filter(|_| wavefronts > 0)
    }

    /// Why warps waited, the longest first: reason and cycles.
    pub fn stalls(&self) -> Vec<(&'a str, u64)> {
        let stalls = self.all().filter(|(name, count)| name.starts_with(STALL) && *name != ISSUE && *count > 0);
        let mut stalls: Vec<_> = stalls.map(|(name, count)| (&name[STALL.len()..], count)).collect();
        stalls.sort_by_key(|(_, count)| Reverse(*count));
        stalls
    }
}

fn quotient(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What tells a row of a kernel from others.
type Key = (String, Option<SourceLine>, Option<(String, u64)>);

/// The line of an instruction: of the source, or, where a kernel's PTX names none at all, of the PTX.
fn line(row: &ProfileRow, has_lines: bool) -> Option<SourceLine> {
    if has_lines { row.source.clone() } else { row.ptx.clone() }
}

fn key(row: &ProfileRow, by: By, has_lines: bool) -> Key {
    match by {
        By::Instruction => (row.function.clone(), line(row, has_lines), Some((row.code.clone(), row.address))),
        By::Line => (String::new(), line(row, has_lines), None),
        By::Function => (row.source_function.clone(), None, None),
        By::Opcode => (String::new(), None, Some((opcode(&row.text).to_owned(), 0))),
    }
}

/// The opcode of an instruction with its modifiers, without its guard: `LDG.E` of `@P0 LDG.E R0, [R2] ;`.
fn opcode(text: &str) -> &str {
    let mut words = text.split_whitespace().skip_while(|word| word.starts_with('@') || *word == "{");
    words.next().unwrap_or_default().trim_end_matches(';')
}

/// The name of a kernel and the kind of its code.
type KernelKey<'a> = (&'a str, &'a str);

/// What is known of a kernel: its place in the list, the GPUs that it ran on, the places of its rows.
type Known<'a> = (usize, BTreeSet<&'a str>, BTreeMap<Key, usize>);

/// The kernels that are chosen, in the order of the file.
pub fn kernels<'a>(profile: &'a InstructionProfile, by: By, chosen: impl Fn(&str) -> bool) -> Vec<KernelHotspots<'a>> {
    let with_lines: BTreeSet<KernelKey<'_>> =
        profile.rows.iter().filter(|row| row.source.is_some()).map(|row| (&*row.kernel, &*row.isa)).collect();
    let mut kernels: Vec<KernelHotspots<'a>> = Vec::new();
    let mut places: BTreeMap<KernelKey<'a>, Known<'a>> = BTreeMap::new();
    for row in profile.rows.iter().filter(|row| chosen(&row.kernel)) {
        let kernel = (&*row.kernel, &*row.isa);
        let (place, gpus, known) = places.entry(kernel).or_insert_with(|| {
            kernels.push(KernelHotspots {
                name: row.kernel.clone(),
                isa: row.isa.clone(),
                has_source: with_lines.contains(&kernel),
                gpus: 0,
                total: Counts::none(&profile.columns),
                rows: Vec::new(),
            });
            (kernels.len() - 1, BTreeSet::new(), BTreeMap::new())
        });
        gpus.insert(&*row.gpu);
        let hot = &mut kernels[*place];
        hot.gpus = gpus.len();
        hot.total.add(&row.counts);
        let key = key(row, by, hot.has_source);
        let next = hot.rows.len();
        let index = *known.entry(key).or_insert_with_key(|(_, line, address)| {
            hot.rows.push(HotRow {
                function: match by {
                    By::Instruction => row.function.clone(),
                    By::Line | By::Function => row.source_function.clone(),
                    By::Opcode => String::new(),
                },
                line: line.clone(),
                address: address.as_ref().map(|(_, address)| *address).filter(|_| by == By::Instruction),
                text: match by {
                    By::Instruction => row.text.clone(),
                    By::Opcode => opcode(&row.text).to_owned(),
                    By::Line | By::Function => String::new(),
                },
                instructions: 0,
                counts: Counts::none(&profile.columns),
            });
            next
        });
        let part = &mut hot.rows[index];
        // The same instruction on another GPU is the same one.
        part.instructions += usize::from(by != By::Instruction || part.instructions == 0);
        part.counts.add(&row.counts);
    }
    kernels
}

impl<'a> KernelHotspots<'a> {
    /// The share of a row in the kernel's warp cycles.
    pub fn share(&self, row: &HotRow<'_>) -> f64 {
        quotient(row.counts.cycles(), self.total.cycles()).unwrap_or(0.0)
    }

    /// The same with its rows sorted; those alike stay in the order of the code.
    pub fn sorted(mut self, sort: Sort<'_>) -> KernelHotspots<'a> {
        match sort {
            Sort::Code => {}
            Sort::Lanes => self.rows.sort_by(|a, b| {
                let lanes = |row: &HotRow<'_>| row.counts.lanes().unwrap_or(f64::INFINITY);
                lanes(a).total_cmp(&lanes(b))
            }),
            Sort::Sectors => self.rows.sort_by(|a, b| b.counts.most_sectors().total_cmp(&a.counts.most_sectors())),
            Sort::Cycles => self.rows.sort_by_key(|row| Reverse(row.counts.cycles())),
            Sort::Conflicts => self.rows.sort_by_key(|row| Reverse(row.counts.bank_conflicts())),
            Sort::Counter(name) => self.rows.sort_by_key(|row| Reverse(row.counts.get(name))),
        }
        self
    }
}

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort<'a> {
    /// Warp cycles, the most first.
    Cycles,
    /// Active lanes, the fewest first.
    Lanes,
    /// Sectors of an access, the most first.
    Sectors,
    /// Bank conflicts, the most first.
    Conflicts,
    /// As in the code.
    Code,
    /// A counter, the most first.
    Counter(&'a str),
}

/// The names that sort rows, beside those of counters.
const SORTS: [&str; 6] = ["cycles", "executed", "lanes", "sectors", "conflicts", "code"];

impl<'a> Sort<'a> {
    /// What a name means for a run with these counters.
    ///
    /// # Errors
    ///
    /// There is no such column: what there is, in words.
    pub fn find(name: &'a str, columns: &[String]) -> Result<Sort<'a>, String> {
        Ok(match name {
            "cycles" => Sort::Cycles,
            "executed" => Sort::Counter(EXECUTED),
            "lanes" => Sort::Lanes,
            "sectors" => Sort::Sectors,
            "conflicts" => Sort::Conflicts,
            "code" => Sort::Code,
            _ if columns.iter().any(|column| column == name) => Sort::Counter(name),
            _ => {
                let names = SORTS.into_iter().chain(columns.iter().map(String::as_str));
                return Err(match nearest(name, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("expected {}, or a counter of instructions.csv", SORTS.join(", ")),
                });
            }
        })
    }
}

/// The name of a function as people read it: of one inside a kernel's code its own.
pub fn function_name(name: &str) -> String {
    // `$kernel$function`, `$__internal_0_$function`.
    let own = name.strip_prefix('$').and_then(|rest| rest.rsplit_once('$')).map_or(name, |(_, own)| own);
    readable_name(own)
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
