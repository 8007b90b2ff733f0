//! Cost of one window over 140 units that do nothing but wake, and of a message.

use balar_actors::engine::{
    Inbox, NextWake, Outbox, Outcome, Placement, RunOptions, Simulation, Unit, UnitEntry, Window, Wire, run,
};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Payload, PortId, SimTime, UnitId};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

const UNITS: u32 = 140;
const LATENCY: SimTime = SimTime(15_000);

/// Sends `messages` in every window that it is awake in, and receives as many.
struct Idler {
    awake: bool,
    messages: u32,
    received: u64,
}

impl Unit for Idler {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            self.received += u64::from(message.port.0);
        }
        if !self.awake {
            return NextWake::OnMessage;
        }
        for _ in 0..self.messages {
            out.send(PortId(0), window.start, Payload::Custom([self.received, 0, 0]));
        }
        NextWake::At(window.until)
    }

    fn statistics(&self, _: &mut StatisticSink) {}

    fn outstanding(&self) -> Option<String> {
        None
    }
}

/// Runs `windows` windows, and returns the wall-clock time of the run.
#[expect(clippy::disallowed_types, reason = "a benchmark measures wall-clock time")]
fn windows(windows: u64, threads: usize, awake: u32, messages: u32) -> Duration {
    let every = UNITS / awake;
    let units = (0..UNITS).map(|unit| {
        let wires = vec![Wire { unit: UnitId((unit + 1) % UNITS), port: PortId(0), latency: LATENCY }];
        let behaviour = Idler { awake: unit % every == 0 && unit / every < awake, messages, received: 0 };
        UnitEntry { path: format!("unit[{unit}]"), unit: Box::new(behaviour), wires, weight: 1 }
    });
    let simulation = Simulation { units: units.collect(), ..Simulation::default() };
    let stop_at = Some(SimTime(LATENCY.0 * windows));
    // Shuffled: neighbours live in different shards as often as not.
    let options = RunOptions { threads, stop_at, placement: Placement::Shuffled(1), ..RunOptions::default() };
    let start = std::time::Instant::now();
    let report = run(simulation, options).expect("the network is sound");
    let wall = start.elapsed();
    assert_eq!((report.windows, report.outcome), (windows, Outcome::StoppedAt));
    black_box(wall)
}

fn engine_window(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine_window");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for threads in [1, 2] {
        for (awake, messages) in [(20, 0), (140, 0), (20, 16), (140, 16)] {
            let name =
                BenchmarkId::new(format!("{threads} shards"), format!("{awake} awake, {messages} messages each"));
            group.bench_function(name, |bencher| {
                // The start and the end of a run are spread over its windows.
                bencher.iter_custom(|count| windows(count.max(1), threads, awake, messages));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, engine_window);
criterion_main!(benches);
