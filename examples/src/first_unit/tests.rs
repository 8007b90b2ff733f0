//! The unit alone, on a bench that holds it to the rules. Its clock is 1 GHz, so that a cycle is 1 ns.

use super::DEFINITION;
use balar_actors::prototyping::{MemoryBench, load, store};

#[test]
fn everything_passes_after_the_latency() {
    let mut bench = MemoryBench::new(&DEFINITION, r#"clock: "1 GHz", latency: 5"#);
    bench.request(100, load(7, 0x100, 4)).request(120, store(8, 0x200, 32)).server_answers_after(50);
    let played = bench.run();
    // Each leaves 5 ns after it has come, and is answered 50 ns after that; the answer takes 5 ns, too.
    let requests: Vec<_> = played.requests().iter().map(|(at, request)| (*at, request.line)).collect();
    assert_eq!(requests, [(105, 0x100), (125, 0x200)]);
    let responses: Vec<_> = played.responses().iter().map(|(at, response)| (*at, response.id)).collect();
    assert_eq!(responses, [(160, 7), (180, 8)]);
    assert_eq!(played.counter("requests"), 2);
}
