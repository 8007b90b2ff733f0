//! The spans of tracing, as a subscriber of this process sees them: one for each CUDA call, launch, copy and batch of faults, with its facts.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_experiments::run_overridden;
use balar_tests::{parameters, run};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_global_default;
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, registry};

/// A span.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    /// The name of the span around it.
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
    has_ended: bool,
}

impl Seen {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or_else(|| panic!("no {name}: {self:?}"), String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.field(name).parse().unwrap_or_else(|_| panic!("{name} is no number: {self:?}"))
    }
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// All spans, in the order in which they began, and which of them have the numbers that are in use.
#[derive(Debug, Default)]
struct Spans {
    all: Vec<Seen>,
    open: BTreeMap<u64, usize>,
}

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Spans>>);

impl Collector {
    fn lock(&self) -> MutexGuard<'_, Spans> {
        self.0.lock().expect("nobody panics")
    }

    /// The spans since it was asked last.
    fn take(&self) -> Vec<Seen> {
        let mut spans = self.lock();
        assert!(spans.open.is_empty(), "{spans:?}");
        std::mem::take(&mut spans.all)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("it has just begun");
        let parent = span.parent().map(|parent| parent.name());
        let mut seen = Seen { name: span.name(), parent, ..Seen::default() };
        attributes.record(&mut seen);
        let mut spans = self.lock();
        let place = spans.all.len();
        spans.open.insert(id.into_u64(), place);
        spans.all.push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.lock();
        let place = spans.open[&id.into_u64()];
        values.record(&mut spans.all[place]);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut spans = self.lock();
        let place = spans.open.remove(&id.into_u64()).expect("it is open");
        spans.all[place].has_ended = true;
    }
}

/// The spans of a name; all have ended within the run.
fn of<'a>(spans: &'a [Seen], name: &str) -> Vec<&'a Seen> {
    let found: Vec<&Seen> = spans.iter().filter(|span| span.name == name).collect();
    for span in &found {
        assert!(span.has_ended && span.parent == Some("run"), "{span:?}");
        assert!(span.number("begin_picoseconds") <= span.number("end_picoseconds"), "{span:?}");
    }
    found
}

/// 5000 elements of 4 bytes in blocks of 128: two copies of 20,000 bytes, a launch of 40 CTAs, and a copy back.
fn one_span_for_each_call_launch_and_copy(collector: &Collector, threads: usize) {
    let options = RunOptions { threads, ..RunOptions::default() };
    let result = run("v100_node", "vectoradd", parameters("elements=5000,block=128"), options);
    assert_eq!(result.verified(), Some(true));
    let spans = collector.take();

    let runs: Vec<&Seen> = spans.iter().filter(|span| span.name == "run").collect();
    assert_eq!(runs.len(), 1);
    let run = runs[0];
    assert_eq!((run.parent, run.field("topology")), (Some("simulation"), "v100_node"));
    assert_eq!((run.number("threads"), run.number("end_picoseconds")), (threads as u64, result.sim_time.0));

    let launches = of(&spans, "kernel_launch");
    assert_eq!(launches.len(), 1, "{launches:?}");
    let launch = launches[0];
    for (field, value) in [
        ("kernel", "vectorAdd"),
        ("launch", "0"),
        ("process", "0"),
        ("gpu", "gpu"),
        ("stream", "0"),
        ("ctas", "40"),
        ("detail", "timed"),
        ("completed", "true"),
    ] {
        assert_eq!(launch.field(field), value, "{field}");
    }
    assert!(!launch.fields.contains_key("launched_by"), "the host has launched it");
    let record = result.statistics.kernels.iter().next().expect("a launch");
    assert_eq!(launch.number("begin_picoseconds"), record.start_ps);
    assert_eq!((launch.number("end_picoseconds"), launch.number("cycles")), (record.end_ps, record.cycles));
    assert!(launch.number("received_picoseconds") <= record.start_ps);

    let copies = of(&spans, "copy");
    let facts: Vec<_> = copies.iter().map(|copy| (copy.field("direction"), copy.number("bytes"))).collect();
    assert_eq!(facts, [("host to device", 20_000), ("host to device", 20_000), ("device to host", 20_000)]);
    for (number, copy) in copies.iter().enumerate() {
        let found = (copy.number("copy"), copy.field("process"), copy.field("gpu"));
        assert_eq!(found, (number as u64, "0", "0"));
        assert!(!copy.fields.contains_key("error"), "{copy:?}");
    }
    assert!(copies[1].number("end_picoseconds") <= launch.number("begin_picoseconds"), "copies come before the kernel");
    assert!(copies[2].number("begin_picoseconds") >= launch.number("end_picoseconds"));

    let calls = of(&spans, "cuda_call");
    let named = |name: &str| calls.iter().copied().filter(|call| call.field("call") == name).collect::<Vec<_>>();
    assert_eq!(named("cudaLaunchKernel").len(), 1);
    assert_eq!(named("cudaLaunchKernel")[0].field("kernel"), "vectorAdd");
    for (name, bytes) in [("cudaMalloc", Some(20_000)), ("cudaMemcpy", Some(20_000)), ("cudaFree", None)] {
        let found = named(name);
        assert_eq!(found.len(), 3, "{name}");
        for call in found {
            assert_eq!(call.fields.get("bytes").map(|_| call.number("bytes")), bytes, "{call:?}");
        }
    }
    assert_eq!(calls.len() as u64, counted(&result, "cpu", "calls"));
}

fn counted(result: &RunResult, unit: &str, counter: &str) -> u64 {
    result.sum(unit, counter).unwrap_or_else(|| panic!("no counter {counter}"))
}

/// The pages of 4 KiB that the trace of `p1` on a GTX 1080 Ti shows for each fault: 4 and 60 KiB twice, 4 and 124 KiB, and so on.
fn one_span_for_each_batch_of_faults(collector: &Collector) {
    let parameters = [("pattern", "p1"), ("memory", "managed")];
    let overrides = [("unified_memory.initial_residency", "Nowhere")];
    let options = RunOptions { threads: 2, ..RunOptions::default() };
    let result = run_overridden(options, "gtx1080ti_node", "page_touch", &parameters, &overrides, &[]);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let spans = collector.take();
    let batches = of(&spans, "fault_batch");
    assert_eq!(batches.len() as u64, counted(&result, "unified_memory", "batches"));
    assert!(batches.iter().all(|batch| batch.field("gpu") == "0" && batch.number("faults") >= batch.number("pages")));
    let moved: Vec<u64> = batches.iter().map(|batch| batch.number("pages_moved")).filter(|pages| *pages > 0).collect();
    assert_eq!(moved, [16, 16, 32, 64, 128, 256]);
}

/// One test, since all spans of a process come to the same subscriber.
#[test]
fn each_thing_has_a_span_of_its_own() {
    let collector = Collector::default();
    let subscriber = registry().with(collector.clone()).with(LevelFilter::DEBUG);
    set_global_default(Dispatch::new(subscriber)).expect("the first one");
    for threads in [1, 2] {
        one_span_for_each_call_launch_and_copy(&collector, threads);
    }
    one_span_for_each_batch_of_faults(&collector);
}
