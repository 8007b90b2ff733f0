//! `hotspot`: the temperature of a chip over time.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

const TILE: u32 = 16;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "hotspot",
    summary: "temperature of a chip: a five-point stencil, several time steps in shared memory a launch",
    parameters: &[
        integer("size", 512, 1, 16_384, "rows and columns of the grid"),
        integer("iterations", 4, 1, 10_000, "time steps"),
        integer("steps", 2, 1, 7, "time steps of one launch, the width of a tile's ghost zone"),
        Parameter {
            name: "precision",
            domain: Domain::Choice(&["single", "mixed"]),
            meaning: "mixed: differences are of double precision, as by a constant of double precision in the source",
        },
        SEED,
    ],
    code: code!("hotspot"),
    cubins: cubins!("hotspot"),
    small: "size=64",
    build,
};

/// Coefficients of a time step.
#[derive(Clone, Copy)]
struct Coefficients {
    per_capacity: f32,
    conductance_x: f32,
    conductance_y: f32,
    conductance_z: f32,
    ambient: f32,
}

impl Coefficients {
    /// A silicon chip of 16 mm x 16 mm x 0.5 mm in `size` x `size` cells; each power of a cell is in watts.
    fn new(size: u32) -> Self {
        let (edge, thickness) = (0.016f64, 0.0005f64);
        // Thermal conductivity in W/(m K), volumetric heat capacity in J/(m^3 K) of silicon.
        let (conductivity, capacity) = (100.0f64, 1.75e6f64);
        let cell = edge / f64::from(size);
        let lateral = conductivity * thickness;
        let vertical = conductivity * cell * cell / thickness;
        let cell_capacity = capacity * thickness * cell * cell;
        // Explicit Euler is stable where the time step is below capacity / sum of conductances; take half of that.
        let time_step = 0.5 * cell_capacity / (4.0 * lateral + vertical);
        Coefficients {
            per_capacity: (time_step / cell_capacity) as f32,
            conductance_x: lateral as f32,
            conductance_y: lateral as f32,
            conductance_z: vertical as f32,
            ambient: 80.0,
        }
    }

    /// A cell's temperature after a time step, from the sums of its vertical and its horizontal neighbours and its power.
    #[inline(always)]
    fn single(self, center: f32, [vertical, horizontal]: [f32; 2], power: f32) -> f32 {
        let vertical = center.mul_add(-2.0, vertical);
        let horizontal = center.mul_add(-2.0, horizontal);
        let mut flow = vertical.mul_add(self.conductance_y, power);
        flow = horizontal.mul_add(self.conductance_x, flow);
        flow = (self.ambient - center).mul_add(self.conductance_z, flow);
        self.per_capacity.mul_add(flow, center)
    }

    /// The same with differences of double precision.
    #[inline(always)]
    fn mixed(self, center: f32, [vertical, horizontal]: [f32; 2], power: f32) -> f32 {
        let exact = f64::from(center);
        let vertical = exact.mul_add(-2.0, f64::from(vertical));
        let horizontal = exact.mul_add(-2.0, f64::from(horizontal));
        let mut flow = vertical.mul_add(f64::from(self.conductance_y), f64::from(power));
        flow = horizontal.mul_add(f64::from(self.conductance_x), flow);
        flow += f64::from((self.ambient - center) * self.conductance_z);
        f64::from(self.per_capacity).mul_add(flow, exact) as f32
    }

    /// One time step of one row, with the kernel's order of operations. At the top and bottom of the chip, `north` and
    /// `south` are the row itself.
    #[inline(always)]
    fn step(
        self,
        arithmetic: impl Fn(Coefficients, f32, [f32; 2], f32) -> f32,
        [north, row, south]: [&[f32]; 3],
        power: &[f32],
        result: &mut [f32],
    ) {
        let last = row.len() - 1;
        for column in 0..=last {
            let center = row[column];
            let vertical = north[column] + south[column];
            let horizontal = row[column.saturating_sub(1)] + row[(column + 1).min(last)];
            result[column] = arithmetic(self, center, [vertical, horizontal], power[column]);
        }
    }
}

struct Temperatures {
    power: Vec<f32>,
    initial: Vec<f32>,
    size: usize,
    iterations: u32,
    coefficients: Coefficients,
    is_mixed: bool,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let is_mixed = parameters.choice("precision") == "mixed";
    let iterations = parameters.small("iterations");
    let seed = parameters.integer("seed");
    let count = size as usize * size as usize;
    // Cells dissipate up to 100 W / cm^2 in all; they start between 80 and 100 degrees.
    let full_power = 1e6 * 0.016 * 0.016 / count as f32;
    let power: Vec<f32> = uniform_floats(seed, 0, count).iter().map(|x| (x + 1.0) * 0.5 * full_power).collect();
    let initial: Vec<f32> = uniform_floats(seed, 1, count).iter().map(|x| 90.0 + 10.0 * x).collect();
    let coefficients = Coefficients::new(size);

    let mut script = Script::default();
    let device_power = script.allocate_with(&power);
    let mut from = script.allocate_with(&initial);
    let bytes = count as u64 * 4;
    let mut to = script.allocate(bytes);
    let mut done = 0;
    while done < iterations {
        let steps = parameters.small("steps").min(iterations - done);
        let blocks = size.div_ceil(TILE - 2 * steps);
        let arguments = [
            Argument::Buffer(device_power),
            Argument::Buffer(from),
            Argument::Buffer(to),
            Argument::U32(size),
            Argument::U32(size),
            Argument::U32(steps),
            Argument::F32(coefficients.per_capacity),
            Argument::F32(coefficients.conductance_x),
            Argument::F32(coefficients.conductance_y),
            Argument::F32(coefficients.conductance_z),
            Argument::F32(coefficients.ambient),
        ];
        let kernel = if is_mixed { "hotspot_mixed" } else { "hotspot" };
        script.launch(kernel, Shape::planar([blocks; 2], [TILE; 2]), &arguments);
        std::mem::swap(&mut from, &mut to);
        done += steps;
    }
    let result = script.download(from, bytes, Queue::Default);
    for buffer in [device_power, from, to] {
        script.release(buffer);
    }
    script.finish(Temperatures { power, initial, size: size as usize, iterations, coefficients, is_mixed, result })
}

with_fused_multiply_add! {
    /// The temperatures after all iterations.
    fn expected_temperatures(chip: &Temperatures) -> Vec<f32> {
        let size = chip.size;
        let mut now = chip.initial.clone();
        let mut next = vec![0.0f32; now.len()];
        for _ in 0..chip.iterations {
            for row in 0..size {
                let line = |row: usize| &now[row * size..][..size];
                let lines = [line(row.saturating_sub(1)), line(row), line((row + 1).min(size - 1))];
                let (power, result) = (&chip.power[row * size..][..size], &mut next[row * size..][..size]);
                match chip.is_mixed {
                    false => chip.coefficients.step(Coefficients::single, lines, power, result),
                    true => chip.coefficients.step(Coefficients::mixed, lines, power, result),
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now
    }
}

impl Check for Temperatures {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let size = self.size;
        let actual = outcome.values::<f32>(self.result, size * size)?;
        let expected = expected_temperatures(self);
        compare_exactly(expected.into_iter(), &actual, |index| format!("cell ({}, {})", index / size, index % size))
    }
}
