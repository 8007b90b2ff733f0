//! The things that the simulation hands to the units that it builds.

use super::InstructionProfiles;
use super::timeline::Timeline;
use crate::engine::LiveBoard;
use crate::memory::DeviceMemory;
use balar_protocol::GpuDescription;
use serde::de::DeserializeOwned;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The parts of a node beside its units. Each unit takes the parts that it needs from here while it is built, and nothing afterwards.
#[derive(Default)]
pub struct Surroundings {
    /// The GPUs in the order of the topology.
    pub gpus: Vec<GpuDescription>,
    /// The memories of all of them, and the host window.
    pub memory: Option<Arc<DeviceMemory>>,
    /// The progress that units show while they run: the same board that the run's options name.
    pub board: LiveBoard,
    /// The place for the counts of each instruction, in a run that asks for them.
    pub instruction_profiles: Option<Arc<InstructionProfiles>>,
    /// Do units keep the fates of launches, for watchers of the run?
    pub watches_launches: bool,
    /// The place for the activity of units over time, in a run that asks for it.
    pub timeline: Option<Arc<Timeline>>,
    /// Parts for one kind of unit alone, by their types.
    gifts: Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>>,
    /// What units share with others while they are built, by its type.
    shared: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// The parameters that were read last, with their text: the units of a row have the same.
    parameters: Mutex<Option<(String, Arc<dyn Any + Send + Sync>)>>,
}

impl Surroundings {
    /// A node with these GPUs and memories, which shows its progress on `board`.
    pub fn new(gpus: Vec<GpuDescription>, memory: Option<Arc<DeviceMemory>>, board: LiveBoard) -> Surroundings {
        Surroundings {
            gpus,
            memory,
            board,
            instruction_profiles: None,
            watches_launches: false,
            timeline: None,
            gifts: Mutex::default(),
            shared: Mutex::default(),
            parameters: Mutex::default(),
        }
    }

    /// The parameters that `text` says.
    ///
    /// # Errors
    ///
    /// The mistake in the text.
    pub fn parameters<P: DeserializeOwned + Any + Send + Sync>(&self, text: &str) -> ron::error::SpannedResult<Arc<P>> {
        let mut last = self.parameters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, parameters)) = &*last
            && known == text
            && let Ok(parameters) = Arc::clone(parameters).downcast()
        {
            return Ok(parameters);
        }
        let parameters: Arc<P> = Arc::new(ron::from_str(text)?);
        *last = Some((text.to_owned(), Arc::clone(&parameters) as Arc<dyn Any + Send + Sync>));
        Ok(parameters)
    }

    /// The GPU (index, description) whose part is `part`.
    pub fn gpu(&self, part: &str) -> Option<(usize, &GpuDescription)> {
        self.gpus.iter().enumerate().find(|(_, gpu)| gpu.part == part)
    }

    /// The one value of this type that all units of the node share.
    ///
    /// What units tell each other in it must not depend on the order in which they are built, nor change once the run has begun.
    pub fn shared<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let value = shared.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(value).downcast().unwrap_or_default()
    }

    /// Leaves `gift` for the first unit that takes one of its type: the host CPU's program, say.
    pub fn give<T: Any + Send>(&self, gift: T) {
        let mut gifts = self.gifts.lock().unwrap_or_else(PoisonError::into_inner);
        gifts.insert(TypeId::of::<T>(), Box::new(gift));
    }

    /// Takes the part of this type; `None` where there was none, or another unit has taken it.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let mut gifts = self.gifts.lock().unwrap_or_else(PoisonError::into_inner);
        gifts.remove(&TypeId::of::<T>())?.downcast().ok().map(|gift| *gift)
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("gpus", &self.gpus).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_once_for_each_text_and_type() {
        let surroundings = Surroundings::default();
        let one: Arc<u32> = surroundings.parameters("1").expect("a number");
        assert!(Arc::ptr_eq(&one, &surroundings.parameters("1").expect("a number")));
        assert_eq!(*surroundings.parameters::<u64>("1").expect("of another type"), 1);
        assert_eq!(*surroundings.parameters::<u64>("2").expect("another text"), 2);
        assert!(surroundings.parameters::<u64>("(").is_err());
    }

    #[test]
    fn what_is_shared_is_one_value_of_a_type() {
        let surroundings = Surroundings::default();
        let one: Arc<Mutex<u32>> = surroundings.shared();
        *one.lock().expect("nobody panicked") = 7;
        let other: Arc<Mutex<u32>> = surroundings.shared();
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(*surroundings.shared::<Mutex<u64>>().lock().expect("nobody panicked"), 0);
    }

    #[test]
    fn a_gift_is_taken_once_and_by_its_type() {
        let surroundings = Surroundings::default();
        surroundings.give(7_u32);
        surroundings.give("text");
        assert_eq!((surroundings.take::<u64>(), surroundings.take::<u32>()), (None, Some(7)));
        assert_eq!((surroundings.take::<u32>(), surroundings.take::<&str>()), (None, Some("text")));
    }
}
