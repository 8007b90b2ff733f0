//! Kernels that access pinned and managed memory.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::Call;
use balar_tests::built_in;
use balar_tests::steps::{Argument, Steps, call, download, launch, upload};

const BLOCKS: u32 = 64;
const THREADS: u32 = 256;
const BYTES: u64 = (BLOCKS * THREADS) as u64 * 4;

/// Each thread writes twice the word that it reads.
const DOUBLE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry double(.param .u64 from, .param .u64 to) {
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d1, %d3;
    add.s64 %d5, %d2, %d3;
    ld.global.u32 %r4, [%d4];
    shl.b32 %r4, %r4, 1;
    st.global.u32 [%d5], %r4;
    ret;
}
";

#[test]
fn pinned_memory_is_reached_over_the_link_and_managed_memory_on_the_device() {
    let words: Vec<u32> = (0..BLOCKS * THREADS).map(|n| n * 3 + 1).collect();
    let data = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (pinned, device, managed) = (0, 1, 2);
    let double = |from, to| launch("double", [BLOCKS, 1], [THREADS, 1], &[Argument::Value(from), Argument::Value(to)]);
    let (program, seen) = Steps::new(vec![
        call(Call::MallocHost { bytes: BYTES }),
        call(Call::Malloc { bytes: BYTES }),
        call(Call::MallocManaged { bytes: BYTES }),
        upload(pinned, data),
        double(pinned, device),
        double(device, managed),
        double(managed, pinned),
        call(Call::DeviceSynchronize),
        download(device, BYTES),
        download(managed, BYTES),
        download(pinned, BYTES),
    ]);
    let node = built_in("v100_node");
    let result = simulate_program(&node, "host_memory", ("double.ptx", DOUBLE), program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    let seen = seen.lock().expect("the run is over");
    for (copy, factor) in [2, 4, 8].into_iter().enumerate() {
        assert_eq!(seen.words(copy), words.iter().map(|word| word * factor).collect::<Vec<_>>());
    }
    let times: Vec<u64> = result.statistics.kernels.iter().map(|kernel| kernel.end_ps - kernel.start_ps).collect();
    // The link moves 15.75 bytes a nanosecond in each direction.
    let least = BYTES * 1_000_000 / 15_750;
    assert!(times[0] > least && times[2] > least, "reads and writes of {BYTES} bytes over the link: {times:?}");
    assert!(times[1] < least, "memory of the device is faster: {times:?}");
}
