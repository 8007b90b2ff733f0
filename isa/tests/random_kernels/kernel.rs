//! A kernel as a tree of statements. Every register has a value from the beginning, so that a kernel without some of its statements is
//! one, too.
//!
//! A warp of 32 threads runs it. A thread has a record of [`RECORD`] bytes of device memory: inputs, [`SCRATCH`] bytes that it may
//! access, and the last values of its registers; behind the records are words that all threads update.

use crate::operation::Operation;

/// The instructions that a kernel may have: those of the oldest GPUs of this kind, and of all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Volta,
    Ampere,
    Hopper,
}

/// Threads of a warp.
pub const THREADS: usize = 32;
/// Bytes of a thread's record.
pub const RECORD: usize = 256;
/// Where a thread's scratch begins in its record: here, in its local memory and in shared memory it has as many bytes.
pub const SCRATCH_PLACE: usize = 96;
/// Bytes of scratch.
pub const SCRATCH: usize = 32;
/// Where the last values of registers begin.
pub const RESULT_PLACE: usize = SCRATCH_PLACE + SCRATCH;
/// Words that all threads update, behind the records: four of eight bytes for each of [`REDUCTIONS`].
pub const COMMON_PLACE: usize = THREADS * RECORD;
/// All bytes.
pub const MEMORY: usize = COMMON_PLACE + 32 * REDUCTIONS.len();
/// Updates whose order does not matter.
pub const REDUCTIONS: [&str; 8] =
    ["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "add.u64", "max.s64"];

/// Widths of registers, and how many of each there are.
pub const REGISTERS: [(u32, usize); 4] = [(32, 8), (64, 6), (16, 4), (1, 4)];
/// Where the first value of a register of each width is in the record. A predicate is a bit of a word.
pub const INPUTS: [usize; 4] = [0, 32, 80, 88];
/// Parameters that the kernel has besides the address: of 32 and of 64 bits.
pub const PARAMETERS: [(u32, usize); 2] = [(32, 4), (64, 2)];

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    pub width: u32,
    pub index: usize,
}

/// What an instruction reads.
#[derive(Debug, Clone, Copy)]
pub enum Operand {
    Register(Register),
    /// A literal of so many bits, as a float or not.
    Literal {
        bits: u64,
        width: u32,
        is_float: bool,
    },
    /// A parameter of the kernel.
    Parameter(Register),
    /// The number of the lane.
    Lane,
}

impl Operand {
    /// Are both the same predicate?
    pub fn is_same_predicate(self, other: Operand) -> bool {
        matches!((self, other), (Operand::Register(a), Operand::Register(b)) if a.width == 1 && a == b)
    }
}

/// A predicate, or its opposite.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    pub predicate: usize,
    pub negated: bool,
}

/// Memories of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    Global,
    Generic,
    Shared,
    /// Shared memory by its place in the cluster.
    Cluster,
    Local,
}

/// What an access does.
#[derive(Debug, Clone)]
pub enum Action {
    Load,
    Store,
    /// An atomic update of one element, with its name and operands, whose destination is the only register.
    Update {
        name: &'static str,
        operands: Vec<Operand>,
    },
    /// `cp.async` from device to shared memory; it has no register.
    Copy,
}

/// An access of a thread to its own scratch.
#[derive(Debug, Clone)]
pub struct Access {
    pub space: Space,
    pub action: Action,
    /// Bytes of an element, or of all.
    pub bytes: usize,
    pub signed: bool,
    /// The elements, one to four; none of a copy.
    pub registers: Vec<Register>,
    /// A fixed place; or a source of which some bits are the place.
    pub place: Result<usize, Operand>,
    pub guard: Option<Condition>,
}

/// What all lanes do together.
#[derive(Debug, Clone)]
pub enum Collective {
    /// Through shared memory: the value, and the lane whose value is read.
    Exchange,
    /// `shfl`, by its mode and its clamp.
    Shuffle { mode: &'static str, clamp: u32 },
    /// `vote` to a predicate.
    Vote { mode: &'static str },
    /// `vote.ballot`.
    Ballot,
    /// `match`, of 32 or 64 bits.
    Match { all: bool, width: u32 },
    /// `barrier.red.popc`.
    Count,
    /// `barrier.red.and` and `barrier.red.or`.
    BarrierVote { all: bool },
    /// `redux`, by its operation and type.
    Reduce { name: &'static str },
    /// `elect`.
    Elect,
    /// `movmatrix`: pairs of 16 bits change rows and columns.
    Transpose,
    /// `mma` of bytes, 16 by 8 by 32: whether those of A and of B are signed. Four registers of A, two of B, four of C.
    Multiply { signed: [bool; 2], saturates: bool },
}

/// A statement.
#[derive(Clone)]
pub enum Statement {
    Compute {
        operation: Operation,
        sources: Vec<Operand>,
        destinations: Vec<Register>,
        guard: Option<Condition>,
    },
    Choose {
        condition: Condition,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// A loop of at most three rounds, and one more where it is tested at its end.
    Repeat {
        rounds: Operand,
        is_tested_first: bool,
        body: Vec<Statement>,
    },
    /// Out of the innermost loop.
    Leave(Condition),
    /// One of four cases, each with whether it goes on into the next one.
    Switch {
        selector: Operand,
        cases: Vec<(Vec<Statement>, bool)>,
    },
    /// A function, or by a pointer one of two.
    Call {
        functions: Vec<usize>,
        choice: Condition,
        arguments: [Operand; 3],
        destination: Register,
    },
    Access(Access),
    /// An update of common words, by [`REDUCTIONS`].
    Reduce {
        reduction: usize,
        place: Operand,
        value: Operand,
        guard: Option<Condition>,
    },
    Together {
        collective: Collective,
        sources: Vec<Operand>,
        destinations: Vec<Register>,
    },
}

/// A function of two words and a value of 64 bits, whose result is its first register.
#[derive(Clone)]
pub struct Function {
    pub body: Vec<Statement>,
}

/// A kernel.
#[derive(Clone)]
pub struct Kernel {
    pub seed: u64,
    /// A function calls those behind it alone.
    pub functions: Vec<Function>,
    pub body: Vec<Statement>,
}

impl Statement {
    /// The lists of statements inside it.
    pub fn parts(&mut self) -> Vec<&mut Vec<Statement>> {
        match self {
            Statement::Choose { then, otherwise, .. } => vec![then, otherwise],
            Statement::Repeat { body, .. } => vec![body],
            Statement::Switch { cases, .. } => cases.iter_mut().map(|(case, _)| case).collect(),
            _ => Vec::new(),
        }
    }
}

/// Removes the statement of a number, counted from the outside in. Gives the number that is left, where there are fewer.
fn remove(statements: &mut Vec<Statement>, mut number: usize) -> Result<(), usize> {
    if number < statements.len() {
        statements.remove(number);
        return Ok(());
    }
    number -= statements.len();
    for part in statements.iter_mut().flat_map(Statement::parts) {
        match remove(part, number) {
            Ok(()) => return Ok(()),
            Err(left) => number = left,
        }
    }
    Err(number)
}

impl Kernel {
    /// Its name in PTX.
    pub fn name(&self) -> String {
        format!("k{}", self.seed)
    }

    /// The kernel with as few statements as still fail.
    pub fn shrunk(&self, fails: impl Fn(&Kernel) -> bool) -> Kernel {
        let mut smallest = self.clone();
        let mut number = 0;
        let mut has_changed = false;
        loop {
            let mut candidate = smallest.clone();
            let lists = std::iter::once(&mut candidate.body).chain(candidate.functions.iter_mut().map(|f| &mut f.body));
            let mut left = Err(number);
            for list in lists {
                let Err(number) = left else { break };
                left = remove(list, number);
            }
            match left {
                Ok(()) if fails(&candidate) => (smallest, has_changed) = (candidate, true),
                Ok(()) => number += 1,
                Err(_) if has_changed => (number, has_changed) = (0, false),
                Err(_) => return smallest,
            }
        }
    }
}
