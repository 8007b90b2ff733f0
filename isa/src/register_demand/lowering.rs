//! From PTX to operations on the registers that are left.

use super::lines::{Line, lines};
use super::values::{Value, Values};
use crate::control_flow::Flow;
use crate::execution::Space;
use crate::liveness::{Uses, Width};
use crate::ptx::ast::{Function, Instruction, LabelId, OperandKind, Statement};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};
use crate::scheduling::{Access, Node, Order, memory_latency, spaces};
use std::collections::BTreeMap;

/// A function as the machine would execute it, as far as registers are concerned.
#[derive(Default)]
pub(super) struct Operations {
    pub uses: Vec<Uses>,
    pub nodes: Vec<Node>,
    pub flows: Vec<Flow>,
    /// Branch targets.
    pub tables: Vec<Vec<u32>>,
    /// Widths of the registers of the text, and after them of further registers that the operations have.
    pub widths: Vec<Width>,
    /// Whether it calls anything.
    pub calls: bool,
}

/// Lowers a function.
pub(super) fn lower(function: &Function) -> Operations {
    let lines = lines(function);
    let values = Values::new(function, &lines);
    let width = |(register, scalar_type): (u32, &T)| match scalar_type {
        T::Pred => Width::Predicate,
        wide if wide.bits() > 32 && !values.is_narrow(register) => Width::Two,
        _ => Width::One,
    };
    let widths = (0..).zip(&function.register_types).map(width).collect();
    let operations = Operations { widths, ..Operations::default() };
    let mut lowering = Lowering { values, operations, held: BTreeMap::new(), factor: None };
    lowering.statements(function, &lines);
    lowering.operations
}

struct Lowering {
    values: Values,
    operations: Operations,
    /// The registers in this block that hold values which an operand could not name, by the register of the text.
    held: BTreeMap<u32, u32>,
    /// The register with the size of elements, which sums of an index and an address in the constant bank read.
    factor: Option<u32>,
}

/// An operation on registers.
const PLAIN: Node = Node { order: Order::Free, access: None, carries: false, latency: 4 };
/// One that nothing moves across.
const PINNED: Node = Node { order: Order::Pinned, ..PLAIN };
/// Cycles that functions of one argument, conversions between them and texture reads are expected to take, as in
/// [`crate::scheduling::expected_latency`].
const SPECIAL_LATENCY: u32 = 20;
const CONVERSION_LATENCY: u32 = 14;
const DOUBLE_LATENCY: u32 = 8;
const TEXTURE_LATENCY: u32 = 300;

/// Words that an instruction which is a sequence on the machine has live beside its operands, and whether that is a function with
/// branches, which nothing moves across. Calibrated: for each, a kernel of one such instruction with ptxas 12.9 for sm_70, less the
/// same kernel with an addition.
fn hidden_words(instruction: &Instruction) -> (u32, bool) {
    let data_type = instruction.types.first().copied().unwrap_or(T::B32);
    let is_exact = !instruction.has(M::Approx) && !instruction.has(M::Full);
    let is_wide_integer = data_type.bits() == 64 && !data_type.is_float();
    match (instruction.opcode, data_type) {
        (O::Div, T::F64) => (14, true),
        (O::Div, T::F32) if is_exact => (8, true),
        (O::Sqrt, T::F64) => (12, true),
        (O::Sqrt, T::F32) if is_exact => (4, true),
        (O::Rcp, T::F64) if is_exact => (6, true),
        (O::Rcp, T::F32) if is_exact => (7, true),
        (O::Div | O::Rem, _) if is_wide_integer => (10, true),
        (O::Div | O::Rem, T::S32) => (5, false),
        (O::Div | O::Rem, T::U32) => (3, false),
        (O::Mul, _) if is_wide_integer && instruction.has(M::Hi) => (6, false),
        (O::Mul, _) if is_wide_integer && instruction.has(M::Lo) => (2, false),
        _ => (0, false),
    }
}

fn space_of(instruction: &Instruction) -> Option<Space> {
    match instruction.state_space()? {
        StateSpace::Global => Some(Space::Global),
        StateSpace::Shared => Some(Space::Shared),
        StateSpace::Local => Some(Space::Local),
        StateSpace::Constant => Some(Space::Constant),
        StateSpace::Parameter => Some(Space::Parameter),
        _ => None,
    }
}

/// The facts about an instruction that the scheduler needs.
fn node(instruction: &Instruction) -> Node {
    let space = space_of(instruction);
    let is_volatile = instruction.has(M::Volatile);
    let is_constant = instruction.has(M::Nc) || instruction.opcode == O::Ldu;
    let access = |writes| Some(Access { spaces: if is_constant { 0 } else { spaces(space) }, writes });
    let carries = instruction.has(M::Cc) || matches!(instruction.opcode, O::Addc | O::Subc | O::Madc);
    let (order, access, latency) = match instruction.opcode {
        O::Ld | O::Ldu if is_volatile => (Order::Chained, access(true), memory_latency(space)),
        O::Ld | O::Ldu => (Order::Free, access(false), memory_latency(space)),
        O::St | O::Red | O::Atom | O::Sust | O::Sured => (Order::Chained, access(true), memory_latency(space)),
        O::Tex | O::Tld4 | O::Suld => (Order::Free, None, TEXTURE_LATENCY),
        O::Bra | O::Brx | O::Exit | O::Ret | O::Trap | O::Brkpt | O::Call | O::Bar | O::Barrier => return PINNED,
        O::Membar | O::Fence | O::Shfl | O::Vote | O::Match | O::Activemask | O::Redux => return PINNED,
        O::Mbarrier | O::Cp | O::Nanosleep | O::Alloca | O::Stackrestore | O::Stacksave => return PINNED,
        O::Rcp | O::Sqrt | O::Rsqrt | O::Sin | O::Cos | O::Ex2 | O::Lg2 => (Order::Free, None, SPECIAL_LATENCY),
        // Of moves, reads of special registers are left.
        O::Popc | O::Clz | O::Brev | O::Bfind | O::Mov => (Order::Free, None, SPECIAL_LATENCY),
        O::Cvt => (Order::Free, None, CONVERSION_LATENCY),
        _ if instruction.types.first() == Some(&T::F64) => (Order::Free, None, DOUBLE_LATENCY),
        _ => (Order::Free, None, PLAIN.latency),
    };
    Node { order, access, carries, latency }
}

impl Lowering {
    fn statements(&mut self, function: &Function, lines: &[Line]) {
        let statements = function.body.as_ref().map(|body| &body.statements[..]).unwrap_or_default();
        let mut places = vec![0u32; function.labels.len()];
        let mut tables: BTreeMap<LabelId, u32> = BTreeMap::new();
        let mut lists: Vec<&[LabelId]> = Vec::new();
        for statement in statements {
            if let Statement::BranchTargets { table, targets, .. } = statement {
                tables.insert(*table, lists.len() as u32);
                lists.push(targets);
            }
        }
        let mut lines = lines.iter();
        for statement in statements {
            match statement {
                Statement::Label(label) => {
                    places[label.index()] = self.operations.uses.len() as u32;
                    self.held.clear();
                }
                Statement::Instruction(_) => {
                    if let Some(line) = lines.next() {
                        self.line(line, &tables);
                    }
                }
                _ => {}
            }
        }
        self.push(Uses::default(), PINNED, Flow::Exit { conditional: false });
        for flow in &mut self.operations.flows {
            if let Flow::Branch { target, .. } = flow {
                *target = places[*target as usize];
            }
        }
        let places_of = |list: &&[LabelId]| list.iter().map(|label| places[label.index()]).collect();
        self.operations.tables = lists.iter().map(places_of).collect();
    }

    fn push(&mut self, uses: Uses, node: Node, flow: Flow) {
        self.operations.uses.push(uses);
        self.operations.nodes.push(node);
        self.operations.flows.push(flow);
    }

    fn new_register(&mut self, width: Width) -> u32 {
        self.operations.widths.push(width);
        (self.operations.widths.len() - 1) as u32
    }

    /// A new register that is written here from no other.
    fn filled(&mut self, width: Width) -> u32 {
        let register = self.new_register(width);
        self.push(Uses { writes: [register].as_slice().into(), ..Uses::default() }, PLAIN, Flow::Next);
        register
    }

    /// A register of this block for a value that is in none.
    fn hold(&mut self, register: u32) -> u32 {
        if let Some(held) = self.held.get(&register) {
            return *held;
        }
        let held = self.filled(self.operations.widths[register as usize]);
        self.held.insert(register, held);
        held
    }

    /// The registers that the machine's instruction reads for one of PTX. It takes one operand that is in no register.
    fn sources(&mut self, line: &Line) -> Uses {
        let mut uses = Uses { guarded: line.instruction.guard.is_some(), ..Uses::default() };
        let opcode = line.instruction.opcode;
        let is_memory = matches!(opcode, O::Ld | O::Ldu | O::St | O::Atom | O::Red);
        for register in &line.addresses {
            match self.values.resolve(*register) {
                (bank, Value::Bank) => uses.reads.push(self.hold(bank)),
                (_, Value::Literal) => {}
                (own, _) => uses.reads.push(own),
            }
        }
        let mut elsewhere = 0;
        for register in &line.reads {
            let (own, value) = self.values.resolve(*register);
            match value {
                Value::Own | Value::Same(_) => uses.reads.push(own),
                Value::Scaled(index) => {
                    if line.reads.iter().any(|other| self.values.resolve(*other).1 == Value::Bank) {
                        let factor = self.factor.unwrap_or_else(|| self.filled(Width::One));
                        self.factor = Some(factor);
                        uses.reads.push(factor);
                    }
                    match self.values.resolve(index) {
                        (index, Value::Own) => uses.reads.push(index),
                        _ => elsewhere += 1,
                    }
                }
                Value::Literal | Value::Bank => {
                    elsewhere += 1;
                    let is_stored = is_memory && value == Value::Bank;
                    if is_stored || (elsewhere > 1 && !matches!(opcode, O::Call | O::Shfl)) {
                        uses.reads.push(self.hold(own));
                    }
                }
            }
        }
        uses.reads.extend(line.instruction.guard.map(|guard| guard.register.0));
        uses.reads.sort_unstable();
        uses.reads.dedup();
        uses
    }

    fn line(&mut self, line: &Line, tables: &BTreeMap<LabelId, u32>) {
        let instruction = line.instruction;
        let written = line.writes.iter().copied().filter(|register| self.values.is_written(*register));
        let written: smallvec::SmallVec<[u32; 4]> = written.collect();
        if line.is_pure() && written.is_empty() {
            return;
        }
        let mut uses = self.sources(line);
        uses.writes.extend(written);
        let (hidden, is_function) = hidden_words(instruction);
        let mut node = node(instruction);
        if is_function {
            node = PINNED;
        }
        if hidden > 0 {
            let temporaries: Vec<u32> = (0..hidden).map(|_| self.new_register(Width::One)).collect();
            let first = Uses { writes: temporaries.as_slice().into(), ..uses.clone() };
            self.push(first, Node { latency: SPECIAL_LATENCY, ..node }, Flow::Next);
            uses.reads.extend(temporaries);
        }
        let conditional = instruction.guard.is_some();
        let operand = |index: usize| instruction.operands.get(index).map(|operand| &operand.kind);
        let flow = match (instruction.opcode, operand(0), operand(1)) {
            (O::Bra, Some(OperandKind::Label(label)), _) => Flow::Branch { target: label.0, conditional },
            (O::Brx, _, Some(OperandKind::Label(label))) => match tables.get(label) {
                Some(table) => Flow::Table { table: *table, conditional },
                None => Flow::Next,
            },
            (O::Exit | O::Ret | O::Trap, ..) => Flow::Exit { conditional },
            _ => Flow::Next,
        };
        self.operations.calls |= instruction.opcode == O::Call;
        self.push(uses, node, flow);
        if flow != Flow::Next {
            self.held.clear();
        }
    }
}
