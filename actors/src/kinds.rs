//! Every kind of unit that comes with the simulator.

use crate::catalogue::{BadDefault, UnitDefinition};
use crate::gpu::{copy_engine, crossbar, cta_scheduler, gmmu, hbm_stack, l2_slice, sm, sm_network};
use crate::host_cpu;
use crate::node::{host_memory, link, migration_link, unified_memory_driver};
use crate::prototyping::PASS_THROUGH;

/// Every kind of unit that a topology can name. It is a static: of a constant, each crate that names it would compile all units' parameters.
pub static UNITS: &[&UnitDefinition] = &[
    &host_cpu::DEFINITION,
    &host_memory::DEFINITION,
    &link::DEFINITION,
    &migration_link::DEFINITION,
    &unified_memory_driver::DEFINITION,
    &cta_scheduler::DEFINITION,
    &copy_engine::DEFINITION,
    &sm::DEFINITION,
    &sm_network::DEFINITION,
    &gmmu::DEFINITION,
    &crossbar::DEFINITION,
    &l2_slice::DEFINITION,
    &hbm_stack::DEFINITION,
    &PASS_THROUGH,
];

/// The built-in kinds and `own`, which topologies can name then.
///
/// # Errors
///
/// Two kinds of one name, and a default that the unit's own declaration refuses.
pub fn with(own: &[&'static UnitDefinition]) -> Result<Vec<&'static UnitDefinition>, KindError> {
    let mut kinds = UNITS.to_vec();
    for &kind in own {
        if kinds.iter().any(|other| other.name == kind.name) {
            return Err(KindError::SameName(kind.name));
        }
        if let Some(default) = kind.bad_default() {
            return Err(default.into());
        }
        kinds.push(kind);
    }
    Ok(kinds)
}

/// Why a kind of unit cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// There is one of this name.
    #[error("two kinds of units have the name `{0}`")]
    SameName(&'static str),
    /// A topology that leaves the parameter out could not be built.
    #[error(transparent)]
    BadDefault(#[from] BadDefault),
}

/// Does this kind of unit come with the simulator? Whatever else a topology names is its user's own.
pub fn is_built_in(kind: &UnitDefinition) -> bool {
    UNITS.iter().any(|own| own.name == kind.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{BuildError, ParameterSet, nothing};

    crate::parameters! {
        /// A queue.
        struct QueueParameters {
            /// entries
            #[range(1..=64)]
            entries: u32 = "8",
            /// cycles
            #[range(..=100)]
            latency: u32 = "120",
        }
    }

    crate::parameters! {
        /// A queue with a default of another type.
        struct WordyParameters {
            /// entries
            #[range(1..=64)]
            entries: u32 = r#""eight""#,
        }
    }

    const QUEUE: UnitDefinition = UnitDefinition {
        name: "Queue",
        summary: "a queue",
        parameters: QueueParameters::DEFINITIONS,
        check: QueueParameters::check,
        ports: &[],
        counters: &[],
        provides: nothing,
        weight: 2,
        build: |_, _| Err(BuildError::Parameters(Vec::new())),
    };

    #[test]
    fn the_defaults_of_all_built_in_units_are_in_their_ranges() {
        let bad: Vec<String> = UNITS.iter().filter_map(|kind| kind.bad_default()).map(|bad| bad.to_string()).collect();
        assert!(bad.is_empty(), "{bad:?}");
    }

    #[test]
    fn a_bad_default_is_found_when_its_unit_is_registered() {
        let text = |kind| with(&[kind]).expect_err("the default is refused").to_string();
        const WORDY: UnitDefinition =
            UnitDefinition { parameters: WordyParameters::DEFINITIONS, check: WordyParameters::check, ..QUEUE };
        assert_eq!(
            text(&QUEUE),
            "Queue: the default of the parameter `latency` is 120: expected at most 100, found 120"
        );
        assert!(
            text(&WORDY).starts_with("Queue: the default of the parameter `entries` is \"eight\": expected u32: "),
            "{}",
            text(&WORDY)
        );
    }

    #[test]
    fn no_two_kinds_have_one_name() {
        assert_eq!(with(&[&PASS_THROUGH]).err(), Some(KindError::SameName("PassThrough")));
    }
}
