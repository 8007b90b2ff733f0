//! Functions that can call themselves: registers that they need after such a call are saved to their frame before it.

use super::{Decoded, Decoder, Pending, Slot, timing};
use crate::control_flow::{Flow, Graph};
use crate::execution::Space;
use crate::interpreter::bodies::functions;
use crate::interpreter::call::PredicateToValue;
use crate::interpreter::compare::TestNonZero;
use crate::liveness::{LiveSet, liveness};
use crate::liveness::{Uses, Width};
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::PtxErrorKind;
use crate::ptx::error::RawError;
use crate::ptx::source::Span;
use std::collections::BTreeMap;

const LOGIC: timing::Cost = (Pipe::Int, LatencyClass::Predicate, CountClass::Other, 1);

impl Decoder<'_> {
    /// Puts stores before, and loads after, the calls of the selected function that may come back to it, for the registers that are read
    /// after the call.
    pub(super) fn save_registers(&mut self) -> Decoded<()> {
        let own = self.cycles[self.current];
        let recurs = |pending: &Pending| {
            own.is_recursive && pending.callees.iter().any(|callee| self.cycles[*callee].number == own.number)
        };
        if !self.pending.iter().any(recurs) {
            return Ok(());
        }
        let calls: Vec<bool> = self.pending.iter().map(recurs).collect();
        let live = self.live_after(&calls);
        let mut offsets: BTreeMap<u32, i64> = BTreeMap::new();
        let former = std::mem::take(&mut self.pending);
        let mut places = Vec::with_capacity(former.len() + 1);
        for (pc, pending) in former.into_iter().enumerate() {
            places.push(self.pending.len() as u32);
            if !calls[pc] {
                self.pending.push(pending);
                continue;
            }
            let span = pending.span;
            for &register in &live[&pc] {
                let offset = match offsets.get(&register) {
                    Some(offset) => *offset,
                    None => {
                        let bytes = if self.widths[register as usize] == Width::Two { 8 } else { 4 };
                        let offset = self.frame.take(Some(bytes), bytes as u32).ok_or_else(|| {
                            let message = format!("{} saves too many registers", self.function.name);
                            RawError::new(PtxErrorKind::Limit, span, message)
                        })?;
                        offsets.insert(register, i64::from(offset));
                        i64::from(offset)
                    }
                };
                self.save(span, register, offset);
            }
            self.pending.push(pending);
            for register in &live[&pc] {
                self.restore(span, *register, offsets[register]);
            }
        }
        places.push(self.pending.len() as u32);
        for pending in &mut self.pending {
            if let Flow::Branch { target, .. } = &mut pending.flow {
                *target = places[*target as usize];
                pending.instruction.target = *target;
            }
        }
        for target in self.tables.iter_mut().flatten() {
            *target = places[*target as usize];
        }
        Ok(())
    }

    /// The registers that are live after each of these instructions.
    fn live_after(&self, wanted: &[bool]) -> BTreeMap<usize, Vec<u32>> {
        let flows: Vec<Flow> = self.pending.iter().map(|pending| pending.flow).collect();
        let graph = Graph::new(&flows, &self.tables);
        let uses: Vec<Uses> = self.pending.iter().map(Pending::uses).collect();
        let edges = liveness(&graph, &uses, self.widths.len());
        let mut found = BTreeMap::new();
        let mut live = LiveSet::new(&self.widths);
        for block in 0..graph.len() {
            let range = graph.starts[block] as usize..graph.starts[block + 1] as usize;
            if !wanted[range.clone()].contains(&true) {
                continue;
            }
            live.clear();
            edges.live_out(block).for_each(|register| live.insert(register));
            for pc in range.rev() {
                if wanted[pc] {
                    found.insert(pc, live.sorted());
                }
                live.step_back(&uses[pc]);
            }
        }
        found
    }

    fn stack_access(&mut self, span: Span, kind: Kind, register: u32, offset: i64) {
        let wide = self.widths[register as usize] == Width::Two;
        self.start(span, timing::access(false, kind == Kind::Load));
        let last = self.last();
        last.instruction.kind = kind;
        last.instruction.offset = offset;
        last.instruction.memory = MemoryForm {
            space: Some(Space::Local),
            element_bytes: if wide { 8 } else { 4 },
            wide: [wide; 4],
            short_address: true,
            ..MemoryForm::NONE
        };
        last.sources[0] = Slot::Frame;
        if kind == Kind::Store {
            last.sources[1] = Slot::Register(register);
        } else {
            last.destinations[0] = Slot::Register(register);
        }
    }

    fn save(&mut self, span: Span, register: u32, offset: i64) {
        let mut value = register;
        if self.widths[register as usize] == Width::Predicate {
            value = self.new_register(Width::One);
            self.start(span, LOGIC);
            let last = self.last();
            last.instruction.functions = functions::<PredicateToValue>();
            last.predicate_sources[0] = Slot::Register(register);
            last.destinations[0] = Slot::Register(value);
        }
        self.stack_access(span, Kind::Store, value, offset);
    }

    fn restore(&mut self, span: Span, register: u32, offset: i64) {
        if self.widths[register as usize] != Width::Predicate {
            self.stack_access(span, Kind::Load, register, offset);
            return;
        }
        let value = self.new_register(Width::One);
        self.stack_access(span, Kind::Load, value, offset);
        self.start(span, LOGIC);
        let last = self.last();
        last.instruction.functions = functions::<TestNonZero>();
        last.sources[0] = Slot::Register(value);
        last.predicate_destinations[0] = Slot::Register(register);
    }
}
