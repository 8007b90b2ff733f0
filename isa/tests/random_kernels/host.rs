//! The effect of a kernel, statement by statement, in the host's arithmetic: all lanes of a warp, or its active ones.

use crate::kernel::*;
use crate::values::{low, meaning};

/// A value for each lane.
type Row = [u64; THREADS];

/// The registers of the kernel or of a function, by [`REGISTERS`].
#[derive(Clone)]
struct Frame([Vec<Row>; 4]);

impl Frame {
    fn new() -> Self {
        Self(REGISTERS.map(|(_, count)| vec![[0; THREADS]; count]))
    }

    fn row(&mut self, register: Register) -> &mut Row {
        let class = REGISTERS.iter().position(|(width, _)| *width == register.width).expect("a width that exists");
        &mut self.0[class][register.index]
    }
}

/// A warp with what it can reach.
struct Warp<'kernel> {
    kernel: &'kernel Kernel,
    memory: Vec<u8>,
    parameters: [Vec<u64>; 2],
    shared: [[u8; SCRATCH]; THREADS],
    local: [[u8; SCRATCH]; THREADS],
}

/// A number of some bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..THREADS).filter(move |lane| mask >> lane & 1 != 0)
}

/// The memory after a kernel; parameters as [`PARAMETERS`].
pub fn run(kernel: &Kernel, memory: &[u8], parameters: [Vec<u64>; 2]) -> Vec<u8> {
    let mut frame = Frame::new();
    let mut scratch = [[0; SCRATCH]; THREADS];
    for (lane, record) in memory[..COMMON_PLACE].chunks(RECORD).enumerate() {
        for ((width, count), first) in REGISTERS.into_iter().zip(INPUTS) {
            for index in 0..count {
                let bytes = width as usize / 8;
                frame.row(Register { width, index })[lane] = match width {
                    1 => u64::from(record[first] >> index & 1),
                    _ => number(&record[first + bytes * index..][..bytes]),
                };
            }
        }
        // Shared and local memory begin with the first inputs.
        scratch[lane].copy_from_slice(&record[..SCRATCH]);
    }
    let mut warp = Warp { kernel, memory: memory.to_vec(), parameters, shared: scratch, local: scratch };
    warp.run(&kernel.body, u32::MAX, &mut frame, &mut 0);
    for lane in 0..THREADS {
        let mut place = lane * RECORD + RESULT_PLACE;
        for (width, count) in REGISTERS {
            for index in 0..count {
                let value = frame.row(Register { width, index })[lane];
                let bytes = (width as usize).div_ceil(8);
                warp.memory[place..place + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                place += bytes;
            }
        }
    }
    warp.memory
}

impl Warp<'_> {
    fn values(&self, operand: Operand, frame: &mut Frame) -> Row {
        match operand {
            Operand::Register(register) => *frame.row(register),
            Operand::Literal { bits, .. } => [bits; THREADS],
            Operand::Parameter(Register { width, index }) => {
                let class = PARAMETERS.iter().position(|(other, _)| *other == width).expect("a width that exists");
                [self.parameters[class][index]; THREADS]
            }
            Operand::Lane => std::array::from_fn(|lane| lane as u64),
        }
    }

    fn holds(condition: Condition, frame: &mut Frame) -> u32 {
        let row = *frame.row(Register { width: 1, index: condition.predicate });
        (0..THREADS).fold(0, |mask, lane| mask | u32::from((row[lane] != 0) != condition.negated) << lane)
    }

    fn guarded(mask: u32, guard: Option<Condition>, frame: &mut Frame) -> u32 {
        guard.map_or(mask, |condition| mask & Self::holds(condition, frame))
    }

    /// Runs statements; `left` are lanes that have left the innermost loop.
    fn run(&mut self, statements: &[Statement], mask: u32, frame: &mut Frame, left: &mut u32) {
        for statement in statements {
            let mask = mask & !*left;
            if mask != 0 {
                self.step(statement, mask, frame, left);
            }
        }
    }

    fn step(&mut self, statement: &Statement, mask: u32, frame: &mut Frame, left: &mut u32) {
        match statement {
            Statement::Compute { operation, sources, destinations, guard } => {
                let mask = Self::guarded(mask, *guard, frame);
                let rows: Vec<Row> = sources.iter().map(|source| self.values(*source, frame)).collect();
                for lane in lanes(mask) {
                    let values: Vec<u64> = rows.iter().map(|row| row[lane]).collect();
                    let results = (operation.meaning)(&values);
                    for (destination, result) in destinations.iter().zip(results) {
                        frame.row(*destination)[lane] = result;
                    }
                }
            }
            Statement::Choose { condition, then, otherwise } => {
                let chosen = Self::holds(*condition, frame);
                self.run(then, mask & chosen, frame, left);
                self.run(otherwise, mask & !chosen, frame, left);
            }
            Statement::Repeat { rounds, is_tested_first, body } => {
                let rounds = self.values(*rounds, frame).map(|rounds| (rounds & 3) + u64::from(!is_tested_first));
                let mut left = 0;
                for round in 0..4 {
                    self.run(
                        body,
                        lanes(mask).filter(|lane| rounds[*lane] > round).fold(0, |m, l| m | 1 << l),
                        frame,
                        &mut left,
                    );
                }
            }
            Statement::Leave(condition) => *left |= mask & Self::holds(*condition, frame),
            Statement::Switch { selector, cases } => {
                let selectors = self.values(*selector, frame);
                let mut fallen = 0;
                for (number, (case, goes_on)) in cases.iter().enumerate() {
                    let chosen = lanes(mask).filter(|lane| selectors[*lane] & 3 == number as u64);
                    let here = chosen.fold(fallen, |mask, lane| mask | 1 << lane);
                    self.run(case, here, frame, left);
                    fallen = if *goes_on { here } else { 0 };
                }
            }
            Statement::Call { functions, choice, arguments, destination } => {
                let chosen = Self::holds(*choice, frame);
                let rows = arguments.map(|argument| self.values(argument, frame));
                let masks = if functions.len() == 1 { [mask, 0] } else { [mask & chosen, mask & !chosen] };
                for (function, mask) in functions.iter().zip(masks) {
                    let results = self.call(*function, rows, mask);
                    for lane in lanes(mask) {
                        frame.row(*destination)[lane] = results[lane];
                    }
                }
            }
            Statement::Access(access) => self.access(access, Self::guarded(mask, access.guard, frame), frame),
            Statement::Reduce { reduction, place, value, guard } => {
                let mask = Self::guarded(mask, *guard, frame);
                let (places, values) = (self.values(*place, frame), self.values(*value, frame));
                let (name, width) = REDUCTIONS[*reduction].split_once('.').expect("a type");
                let bytes = if width.ends_with("64") { 8 } else { 4 };
                for lane in lanes(mask) {
                    let first = COMMON_PLACE + 32 * reduction + 8 * (places[lane] as usize & 3);
                    let word = &mut self.memory[first..first + bytes];
                    let value = updated(&format!("{name}.{width}"), number(word), values[lane], 0);
                    word.copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
            Statement::Together { collective, sources, destinations } => {
                let rows: Vec<Row> = sources.iter().map(|source| self.values(*source, frame)).collect();
                let results = self.together(collective, &rows);
                for (destination, result) in destinations.iter().zip(results) {
                    *frame.row(*destination) = result;
                }
            }
        }
    }

    /// A function's first register after it. Its registers begin as `text::function_start` has them.
    fn call(&mut self, function: usize, arguments: [Row; 3], mask: u32) -> Row {
        let mut frame = Frame::new();
        let [first, second, wide] = arguments;
        for lane in 0..THREADS {
            for (width, count) in REGISTERS {
                for index in 0..count {
                    frame.row(Register { width, index })[lane] = match width {
                        32 => [first, second][index % 2][lane].wrapping_add(index as u64 / 2) & 0xffff_ffff,
                        64 => wide[lane].wrapping_add(index as u64),
                        16 => wide[lane] >> (16 * index) & 0xffff,
                        _ => first[lane] >> index & 1,
                    };
                }
            }
        }
        let kernel = self.kernel;
        self.run(&kernel.functions[function].body, mask, &mut frame, &mut 0);
        *frame.row(Register { width: 32, index: 0 })
    }

    fn access(&mut self, access: &Access, mask: u32, frame: &mut Frame) {
        let Access { space, action, bytes, signed, registers, place, .. } = access;
        let size = bytes * registers.len().max(1);
        let places = match place {
            Ok(place) => [*place as u64; THREADS],
            Err(operand) => self.values(*operand, frame).map(|value| value & (SCRATCH - size) as u64),
        };
        if matches!(action, Action::Copy) {
            for lane in lanes(mask) {
                let place = places[lane] as usize;
                let from = &self.memory[lane * RECORD + SCRATCH_PLACE + place..][..*bytes];
                self.shared[lane][place..place + bytes].copy_from_slice(from);
            }
            return;
        }
        for lane in lanes(mask) {
            let scratch = match space {
                Space::Shared | Space::Cluster => &mut self.shared[lane][..],
                Space::Local => &mut self.local[lane][..],
                _ => &mut self.memory[lane * RECORD + SCRATCH_PLACE..][..SCRATCH],
            };
            for (index, register) in registers.iter().enumerate() {
                let element = &mut scratch[places[lane] as usize + index * bytes..][..*bytes];
                let old = number(element);
                let bits = 8 * *bytes as u32;
                let new = match action {
                    Action::Load => {
                        frame.row(*register)[lane] = low(meaning(old, bits, *signed), register.width);
                        continue;
                    }
                    Action::Store => frame.row(*register)[lane],
                    Action::Copy => continue,
                    Action::Update { name, operands } => {
                        let operand = |index: usize, frame: &mut Frame| match operands.get(index) {
                            Some(Operand::Register(register)) => frame.row(*register)[lane],
                            _ => 0,
                        };
                        let new = updated(name, old, operand(0, frame), operand(1, frame));
                        frame.row(*register)[lane] = old;
                        new
                    }
                };
                element.copy_from_slice(&new.to_le_bytes()[..*bytes]);
            }
        }
    }

    fn together(&mut self, collective: &Collective, rows: &[Row]) -> Vec<Row> {
        let each = |of: &dyn Fn(usize) -> u64| -> Row { std::array::from_fn(of) };
        let a = rows[0];
        let set = lanes(u32::MAX).filter(|lane| a[*lane] != 0).count();
        match collective {
            Collective::Exchange => {
                for (slot, value) in self.shared.iter_mut().zip(a) {
                    slot[..4].copy_from_slice(&value.to_le_bytes()[..4]);
                }
                vec![each(&|lane| a[rows[1][lane] as usize % THREADS])]
            }
            Collective::Shuffle { mode, clamp } => {
                let (segments, clamp) = (*clamp as usize >> 8 & 31, *clamp as usize & 31);
                let source = |lane: usize| {
                    let distance = rows[1][lane] as usize & 31;
                    let last = lane & segments | clamp & !segments;
                    let (other, is_there) = match *mode {
                        "up" => (lane.wrapping_sub(distance), lane as isize - distance as isize >= last as isize),
                        "down" => (lane + distance, lane + distance <= last),
                        "bfly" => (lane ^ distance, lane ^ distance <= last),
                        _ => {
                            let other = lane & segments | distance & !segments;
                            (other, other <= last)
                        }
                    };
                    (if is_there { other } else { lane }, is_there)
                };
                vec![each(&|lane| a[source(lane).0]), each(&|lane| u64::from(source(lane).1))]
            }
            Collective::Vote { mode } => {
                let truth = match *mode {
                    "all" => set == THREADS,
                    "any" => set > 0,
                    _ => set % THREADS == 0,
                };
                vec![[u64::from(truth); THREADS]]
            }
            Collective::Ballot => vec![[lanes(u32::MAX).fold(0, |mask, lane| mask | a[lane] << lane); THREADS]],
            Collective::Match { all: true, .. } => {
                let same = a.iter().all(|value| *value == a[0]);
                vec![[if same { 0xffff_ffff } else { 0 }; THREADS], [u64::from(same); THREADS]]
            }
            Collective::Match { .. } => {
                vec![each(&|lane| (0..THREADS).fold(0, |mask, other| mask | u64::from(a[other] == a[lane]) << other))]
            }
            Collective::Count => vec![[set as u64; THREADS]],
            Collective::Reduce { name } => {
                let first = a[0];
                vec![[a[1..].iter().fold(first, |all, value| updated(name, all, *value, 0)); THREADS]]
            }
            Collective::Elect => vec![[0; THREADS], each(&|lane| u64::from(lane == 0))],
            Collective::Transpose => {
                // Row and column of the lower one of a lane's two elements: lane / 4 and lane % 4 * 2.
                let element = |row: usize, column: usize| a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
                let of_lane = |lane: usize, part: usize| element(lane % 4 * 2 + part, lane / 4);
                vec![each(&|lane| of_lane(lane, 0) | of_lane(lane, 1) << 16)]
            }
            Collective::Multiply { signed, saturates } => multiply(rows, *signed, *saturates),
            Collective::BarrierVote { all } => vec![[u64::from(if *all { set == THREADS } else { set > 0 }); THREADS]],
        }
    }
}

/// `mma` of bytes, 16 by 8 by 32: the layouts of the PTX ISA, fragments of `mma.m16n8k32`.
fn multiply(rows: &[Row], [a_signed, b_signed]: [bool; 2], saturates: bool) -> Vec<Row> {
    let byte = |word: u64, place: usize, signed: bool| meaning(word >> (8 * (place % 4)) & 0xff, 8, signed);
    // Four bytes lie in a register, of two registers the first has rows 0 to 7, and the last two have columns from 16 on.
    let left = |row: usize, column: usize| {
        let register = row / 8 + 2 * (column / 16);
        byte(rows[register][row % 8 * 4 + column % 16 / 4], column, a_signed)
    };
    let right = |row: usize, column: usize| byte(rows[4 + row / 16][column * 4 + row % 16 / 4], row, b_signed);
    (0..4)
        .map(|register| {
            std::array::from_fn(|lane| {
                let (row, column) = (lane / 4 + 8 * (register / 2), lane % 4 * 2 + register % 2);
                let start = meaning(rows[6 + register][lane], 32, true);
                let sum = start + (0..32).map(|place| left(row, place) * right(place, column)).sum::<i128>();
                let limited = sum.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
                low(if saturates { limited } else { sum }, 32)
            })
        })
        .collect()
}

/// A word after an atomic update.
fn updated(name: &str, old: u64, a: u64, b: u64) -> u64 {
    let (operation, kind) = name.split_once('.').expect("a type");
    let bits = if kind.ends_with("64") { 64 } else { 32 };
    let signed = kind.starts_with('s');
    let (x, y) = (meaning(old, bits, signed), meaning(a, bits, signed));
    match operation {
        "add" => low(x + y, bits),
        "min" => low(x.min(y), bits),
        "max" => low(x.max(y), bits),
        "and" => old & a,
        "or" => old | a,
        "xor" => old ^ a,
        "exch" => a,
        "cas" => {
            if old == a {
                b
            } else {
                old
            }
        }
        "inc" => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        _ => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
    }
}
