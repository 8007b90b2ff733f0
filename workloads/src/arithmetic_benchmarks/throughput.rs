//! `throughput`: arithmetic throughput over the operations on each element, after the kernels of the Roofline Toolkit.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::numeric::compare_exactly;
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "throughput",
    summary: "arithmetic throughput: chains of multiply-adds on each element that is read and written",
    parameters: &[
        Parameter {
            name: "precision",
            domain: Domain::Choice(&["fp64", "fp32", "fp16", "tensor"]),
            meaning: "fp16: two halves in an instruction; tensor: products of 16 x 16 halves on tensor cores, summed in single precision",
        },
        integer(
            "flops",
            64,
            2,
            1 << 20,
            "operations on an element, two for a multiply-add; of tensor cores a multiple of 32",
        ),
        Parameter {
            name: "chains",
            domain: Domain::Choice(&["1", "2", "4", "8"]),
            meaning: "independent chains of a thread: parallelism within it",
        },
        integer("blocks", 224, 1, 65_535, "blocks of the grid"),
        integer("threads", 64, 32, 1024, "threads of a block, a multiple of 32: parallelism between them"),
        integer("passes", 1, 1, 1 << 16, "elements of a chain, one after another; twice as many are timed, too"),
    ],
    code: code!("throughput": clang 35, nvrtc 60, nvrtc 70, nvcc 75, clang 70),
    cubins: cubins!("throughput"),
    small: "precision=fp64,flops=6,chains=2,blocks=3,threads=64",
    build,
};

/// Operations of tensor cores on each of the 256 halves that a warp has: 16 x 16 x 16 multiply-adds.
const TENSOR_FLOPS: u32 = 2 * 16 * 16 * 16 / 256;
/// Elements at the start and end whose values are checked.
const CHECKED: u64 = 1 << 14;

/// The type of an element of the array, as the kernel accesses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Double,
    Single,
    /// Two halves.
    Half,
    /// Eight halves of a lane.
    Tensor,
}

impl Precision {
    fn named(name: &str) -> Precision {
        match name {
            "fp32" => Precision::Single,
            "fp16" => Precision::Half,
            "tensor" => Precision::Tensor,
            _ => Precision::Double,
        }
    }

    /// Bytes that a thread accesses at once.
    fn bytes(self) -> u64 {
        match self {
            Precision::Double => 8,
            Precision::Single | Precision::Half => 4,
            Precision::Tensor => 16,
        }
    }

    /// Elements of the precision in that.
    fn elements(self) -> u64 {
        match self {
            Precision::Double | Precision::Single => 1,
            Precision::Half => 2,
            Precision::Tensor => 8,
        }
    }
}

#[derive(Clone, Copy)]
struct Chains {
    name: &'static str,
    precision: Precision,
    flops: u32,
    chains: u32,
    blocks: u32,
    threads: u32,
    passes: u32,
}

impl Chains {
    /// Places of the array that the first launch accesses.
    fn places(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.threads) * u64::from(self.chains) * u64::from(self.passes)
    }

    /// Instructions of a chain on an element.
    fn steps(&self) -> u32 {
        self.flops / if self.precision == Precision::Tensor { TENSOR_FLOPS } else { 2 }
    }

    fn inconsistent(&self) -> Option<String> {
        let (flops, threads) = (self.flops, self.threads);
        if !threads.is_multiple_of(32) {
            Some(format!("threads={threads} is no multiple of 32"))
        } else if self.precision == Precision::Tensor && flops % TENSOR_FLOPS != 0 {
            Some(format!(
                "flops={flops} is no multiple of {TENSOR_FLOPS}, the operations of tensor cores on an element"
            ))
        } else if flops % 2 != 0 {
            Some(format!("flops={flops} is odd: a multiply-add is two"))
        } else if 3 * self.places() * self.precision.bytes() > 1 << 34 {
            Some("the elements need more than 16 GiB".to_owned())
        } else {
            None
        }
    }

    /// The factor of a place: whole quarters below one. All lanes of a warp have the same on tensor cores.
    fn factor(&self, place: u64) -> f64 {
        let index = if self.precision == Precision::Tensor { place / 32 } else { place };
        0.25 * (index % 3 + 1) as f64
    }

    /// The bytes at a place before the launch.
    fn before(&self, place: u64) -> Vec<u8> {
        let factor = self.factor(place);
        match self.precision {
            Precision::Double => factor.to_le_bytes().to_vec(),
            Precision::Single => (factor as f32).to_le_bytes().to_vec(),
            Precision::Half | Precision::Tensor => {
                half_bits(factor).to_le_bytes().repeat(self.precision.elements() as usize)
            }
        }
    }

    /// The bytes at a place after it.
    fn after(&self, place: u64) -> Vec<u8> {
        let factor = self.factor(place);
        let steps = 0..self.steps();
        match self.precision {
            Precision::Double => steps.fold(factor, |b, _| b.mul_add(factor, 1.0)).to_le_bytes().to_vec(),
            Precision::Single => {
                let factor = factor as f32;
                steps.fold(factor, |b, _| b.mul_add(factor, 1.0)).to_le_bytes().to_vec()
            }
            Precision::Half => {
                // A product of two halves and its sum with one are exact in double precision.
                let value = steps.fold(factor, |b, _| nearest_half(b.mul_add(factor, 1.0)));
                half_bits(value).to_le_bytes().repeat(2)
            }
            Precision::Tensor => {
                let each = (16.0 * factor * factor) as f32;
                let sum = steps.fold(0.0f32, |sum, _| sum + each);
                (sum + sum).to_le_bytes().repeat(4)
            }
        }
    }
}

/// The half nearest to a number from 2^-14 to 65504, the even one of two.
fn nearest_half(value: f64) -> f64 {
    let quantum = 2f64.powi(value.log2().floor() as i32 - 10);
    (value / quantum).round_ties_even() * quantum
}

/// The bits of a number from 2^-14 on that is a half.
fn half_bits(value: f64) -> u16 {
    let exponent = value.log2().floor();
    let fraction = (value / 2f64.powf(exponent) - 1.0) * 1024.0;
    (((exponent + 15.0) as u16) << 10) | fraction as u16
}

struct Launches {
    chains: Chains,
    /// The first place and the number of elements in each buffer, and the copy that brings them.
    ends: Vec<(u64, u64, Transfer)>,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let name = parameters.choice("precision");
    let chains = Chains {
        name,
        precision: Precision::named(name),
        flops: parameters.small("flops"),
        chains: parameters.choice("chains").parse().expect("the choices are numbers"),
        blocks: parameters.small("blocks"),
        threads: parameters.small("threads"),
        passes: parameters.small("passes"),
    };
    if let Some(message) = chains.inconsistent() {
        return Err(WorkloadError::Inconsistent { workload: DESCRIPTOR.name, message });
    }
    let mut script = Script::default();
    let shape = Shape::linear(chains.blocks, chains.threads);
    let kernel = format!("throughput_{}_{}", chains.name, chains.chains);
    // Each launch has data of its own, since it leaves results where the factors were. The first one brings the code into the caches.
    let buffers = [1, chains.passes, 2 * chains.passes].map(|passes| {
        let places = chains.places() / u64::from(chains.passes) * u64::from(passes);
        let data: Vec<u8> = (0..places).flat_map(|place| chains.before(place)).collect();
        (passes, places, script.allocate_with_bytes(data.into()))
    });
    for (index, (passes, _, data)) in buffers.into_iter().enumerate() {
        if index == 1 {
            script.read_clock();
        }
        let arguments = [Argument::Buffer(data), Argument::U32(passes), Argument::U32(chains.steps())];
        script.launch(&kernel, shape, &arguments);
        script.synchronize(Queue::Default);
        if index > 0 {
            script.read_clock();
        }
    }
    let mut ends = Vec::new();
    for (_, places, data) in buffers {
        let bytes = chains.precision.bytes();
        let count = places.min(CHECKED);
        for first in [0, places - count] {
            ends.push((first, count, script.download_at(data, first * bytes, count * bytes, Queue::Default)));
        }
        script.release(data);
    }
    script.finish(Launches { chains, ends })
}

impl Check for Launches {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        // Every third place has the same factor; on tensor cores every third warp.
        let period = if self.chains.precision == Precision::Tensor { 3 * 32 } else { 3 };
        let expected: Vec<Vec<u8>> = (0..period).map(|place| self.chains.after(place)).collect();
        for (first, count, transfer) in &self.ends {
            let actual = outcome.values::<u8>(*transfer, (count * self.chains.precision.bytes()) as usize)?;
            let places = *first..first + count;
            let bytes: Vec<u8> = places.flat_map(|place| &expected[(place % period) as usize]).copied().collect();
            let size = self.chains.precision.bytes();
            compare_exactly(bytes.into_iter(), &actual, |index| {
                format!("a[{}], its byte {}", first + index as u64 / size, index as u64 % size)
            })?;
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let chains = &self.chains;
        let elements = (chains.places() * chains.precision.elements()) as f64;
        let flops = elements * f64::from(chains.flops);
        let bytes = 2.0 * (chains.places() * chains.precision.bytes()) as f64;
        let mut measurements = vec![
            Measurement { name: "flops", value: flops, unit: "operation" },
            Measurement { name: "flops_per_byte", value: flops / bytes, unit: "operation/byte" },
        ];
        if let [begin, middle, end] = outcome.times[..]
            && middle > begin
        {
            let (once, twice) = ((middle - begin) as f64, (end - middle) as f64);
            measurements.push(Measurement { name: "host_time", value: once / 1e3, unit: "ns" });
            measurements.push(Measurement { name: "host_throughput", value: flops / once * 1e3, unit: "GFLOP/s" });
            if twice > once {
                let sustained = flops / (twice - once) * 1e3;
                measurements.push(Measurement { name: "sustained_throughput", value: sustained, unit: "GFLOP/s" });
            }
        }
        measurements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_eleven_bits() {
        assert_eq!([0.25, 0.5, 0.75, 1.0, 1.5].map(half_bits), [0x3400, 0x3800, 0x3a00, 0x3c00, 0x3e00]);
        let step = 1.0 / 1024.0;
        assert_eq!(nearest_half(1.0 + 0.4 * step), 1.0);
        assert_eq!(nearest_half(1.0 + 0.5 * step), 1.0);
        assert_eq!(nearest_half(1.0 + 1.5 * step), 1.0 + 2.0 * step);
        assert_eq!(nearest_half(3.0 + 1.2 * step), 3.0 + 2.0 * step);
    }
}
