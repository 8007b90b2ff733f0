//! The unit in a node: a program runs to its end with the right result, and the unit does something.

use balar_examples::UNITS;
use balar_experiments::run;

const TOPOLOGY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/first_unit.ron");

#[test]
fn a_program_runs_through_the_unit() {
    let result = run(TOPOLOGY, "vectoradd", &[("elements", "4096")], UNITS).expect("it runs");
    // A warp of 32 elements loads two lines and stores one: 128 warps make 384 requests, beside those for code.
    let requests = result.sum("gpu.first_unit", "requests").expect("the unit counts them");
    assert!(requests >= 384, "{requests} requests");
}
