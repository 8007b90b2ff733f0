//! Units handed over in the middle of a run: each is saved, and a freshly built one goes on from its state.
//!
//! It shows that a state is whole: a run with hand-overs has the same results as one without them.

use super::state::{CodeSource, StateError, complete_payload, restore_state, save_state};
use super::unit::Unit;
use balar_protocol::{Message, SimTime};
use std::sync::Arc;

/// When units are handed over, and to whom.
#[derive(Default)]
pub struct HandOver {
    /// Times, in order; a hand-over happens at the first end of a value epoch after each that has anything to do.
    pub at: Arc<[SimTime]>,
    /// Another unit of the same parameters and wires, by unit; `None` where the unit stays.
    pub twins: Vec<Option<Box<dyn Unit>>>,
    /// The code that states name.
    pub codes: Option<Arc<dyn CodeSource + Send + Sync>>,
}

/// When a shard hands over next.
#[derive(Clone, Default)]
pub(super) struct Schedule {
    at: Arc<[SimTime]>,
    codes: Option<Arc<dyn CodeSource + Send + Sync>>,
    done: usize,
}

impl Schedule {
    pub fn new(at: Arc<[SimTime]>, codes: Option<Arc<dyn CodeSource + Send + Sync>>) -> Schedule {
        Schedule { at, codes, done: 0 }
    }

    /// Is there anything to hand over before `start`?
    #[inline]
    pub fn is_due(&self, start: SimTime) -> bool {
        self.at.get(self.done).is_some_and(|&at| at <= start)
    }

    /// Hand-overs that were due before `start` are done.
    pub fn done(&mut self, start: SimTime) {
        self.done = self.at.partition_point(|&at| at <= start);
    }

    /// `unit` and its twin change places, the twin with the unit's state.
    pub fn swap(&self, unit: &mut Box<dyn Unit>, twin: &mut Box<dyn Unit>) -> Result<(), StateError> {
        let state = unit.save()?;
        match &self.codes {
            Some(codes) => twin.restore(&state, codes.as_ref())?,
            None => twin.restore(&state, &())?,
        }
        std::mem::swap(unit, twin);
        Ok(())
    }

    /// A message written and read back.
    pub fn copy(&self, message: &Message) -> Result<Message, StateError> {
        let mut copy: Message = restore_state(&save_state(message)?)?;
        match &self.codes {
            Some(codes) => complete_payload(&mut copy.payload, codes.as_ref())?,
            None => complete_payload(&mut copy.payload, &())?,
        }
        Ok(copy)
    }
}
