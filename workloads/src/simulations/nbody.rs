//! `nbody`: gravity between all pairs of bodies.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_within, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Bodies of a tile in shared memory, and threads of a block.
const TILE: u32 = 128;
const SOFTENING: f32 = 0.01;
const TIME_STEP: f32 = 0.001;
/// Error of a velocity, as a part of the largest: the device sums in single precision with an approximate reciprocal
/// square root (2^-22.9), the host in double precision.
const TOLERANCE: f64 = 1e-5;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "nbody",
    summary: "gravity between all pairs of bodies, tiled in shared memory; bound by arithmetic and square roots",
    parameters: &[integer("bodies", 512, 1, 1 << 20, "bodies"), integer("steps", 2, 1, 10_000, "time steps"), SEED],
    code: code!("nbody"),
    cubins: cubins!("nbody"),
    small: "bodies=200,steps=1",
    build,
};

struct Cloud {
    bodies: Vec<[f32; 4]>,
    steps: u32,
    result: Transfer,
    velocities: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let count = parameters.small("bodies");
    let steps = parameters.small("steps");
    let values = uniform_floats(parameters.integer("seed"), 0, 4 * count as usize);
    let body = |values: &[f32]| [values[0], values[1], values[2], (values[3].abs() + 0.5) / count as f32];
    let bodies: Vec<[f32; 4]> = values.chunks_exact(4).map(body).collect();
    let bytes = u64::from(count) * 16;

    let mut script = Script::default();
    let device_bodies = script.allocate_with(bodies.as_flattened());
    let velocities = script.allocate(bytes);
    script.fill(velocities, 0, bytes, Queue::Default);
    let shape = Shape::linear(count.div_ceil(TILE), TILE);
    let (bodies_argument, velocities_argument) = (Argument::Buffer(device_bodies), Argument::Buffer(velocities));
    for _ in 0..steps {
        let (softening, time_step) = (Argument::F32(SOFTENING), Argument::F32(TIME_STEP));
        let arguments = [bodies_argument, velocities_argument, Argument::U32(count), softening, time_step];
        script.launch("accelerate", shape, &arguments);
        script.launch("drift", shape, &[bodies_argument, velocities_argument, Argument::U32(count), time_step]);
    }
    let [result, device_velocities] =
        [device_bodies, velocities].map(|buffer| script.download(buffer, bytes, Queue::Default));
    script.release(device_bodies);
    script.release(velocities);
    script.finish(Cloud { bodies, steps, result, velocities: device_velocities })
}

impl Cloud {
    /// The bodies after all steps, and their velocities.
    fn expected(&self) -> (Vec<[f64; 4]>, Vec<[f64; 4]>) {
        let mut bodies: Vec<[f64; 4]> = self.bodies.iter().map(|body| body.map(f64::from)).collect();
        let mut velocities = vec![[0.0f64; 4]; bodies.len()];
        let (softening, time_step) = (f64::from(SOFTENING), f64::from(TIME_STEP));
        for _ in 0..self.steps {
            for (velocity, own) in velocities.iter_mut().zip(&bodies) {
                let mut sum = [0.0f64; 3];
                for other in &bodies {
                    let [dx, dy, dz] = [0, 1, 2].map(|axis| other[axis] - own[axis]);
                    let inverse = 1.0 / (dx * dx + dy * dy + dz * dz + softening).sqrt();
                    let pull = other[3] * inverse * inverse * inverse;
                    for (sum, distance) in sum.iter_mut().zip([dx, dy, dz]) {
                        *sum += distance * pull;
                    }
                }
                for (velocity, sum) in velocity.iter_mut().zip(sum) {
                    *velocity += sum * time_step;
                }
            }
            for (body, velocity) in bodies.iter_mut().zip(&velocities) {
                for (place, velocity) in body.iter_mut().zip(velocity) {
                    *place += velocity * time_step;
                }
            }
        }
        (bodies, velocities)
    }
}

impl Check for Cloud {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let (bodies, velocities) = self.expected();
        for (name, transfer, expected) in [("place", self.result, bodies), ("velocity", self.velocities, velocities)] {
            let actual = outcome.values::<f32>(transfer, 4 * expected.len())?;
            let part =
                |index: usize| format!("{} of the {name} of body {}", ["x", "y", "z", "w"][index % 4], index / 4);
            compare_within(TOLERANCE, expected.as_flattened(), actual.iter().map(|value| f64::from(*value)), part)?;
        }
        Ok(())
    }
}
