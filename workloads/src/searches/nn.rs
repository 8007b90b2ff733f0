//! `nn`: the places nearest to a point.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const LATITUDE: f32 = 30.0;
const LONGITUDE: f32 = 90.0;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "nn",
    summary: "nearest neighbours: the distance of each of many records from one place, with a square root",
    parameters: &[
        integer("records", 42_764, 1, 1 << 26, "records"),
        integer("block", 256, 32, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("nn"),
    cubins: cubins!("nn"),
    small: "records=3000,block=128",
    build,
};

with_fused_multiply_add! {
    fn distances(places: &[f32]) -> Vec<f32> {
        let distance = |place: &[f32]| {
            let (north, east) = (LATITUDE - place[0], LONGITUDE - place[1]);
            north.mul_add(north, east * east).sqrt()
        };
        places.chunks_exact(2).map(distance).collect()
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (records, block) = (parameters.small("records"), parameters.small("block"));
    let mut places = uniform_floats(parameters.integer("seed"), 0, records as usize * 2);
    for place in places.chunks_exact_mut(2) {
        place[0] *= 90.0;
        place[1] *= 180.0;
    }
    let mut script = Script::default();
    let device_places = script.allocate_with(&places);
    let device_distances = script.allocate(u64::from(records) * 4);
    let arguments = [
        Argument::Buffer(device_places),
        Argument::Buffer(device_distances),
        Argument::U32(records),
        Argument::F32(LATITUDE),
        Argument::F32(LONGITUDE),
    ];
    script.launch("nn_distances", Shape::linear(records.div_ceil(block), block), &arguments);
    let result = script.download(device_distances, u64::from(records) * 4, Queue::Default);
    for buffer in [device_places, device_distances] {
        script.release(buffer);
    }
    let mut comparisons = Comparisons::default();
    comparisons.add(result, "the distance of record", distances(&places));
    script.finish(comparisons)
}
