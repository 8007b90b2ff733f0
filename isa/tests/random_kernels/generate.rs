//! Kernels from seeds.

use crate::kernel::*;
use crate::operation::{Family, Literal, Source};
use crate::random::Random;
use crate::{bits, comparisons, conversions, floats, integers, newer};

const FAMILIES: [Family; 20] = [
    integers::two_sources,
    integers::two_sources,
    integers::three_sources,
    integers::sums_of_products,
    integers::one_source,
    integers::carries,
    bits::logic,
    bits::predicates,
    bits::shifts,
    bits::fields,
    bits::permutations,
    bits::moves,
    floats::arithmetic,
    floats::arithmetic,
    floats::selections,
    floats::signs_of_halves,
    comparisons::to_predicates,
    comparisons::to_values,
    comparisons::selections,
    comparisons::classes,
];
const CONVERSIONS: [Family; 4] =
    [conversions::of_integers, conversions::to_floats, conversions::to_integers, conversions::of_floats];

/// From Ampere on.
const AMPERE: [Family; 3] = [newer::brain_floats, newer::extrema, newer::narrowings];
/// From Hopper on.
const HOPPER: [Family; 4] =
    [newer::brain_sums, newer::byte_floats, newer::dynamic_programming, newer::dynamic_programming];

/// Where a statement is.
#[derive(Clone, Copy)]
struct Place {
    /// Statements around it.
    depth: usize,
    /// Inside a loop.
    is_in_loop: bool,
    /// The function, or the kernel.
    function: Option<usize>,
}

struct Generator {
    random: Random,
    /// Those that this kernel prefers.
    families: Vec<Family>,
    functions: usize,
    level: Level,
}

/// The kernel of a seed.
pub fn kernel(seed: u64, level: Level) -> Kernel {
    let mut random = Random::new(seed ^ (level as u64) << 48);
    let mut families = Vec::new();
    for family in FAMILIES.into_iter().chain(CONVERSIONS) {
        families.extend(std::iter::repeat_n(family, random.pick(&[0, 1, 1, 2, 4])));
    }
    let newer: &[Family] = match level {
        Level::Volta => &[],
        Level::Ampere => &AMPERE,
        Level::Hopper => &[AMPERE.as_slice(), &HOPPER].concat(),
    };
    for family in newer {
        families.extend(std::iter::repeat_n(*family, random.pick(&[0, 1, 2, 4])));
    }
    families.push(bits::logic);
    let functions = random.below(3);
    let mut generator = Generator { random, families, functions, level };
    let bodies = (0..functions).map(|function| {
        let length = 2 + generator.random.below(5);
        Function { body: generator.statements(length, Place { depth: 1, is_in_loop: false, function: Some(function) }) }
    });
    let functions = bodies.collect();
    let length = 6 + generator.random.below(12);
    let body = generator.statements(length, Place { depth: 0, is_in_loop: false, function: None });
    Kernel { seed, functions, body }
}

impl Generator {
    fn register(&mut self, width: u32) -> Register {
        let count = REGISTERS.iter().find(|(other, _)| *other == width).map_or(1, |(_, count)| *count);
        Register { width, index: self.random.below(count) }
    }

    /// Different registers.
    fn registers(&mut self, widths: &[u32]) -> Vec<Register> {
        let mut registers: Vec<Register> = Vec::new();
        for width in widths {
            let mut register = self.register(*width);
            while registers.contains(&register) {
                register = self.register(*width);
            }
            registers.push(register);
        }
        registers
    }

    fn operand(&mut self, source: Source, place: Place) -> Operand {
        let Source { width, literal } = source;
        if literal != Literal::None && self.random.one_in(6) {
            let bits = self.random.value(width);
            return Operand::Literal { bits, width, is_float: literal == Literal::Float };
        }
        if place.function.is_none()
            && literal != Literal::None
            && self.random.one_in(8)
            && let Some((_, count)) = PARAMETERS.iter().find(|(other, _)| *other == width)
        {
            return Operand::Parameter(Register { width, index: self.random.below(*count) });
        }
        if width == 32 && self.random.one_in(24) {
            return Operand::Lane;
        }
        Operand::Register(self.register(width))
    }

    fn word(&mut self, place: Place) -> Operand {
        self.operand(crate::operation::integer(32), place)
    }

    /// A register, where no literal makes sense.
    fn any(&mut self, width: u32) -> Operand {
        Operand::Register(self.register(width))
    }

    fn condition(&mut self) -> Condition {
        Condition { predicate: self.register(1).index, negated: self.random.one_in(2) }
    }

    fn guard(&mut self) -> Option<Condition> {
        self.random.one_in(4).then(|| self.condition())
    }

    fn statements(&mut self, count: usize, place: Place) -> Vec<Statement> {
        (0..count).map(|_| self.statement(place)).collect()
    }

    fn block(&mut self, place: Place) -> Vec<Statement> {
        let count = self.random.below(4);
        self.statements(count, Place { depth: place.depth + 1, ..place })
    }

    fn statement(&mut self, place: Place) -> Statement {
        let is_nested = place.depth < 3;
        match self.random.below(32) {
            0 | 1 if is_nested => {
                let condition = self.condition();
                Statement::Choose { condition, then: self.block(place), otherwise: self.block(place) }
            }
            2 if is_nested => {
                let (rounds, is_tested_first) = (self.any(32), self.random.one_in(2));
                let mut body = self.block(Place { is_in_loop: true, ..place });
                body.push(self.statement(Place { is_in_loop: true, depth: place.depth + 1, ..place }));
                Statement::Repeat { rounds, is_tested_first, body }
            }
            3 if is_nested => {
                let selector = self.any(32);
                let cases = (0..4).map(|case| (self.block(place), case < 3 && self.random.one_in(3)));
                Statement::Switch { selector, cases: cases.collect() }
            }
            4 if place.is_in_loop => Statement::Leave(self.condition()),
            5 | 6 => self.call(place).unwrap_or_else(|| self.compute(place)),
            7..10 if place.function.is_none() => Statement::Access(self.access()),
            10 if place.function.is_none() => self.reduction(place),
            11..15 if place.depth == 0 && place.function.is_none() => self.together(place),
            _ => self.compute(place),
        }
    }

    fn compute(&mut self, place: Place) -> Statement {
        let family = self.random.pick(&self.families);
        let operation = family(&mut self.random);
        let mut sources: Vec<Operand> = Vec::new();
        for source in &operation.sources {
            let mut operand = self.operand(*source, place);
            // A combination of a predicate with itself is a copy, which ptxas 12.9 takes for the predicate's later value, too.
            while sources.iter().any(|other| other.is_same_predicate(operand)) {
                operand = self.operand(*source, place);
            }
            sources.push(operand);
        }
        let mut destinations = self.registers(&operation.destinations);
        // Of an operation that reads a predicate which it writes, ptxas 12.9 may take the value before the loop around it.
        let is_read =
            |register: &Register| sources.iter().any(|other| other.is_same_predicate(Operand::Register(*register)));
        while destinations.iter().any(is_read) {
            destinations = self.registers(&operation.destinations);
        }
        let guard = if operation.takes_guard { self.guard() } else { None };
        Statement::Compute { operation, sources, destinations, guard }
    }

    fn call(&mut self, place: Place) -> Option<Statement> {
        let first = place.function.map_or(0, |function| function + 1);
        let known = self.functions - first;
        if known == 0 {
            return None;
        }
        let count = if known > 1 && self.random.one_in(2) { 2 } else { 1 };
        let functions = match count {
            2 => vec![first, first + 1],
            _ => vec![first + self.random.below(known)],
        };
        let arguments = [32, 32, 64].map(|width| self.operand(crate::operation::integer(width), place));
        Some(Statement::Call { functions, choice: self.condition(), arguments, destination: self.register(32) })
    }

    fn access(&mut self) -> Access {
        let newer = self.level != Level::Volta && self.random.one_in(4);
        let space = match newer {
            false => self.random.pick(&[Space::Global, Space::Generic, Space::Shared, Space::Local, Space::Local]),
            true if self.level == Level::Hopper && self.random.one_in(2) => Space::Cluster,
            true => return self.copy(),
        };
        let place_in_scratch = |generator: &mut Self, size: usize| match generator.random.one_in(2) {
            true => Ok(size * generator.random.below(SCRATCH / size)),
            false => Err(generator.any(32)),
        };
        if space != Space::Local && self.random.one_in(3) {
            let (name, width, count) = self.random.pick(&[
                ("add.u32", 32, 1),
                ("add.s32", 32, 1),
                ("add.u64", 64, 1),
                ("exch.b32", 32, 1),
                ("exch.b64", 64, 1),
                ("cas.b32", 32, 2),
                ("cas.b64", 64, 2),
                ("and.b32", 32, 1),
                ("or.b64", 64, 1),
                ("xor.b32", 32, 1),
                ("min.s32", 32, 1),
                ("max.u64", 64, 1),
                ("min.s64", 64, 1),
                ("inc.u32", 32, 1),
                ("dec.u32", 32, 1),
            ]);
            let operands = (0..count).map(|_| self.any(width)).collect();
            let bytes = width as usize / 8;
            return Access {
                space,
                action: Action::Update { name, operands },
                bytes,
                signed: false,
                registers: self.registers(&[width]),
                place: place_in_scratch(self, bytes),
                guard: self.guard(),
            };
        }
        let bytes = self.random.pick(&[1, 2, 4, 4, 8]);
        let count = self.random.pick(&[1, 1, 2, 4]).min(16 / bytes);
        let widths: Vec<u32> = [16, 32, 64].into_iter().filter(|width| *width >= 8 * bytes as u32).collect();
        let width = self.random.pick(&widths);
        let action = if self.random.one_in(2) { Action::Load } else { Action::Store };
        Access {
            space,
            action,
            bytes,
            signed: self.random.one_in(2),
            registers: self.registers(&vec![width; count]),
            place: place_in_scratch(self, bytes * count),
            guard: self.guard(),
        }
    }

    fn copy(&mut self) -> Access {
        let bytes = self.random.pick(&[4, 8, 16]);
        Access {
            space: Space::Shared,
            action: Action::Copy,
            bytes,
            signed: false,
            registers: Vec::new(),
            place: if self.random.one_in(2) {
                Ok(bytes * self.random.below(SCRATCH / bytes))
            } else {
                Err(self.any(32))
            },
            guard: self.guard(),
        }
    }

    fn reduction(&mut self, place: Place) -> Statement {
        let reduction = self.random.below(REDUCTIONS.len());
        let width = if REDUCTIONS[reduction].ends_with("64") { 64 } else { 32 };
        Statement::Reduce { reduction, place: self.word(place), value: self.any(width), guard: self.guard() }
    }

    fn together(&mut self, place: Place) -> Statement {
        if self.level != Level::Volta && self.random.one_in(3) {
            return self.newer_together();
        }
        // Behind a barrier with a result, ptxas 12.9 supposes that lanes which call different functions go on together.
        let kinds = if self.functions < 2 { 8 } else { 6 };
        let (collective, sources, destinations): (_, Vec<Operand>, &[u32]) = match self.random.below(kinds) {
            0 => (Collective::Exchange, vec![self.any(32), self.word(place)], &[32]),
            1 | 2 => {
                let mode = self.random.pick(&["up", "down", "bfly", "idx"]);
                let clamps = if mode == "up" { [0, 0x1c00, 0x1800, 0x1e00] } else { [31, 0x1c07, 0x181f, 0x1e03] };
                let clamp = self.random.pick(&clamps);
                (Collective::Shuffle { mode, clamp }, vec![self.any(32), self.word(place)], &[32, 1])
            }
            3 => (Collective::Vote { mode: self.random.pick(&["all", "any", "uni"]) }, vec![self.any(1)], &[1]),
            4 => (Collective::Ballot, vec![self.any(1)], &[32]),
            5 => {
                let (all, width) = (self.random.one_in(2), self.random.pick(&[32, 64]));
                let destinations: &[u32] = if all { &[32, 1] } else { &[32] };
                (Collective::Match { all, width }, vec![self.any(width)], destinations)
            }
            6 => (Collective::Count, vec![self.any(1)], &[32]),
            _ => (Collective::BarrierVote { all: self.random.one_in(2) }, vec![self.any(1)], &[1]),
        };
        Statement::Together { collective, sources, destinations: self.registers(destinations) }
    }

    fn newer_together(&mut self) -> Statement {
        let kinds = if self.level == Level::Hopper { 8 } else { 7 };
        let (collective, sources, destinations): (_, Vec<Operand>, &[u32]) = match self.random.below(kinds) {
            0..3 => {
                let names =
                    ["add.u32", "add.s32", "min.u32", "max.s32", "max.u32", "min.s32", "and.b32", "or.b32", "xor.b32"];
                (Collective::Reduce { name: self.random.pick(&names) }, vec![self.any(32)], &[32])
            }
            3 => (Collective::Transpose, vec![self.any(32)], &[32]),
            4..7 => {
                let signed = [self.random.one_in(2), self.random.one_in(2)];
                let sources = (0..10).map(|_| self.any(32)).collect();
                (Collective::Multiply { signed, saturates: self.random.one_in(2) }, sources, &[32; 4])
            }
            _ => (Collective::Elect, vec![self.any(32)], &[32, 1]),
        };
        Statement::Together { collective, sources, destinations: self.registers(destinations) }
    }
}
