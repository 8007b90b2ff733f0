//! `bandwidth`: bandwidth of the levels of memory over the working set, after the kernels of the Roofline Toolkit.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Buffer, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

/// Bytes that a warp reads at a time: 8 bytes for each lane, four times.
const CHUNK_BYTES: u64 = 1 << 10;
/// Elements at each end of the working set whose values are checked.
const CHECKED: u64 = 4096;
/// Dynamic shared memory that every GPU gives a block without being asked to.
const SHARED_BYTES: u64 = 48 << 10;
/// Up to here single precision has all whole numbers.
const EXACT_SUM: u64 = 1 << 24;
/// Bytes that an update of an element reads and writes.
const UPDATE_BYTES: f64 = 16.0;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bandwidth",
    summary: "bandwidth of the levels of memory: a working set that is read or updated again and again",
    parameters: &[
        Parameter {
            name: "kernel",
            domain: Domain::Choice(&["read", "inside", "outside", "shared"]),
            meaning: "read: each block reads a part of it, and in the next trial its neighbour's; inside: each thread updates its elements (a = a / 2 + 1) in trials within the \
                      kernel; outside: the same with a launch for each trial; shared: as inside, in shared memory",
        },
        Parameter {
            name: "working_set",
            domain: Domain::Bytes { value: 1 << 20, minimum: 128, maximum: 8 << 30 },
            meaning: "bytes; of reads a multiple of 1 KiB, otherwise of 8",
        },
        integer("trials", 2, 1, 1 << 24, "times that the working set is read or updated; twice as many are timed, too"),
        integer("blocks", 224, 1, 65_535, "blocks of the grid"),
        integer("threads", 64, 32, 1024, "threads of a block, a multiple of 32"),
        SEED,
    ],
    code: code!("bandwidth": clang 35, nvrtc 60, nvrtc 70, nvcc 75, clang 70),
    cubins: cubins!("bandwidth"),
    small: "kernel=read,working_set=5KiB,trials=2,blocks=3,threads=64",
    build,
};

/// The kernel, its working set and its grid.
#[derive(Clone, Copy)]
struct Sweep {
    kernel: &'static str,
    bytes: u64,
    trials: u32,
    blocks: u32,
    threads: u32,
}

impl Sweep {
    fn elements(&self) -> u64 {
        self.bytes / 8
    }

    fn warps(&self) -> u64 {
        u64::from(self.threads) / 32
    }

    fn chunks(&self) -> u64 {
        self.bytes / CHUNK_BYTES
    }

    /// Chunks that a warp reads in a trial: its share of the working set, one at least.
    fn visits(&self) -> u64 {
        self.chunks().div_ceil(u64::from(self.blocks) * self.warps())
    }

    /// Elements of a block in shared memory.
    fn part(&self) -> u64 {
        self.elements().div_ceil(u64::from(self.blocks))
    }

    /// Bytes that are read and written in a trial.
    fn bytes_per_trial(&self) -> f64 {
        match self.kernel {
            "read" => (u64::from(self.blocks) * self.warps() * self.visits() * CHUNK_BYTES) as f64,
            _ => self.elements() as f64 * UPDATE_BYTES,
        }
    }

    /// Trials of the launch that is not timed.
    fn first_trials(&self) -> u32 {
        if self.kernel == "read" { self.trials } else { 1 }
    }

    fn inconsistent(&self) -> Option<String> {
        let Sweep { kernel, bytes, threads, .. } = self;
        let unit = if *kernel == "read" { CHUNK_BYTES } else { 8 };
        if !threads.is_multiple_of(32) {
            Some(format!("threads={threads} is no multiple of 32"))
        } else if bytes % unit != 0 {
            Some(format!("working_set={bytes} is no multiple of {unit} bytes"))
        } else if *kernel == "shared" && self.part() * 8 > SHARED_BYTES {
            Some(format!(
                "working_set={bytes} is {} bytes for each of {} blocks, which have {SHARED_BYTES} of shared memory",
                self.part() * 8,
                self.blocks
            ))
        } else if *kernel == "read" && self.visits() * u64::from(self.trials) * 2 * 8 > EXACT_SUM {
            Some(format!(
                "trials={} of working_set={bytes} make sums that single precision cannot hold exactly",
                self.trials
            ))
        } else {
            None
        }
    }
}

struct Sweeps {
    sweep: Sweep,
    /// The words that are read.
    words: Vec<f32>,
    ends: Vec<(u64, u64, Transfer)>,
}

/// Words whose sums by a warp are exact: zeros and ones, in a pattern that differs from chunk to chunk.
fn words(seed: u64, bytes: u64) -> Vec<f32> {
    integers(seed, 0, (bytes / 4) as usize).into_iter().map(|bits| (bits & 1) as f32).collect()
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let sweep = Sweep {
        kernel: parameters.choice("kernel"),
        bytes: parameters.integer("working_set"),
        trials: parameters.small("trials"),
        blocks: parameters.small("blocks"),
        threads: parameters.small("threads"),
    };
    if let Some(message) = sweep.inconsistent() {
        return Err(WorkloadError::Inconsistent { workload: DESCRIPTOR.name, message });
    }
    let mut script = Script::default();
    if sweep.kernel == "read" {
        let words = words(parameters.integer("seed"), sweep.bytes);
        let data = script.allocate_with(&words);
        let threads = u64::from(sweep.blocks * sweep.threads);
        let sums = script.allocate(threads * 4);
        time(&mut script, &sweep, &[data, sums]);
        let transfer = script.download(sums, threads * 4, Queue::Default);
        script.release(data);
        script.release(sums);
        return script.finish(Sweeps { sweep, words, ends: vec![(0, threads, transfer)] });
    }
    let data = script.allocate(sweep.bytes);
    script.fill(data, 0, sweep.bytes, Queue::Default);
    time(&mut script, &sweep, &[data]);
    let mut end =
        |first: u64, count: u64| (first, count, script.download_at(data, first * 8, count * 8, Queue::Default));
    let elements = sweep.elements();
    let mut ends = vec![end(0, elements.min(CHECKED))];
    if elements > CHECKED {
        let first = CHECKED.max(elements - CHECKED);
        ends.push(end(first, elements - first));
    }
    script.release(data);
    script.finish(Sweeps { sweep, words: Vec::new(), ends })
}

/// Trials that bring the working set into the caches (as many as are timed, where a launch does not leave them as it found them), then
/// `trials`, then twice as many: the difference is the time of `trials` without the cost of a launch.
fn time(script: &mut Script, sweep: &Sweep, buffers: &[Buffer]) {
    launch(script, sweep, buffers, sweep.first_trials());
    script.synchronize(Queue::Default);
    script.read_clock();
    for trials in [sweep.trials, 2 * sweep.trials] {
        launch(script, sweep, buffers, trials);
        script.synchronize(Queue::Default);
        script.read_clock();
    }
}

fn launch(script: &mut Script, sweep: &Sweep, buffers: &[Buffer], trials: u32) {
    let shape = Shape::linear(sweep.blocks, sweep.threads);
    let data = Argument::Buffer(buffers[0]);
    let elements = Argument::U32(sweep.elements() as u32);
    match sweep.kernel {
        "read" => {
            let (chunks, visits) = (sweep.chunks(), sweep.visits());
            let (shift, stride) = (sweep.warps() % chunks, sweep.warps() * u64::from(sweep.blocks) % chunks);
            let numbers = [chunks, shift, stride, visits, u64::from(trials)];
            let numbers = numbers.map(|number| Argument::U32(number as u32));
            let arguments = [&[data, Argument::Buffer(buffers[1])][..], &numbers].concat();
            script.launch("bandwidth_read", shape, &arguments);
        }
        "shared" => {
            let part = sweep.part() as u32;
            let shape = Shape { shared_memory_bytes: part * 8, ..shape };
            let arguments = [data, elements, Argument::U32(part), Argument::U32(trials)];
            script.launch("bandwidth_shared", shape, &arguments);
        }
        "outside" => {
            for _ in 0..trials {
                script.launch("bandwidth_update", shape, &[data, elements, Argument::U32(1)]);
            }
        }
        _ => script.launch("bandwidth_update", shape, &[data, elements, Argument::U32(trials)]),
    }
}

impl Sweeps {
    /// The sums of a block's threads in the last launch.
    fn sums(&self, block: u64) -> Vec<f32> {
        let sweep = &self.sweep;
        let (chunks, warps) = (sweep.chunks(), sweep.warps());
        let (shift, stride) = (warps % chunks, warps * u64::from(sweep.blocks) % chunks);
        let trials = 2 * u64::from(sweep.trials);
        let of_chunk = |chunk: u64, lane: u64| -> f32 {
            let words = (0..4).map(|part| (chunk * 256 + part * 64 + lane * 2) as usize);
            words.map(|word| self.words[word] + self.words[word + 1]).sum()
        };
        // All sums are whole numbers, and so exact in any order. After a round of trials a warp is where it was.
        let round = chunks / greatest_common_divisor(chunks, shift);
        let sum = |warp: u64, lane: u64, trials: u64| -> f32 {
            let first = |trial: u64| (block * warps + warp + trial * shift) % chunks;
            let visited = (0..trials)
                .flat_map(|trial| (0..sweep.visits()).map(move |visit| (first(trial) + visit * stride) % chunks));
            visited.map(|chunk| of_chunk(chunk, lane)).sum()
        };
        let lanes = (0..warps).flat_map(|warp| (0..32).map(move |lane| (warp, lane)));
        let of_lane = |(warp, lane)| {
            let rest = sum(warp, lane, trials % round);
            if trials < round { rest } else { (trials / round) as f32 * sum(warp, lane, round) + rest }
        };
        lanes.map(of_lane).collect()
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

impl Check for Sweeps {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        for (first, count, transfer) in &self.ends {
            if self.sweep.kernel == "read" {
                let actual = outcome.values::<f32>(*transfer, *count as usize)?;
                // Some blocks stand for all.
                let threads = u64::from(self.sweep.threads);
                for block in [0, u64::from(self.sweep.blocks) / 2, u64::from(self.sweep.blocks) - 1] {
                    let first = block * threads;
                    let found = &actual[first as usize..(first + threads) as usize];
                    let expected = self.sums(block).into_iter();
                    compare_exactly(expected, found, |index| format!("sums[{}]", first + index as u64))?;
                }
            } else {
                let actual = outcome.values::<f64>(*transfer, *count as usize)?;
                // Beyond some dozens of trials nothing changes.
                let trials = (u64::from(self.sweep.first_trials()) + 3 * u64::from(self.sweep.trials)).min(4096);
                let expected = (0..trials).fold(0.0, |value: f64, _| 0.5f64.mul_add(value, 1.0));
                let expected = std::iter::repeat_n(expected, *count as usize);
                compare_exactly(expected, &actual, |index| format!("a[{}]", first + index as u64))?;
            }
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let bytes = self.sweep.bytes_per_trial();
        let mut measurements = vec![Measurement { name: "bytes_per_trial", value: bytes, unit: "byte" }];
        if let [begin, middle, end] = outcome.times[..]
            && middle > begin
        {
            let (once, twice) = ((middle - begin) as f64, (end - middle) as f64);
            let bytes = bytes * f64::from(self.sweep.trials);
            measurements.push(Measurement { name: "host_time", value: once / 1e3, unit: "ns" });
            measurements.push(Measurement { name: "host_bandwidth", value: bytes / once * 1e3, unit: "GB/s" });
            if twice > once {
                let sustained = bytes / (twice - once) * 1e3;
                measurements.push(Measurement { name: "sustained_bandwidth", value: sustained, unit: "GB/s" });
            }
        }
        measurements
    }
}
