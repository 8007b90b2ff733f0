//! `histogram`: counts of bytes by value.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const BINS: usize = 256;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "histogram",
    summary: "histogram of bytes in 256 bins: atomic additions in shared and in global memory",
    parameters: &[
        Parameter {
            name: "distribution",
            domain: Domain::Choice(&["uniform", "skewed"]),
            meaning: "values of the bytes: all alike, or mostly small, so that additions meet",
        },
        integer("words", 16_384, 1, 1 << 28, "words of four bytes"),
        integer("block", 256, 32, 1024, "threads of a block"),
        integer("blocks", 32, 1, 4096, "blocks of a launch"),
        SEED,
    ],
    code: code!("histogram"),
    cubins: cubins!("histogram"),
    small: "words=3000,block=128,blocks=6",
    build,
};

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [count, block, blocks] = ["words", "block", "blocks"].map(|name| parameters.small(name));
    let mut words = integers(parameters.integer("seed"), 0, count as usize);
    if parameters.choice("distribution") == "skewed" {
        // The bits of each byte that three draws share: seven in eight are zero.
        let draws = [1, 2].map(|stream| integers(parameters.integer("seed"), stream, count as usize));
        for (word, (second, third)) in words.iter_mut().zip(draws[0].iter().zip(&draws[1])) {
            *word &= second & third;
        }
    }
    let mut bins = vec![0u32; BINS];
    for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
        bins[usize::from(byte)] += 1;
    }

    let mut script = Script::default();
    let device_words = script.allocate_with(&words);
    let bin_bytes = BINS as u64 * 4;
    let device_bins = script.allocate(bin_bytes);
    let arguments = [Argument::Buffer(device_words), Argument::Buffer(device_bins), Argument::U32(count)];
    let mut comparisons = Comparisons::default();
    for kernel in ["histogram_shared", "histogram_global"] {
        script.fill(device_bins, 0, bin_bytes, Queue::Default);
        script.launch(kernel, Shape::linear(blocks, block), &arguments);
        let transfer = script.download(device_bins, bin_bytes, Queue::Default);
        comparisons.add(transfer, &format!("{kernel}: bin"), bins.clone());
    }
    for buffer in [device_words, device_bins] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
