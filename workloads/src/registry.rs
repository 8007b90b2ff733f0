//! The workloads by name.

use crate::call::HostProgram;
use crate::parameters::{Parameter, Parameters, Suggestion, WorkloadError};

/// Describes a workload: its name, parameters, code and host program.
#[derive(Debug)]
pub struct Descriptor {
    /// Its name.
    pub name: &'static str,
    /// One line: what it computes.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Its PTX by compute capability (60 for sm_60), ascending.
    pub ptx: &'static [(u32, &'static str)],
    /// Makes its host program. An error where the values do not go together.
    pub build: fn(&Parameters) -> Result<Box<dyn HostProgram>, WorkloadError>,
}

impl Descriptor {
    /// The PTX for a device: that of the greatest compute capability that the device has.
    pub fn ptx_for(&self, compute_capability: u32) -> Option<&'static str> {
        let fitting = self.ptx.iter().rev().find(|(capability, _)| *capability <= compute_capability);
        fitting.map(|(_, text)| *text)
    }

    /// All parameters, from keys and values; those not named have their defaults.
    pub fn parameters_from<'text>(
        &self,
        settings: impl IntoIterator<Item = (&'text str, &'text str)>,
    ) -> Result<Parameters, WorkloadError> {
        Parameters::new(self.name, self.parameters, settings)
    }

    /// All parameters, from text such as `size=256,iterations=2`, which may be empty.
    pub fn parse_parameters(&self, text: &str) -> Result<Parameters, WorkloadError> {
        let settings = text.split(',').map(str::trim).filter(|setting| !setting.is_empty());
        let pairs = settings.map(|setting| {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| WorkloadError::NotKeyValue { workload: self.name, text: setting.to_owned() })?;
            Ok((key.trim(), value.trim()))
        });
        self.parameters_from(pairs.collect::<Result<Vec<_>, _>>()?)
    }

    /// The host program with these parameters, which this descriptor made.
    pub fn program(&self, parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
        (self.build)(parameters)
    }
}

static WORKLOADS: [Descriptor; 10] = [
    crate::vectoradd::DESCRIPTOR,
    crate::lud::DESCRIPTOR,
    crate::reduction::DESCRIPTOR,
    crate::gemm::DESCRIPTOR,
    crate::hotspot::DESCRIPTOR,
    crate::concurrent::DESCRIPTOR,
    crate::pointer_chase::DESCRIPTOR,
    crate::stream::DESCRIPTOR,
    crate::shared_chase::DESCRIPTOR,
    crate::alu_latency::DESCRIPTOR,
];

/// All workloads.
pub fn workloads() -> &'static [Descriptor] {
    &WORKLOADS
}

/// Lower case, without underscores: `PointerChase` and `pointer_chase` are the same name.
fn normalised(name: &str) -> String {
    name.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// The workload of a name. Case and underscores do not matter, so that a topology can write `VectorAdd`.
pub fn find(name: &str) -> Result<&'static Descriptor, WorkloadError> {
    let wanted = normalised(name);
    WORKLOADS.iter().find(|workload| normalised(workload.name) == wanted).ok_or_else(|| {
        WorkloadError::UnknownWorkload {
            name: name.to_owned(),
            suggestion: Suggestion::new(name, WORKLOADS.iter().map(|workload| workload.name)),
        }
    })
}

/// The PTX of a workload, as built for each compute capability.
macro_rules! ptx {
    ($name:literal) => {
        &[
            (60, include_str!(concat!("../", $name, "/", $name, ".sm_60.ptx"))),
            (70, include_str!(concat!("../", $name, "/", $name, ".sm_70.ptx"))),
        ]
    };
}
pub(crate) use ptx;

/// The parameter that seeds a workload's inputs.
pub(crate) const SEED: Parameter = Parameter {
    name: "seed",
    domain: crate::parameters::Domain::Integer { value: 1, minimum: 0, maximum: u64::MAX },
    meaning: "seed of the inputs",
};

/// A parameter that is a whole number.
pub(crate) const fn integer(
    name: &'static str,
    value: u64,
    minimum: u64,
    maximum: u64,
    meaning: &'static str,
) -> Parameter {
    Parameter { name, domain: crate::parameters::Domain::Integer { value, minimum, maximum }, meaning }
}
