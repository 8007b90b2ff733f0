//! `montecarlo`: the price of an option by simulated paths, and points inside a circle.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::numeric::compare_within;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

/// Threads of a block.
const BLOCK: u32 = 256;
const SPOT: f32 = 100.0;
const STRIKE: f32 = 105.0;
/// (interest - volatility^2 / 2) * years, and volatility * sqrt(years): 2 % interest, 30 % volatility, one year.
const DRIFT: f32 = 0.02 - 0.045;
const VOLATILITY: f32 = 0.3;
/// Error of a block's sum: the functions of single precision have a few units in the last place each.
const TOLERANCE: f64 = 2e-6;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "montecarlo",
    summary: "random paths for the price of an option (logarithms, exponentials, sines) and points in a circle",
    parameters: &[
        integer("blocks", 8, 1, 65_535, "thread blocks of 256 threads"),
        integer("draws", 8, 1, 1 << 20, "pairs of paths, and points, of each thread"),
    ],
    code: code!("montecarlo"),
    cubins: cubins!("montecarlo"),
    small: "blocks=2,draws=2",
    build,
};

struct Paths {
    blocks: u32,
    draws: u32,
    sums: Transfer,
    inside: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (blocks, draws) = (parameters.small("blocks"), parameters.small("draws"));
    let mut script = Script::default();
    let device_sums = script.allocate(u64::from(blocks) * 8);
    let device_inside = script.allocate(8);
    script.fill(device_inside, 0, 8, Queue::Default);
    let shape = Shape::linear(blocks, BLOCK);
    let market = [SPOT, STRIKE, DRIFT, VOLATILITY].map(Argument::F32);
    let arguments = [Argument::Buffer(device_sums), Argument::U32(draws), market[0], market[1], market[2], market[3]];
    script.launch("priceOption", shape, &arguments);
    script.launch("countInside", shape, &[Argument::Buffer(device_inside), Argument::U32(draws)]);
    let sums = script.download(device_sums, u64::from(blocks) * 8, Queue::Default);
    let inside = script.download(device_inside, 8, Queue::Default);
    script.release(device_sums);
    script.release(device_inside);
    script.finish(Paths { blocks, draws, sums, inside })
}

/// The kernel's random numbers.
fn draw(thread: u32, number: u32) -> u32 {
    let first =
        thread.wrapping_mul(0x9e37_79b9).wrapping_add(number.wrapping_mul(0x85eb_ca6b)).wrapping_add(0x5bd1_e995);
    (0..2).fold(first, |value, _| {
        let value = (value ^ value >> 16).wrapping_mul(0x85eb_ca6b);
        let value = (value ^ value >> 13).wrapping_mul(0xc2b2_ae35);
        value ^ value >> 16
    })
}

impl Paths {
    /// The payoffs of one block's paths.
    fn payoffs(&self, block: u32) -> f64 {
        let unit = |bits: u32| f64::from((bits >> 8) + 1) / 16_777_216.0;
        let mut sum = 0.0;
        for thread in block * BLOCK..(block + 1) * BLOCK {
            for path in 0..self.draws {
                let radius = (-2.0 * unit(draw(thread, 2 * path)).ln()).sqrt();
                let angle = 2.0 * std::f64::consts::PI * unit(draw(thread, 2 * path + 1));
                for normal in [radius * angle.cos(), radius * angle.sin()] {
                    let price = f64::from(SPOT) * (f64::from(DRIFT) + f64::from(VOLATILITY) * normal).exp();
                    sum += (price - f64::from(STRIKE)).max(0.0);
                }
            }
        }
        sum
    }

    fn points_inside(&self) -> u64 {
        let is_inside = |thread: u32, point: u32| {
            let bits = draw(thread ^ 0x5555_5555, point);
            let (x, y) = (u64::from(bits & 0xffff), u64::from(bits >> 16));
            x * x + y * y < 65_535 * 65_535
        };
        let threads = 0..self.blocks * BLOCK;
        threads.flat_map(|thread| (0..self.draws).map(move |point| u64::from(is_inside(thread, point)))).sum()
    }
}

impl Check for Paths {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let inside = outcome.values::<u64>(self.inside, 1)?[0];
        let expected = self.points_inside();
        if inside != expected {
            return Err(format!("{inside} points are inside instead of {expected}"));
        }
        let sums = outcome.values::<f64>(self.sums, self.blocks as usize)?;
        let expected: Vec<f64> = (0..self.blocks).map(|block| self.payoffs(block)).collect();
        compare_within(TOLERANCE, &expected, sums.iter().copied(), |block| format!("payoffs of block {block}"))
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let draws = f64::from(self.blocks * BLOCK) * f64::from(self.draws);
        let sum: f64 = outcome.values::<f64>(self.sums, self.blocks as usize).map_or(0.0, |sums| sums.iter().sum());
        let inside = outcome.values::<u64>(self.inside, 1).map_or(0, |inside| inside[0]);
        vec![
            Measurement { name: "mean_payoff", value: sum / (2.0 * draws), unit: "currency" },
            Measurement { name: "pi", value: 4.0 * inside as f64 / draws, unit: "1" },
        ]
    }
}
