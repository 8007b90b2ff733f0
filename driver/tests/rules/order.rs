//! Streams, events, host functions, graphs.

use super::play::*;
use balar_host::call::{Conditional, ConditionalKind, GraphNode};
use balar_host::{Call, CallResult, CudaError};

#[test]
fn a_stream_waits_for_an_event_of_another_device() {
    let first = vec![
        new_stream(),
        call(Call::EventCreate { timed: true }),
        call(launch(1)),
        call(Call::EventRecord { event: 1, stream: 1 }),
    ];
    let second = vec![
        call(Call::Compute { nanoseconds: 2000 }),
        new_stream(),
        call(Call::StreamWaitEvent { stream: 2, event: 1 }),
        call(launch(2)),
        call(Call::EventRecord { event: 1, stream: 2 }),
        call(launch(1)),
    ];
    let mut play = Play::new(Program::default().thread(0, first).thread(1, second), 2);
    play.finish();
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 1", "gpu 1: launch 2 stream 2"]);
    assert_eq!(play.trace[1].0, play.trace[0].0 + KERNEL, "when the event is recorded");
    // An event belongs to the device of its stream, and so do launches.
    let error = CallResult::Error(CudaError::InvalidResourceHandle);
    assert_eq!(play.results(1)[4..], [error.clone(), error]);
}

#[test]
fn a_stream_waits_for_a_host_function() {
    let play = run(vec![
        new_stream(),
        call(launch(1)),
        call(Call::HostFunction { stream: 1, function: 17 }),
        call(launch(1)),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::CallbackDone { function: 17 }),
    ]);
    assert_eq!(play.functions, [17]);
    assert_eq!(play.function_results, [CallResult::None]);
    // The function runs when the first kernel is done, and lets the second one begin at once.
    assert_eq!(play.trace[1].0 - play.trace[0].0, KERNEL);
    assert_eq!(play.results(0)[5], CallResult::Error(CudaError::InvalidValue), "it has run");
}

#[test]
fn streams_of_higher_priority_begin_first() {
    let stream = |priority| call(Call::StreamCreate { non_blocking: true, priority });
    let play = run(vec![
        stream(0),
        stream(-2),
        call(Call::EventCreate { timed: false }),
        new_stream(),
        call(launch(3)),
        call(Call::EventRecord { event: 1, stream: 3 }),
        call(Call::StreamWaitEvent { stream: 1, event: 1 }),
        call(Call::StreamWaitEvent { stream: 2, event: 1 }),
        call(launch(1)),
        call(launch(2)),
    ]);
    assert_eq!(play.words(), ["gpu 0: launch 1 stream 3", "gpu 0: launch 3 stream 2", "gpu 0: launch 2 stream 1"]);
    assert_eq!(play.launches.iter().map(|launch| launch.priority).collect::<Vec<_>>(), [0, -2, 0]);
}

#[test]
fn a_graph_runs_its_nodes_in_their_own_order() {
    let node = |call: Option<Call>, dependencies: &[u32]| GraphNode::of(call, dependencies.to_vec());
    let graph = |nodes| call(Call::GraphLaunch { nodes, conditions: Vec::new(), stream: 1 });
    // A kernel, two that wait for it, an empty node that waits for both, and a host function.
    let nodes = vec![
        node(Some(launch(0)), &[]),
        node(Some(launch(0)), &[0]),
        node(Some(launch(0)), &[0]),
        node(None, &[1, 2]),
        node(Some(Call::HostFunction { stream: 0, function: 4 }), &[3]),
        node(Some(Call::EventRecord { event: 1, stream: 0 }), &[4]),
    ];
    let bad = vec![node(None, &[]), node(None, &[1])];
    let missing = vec![node(Some(launch(0)), &[]), node(Some(Call::EventRecord { event: 8, stream: 0 }), &[])];
    let play = run(vec![
        new_stream(),
        call(Call::EventCreate { timed: true }),
        call(launch(1)),
        graph(nodes),
        call(launch(1)),
        call(Call::EventSynchronize { event: 1 }),
        call(Call::ReadClock),
        call(Call::StreamSynchronize { stream: 1 }),
        call(Call::ReadClock),
        graph(bad),
        graph(missing),
        graph(Vec::new()),
        call(Call::StreamSynchronize { stream: 1 }),
    ]);
    let times: Vec<u64> = play.trace.iter().map(|(time, _)| *time).collect();
    // Launch 1 is before the graph; of its kernels the second follows the first in the same queue, the third waits for its end.
    let queues: Vec<u32> = play.launches.iter().map(|launch| launch.queue).collect();
    assert_eq!(times.len(), 5);
    assert_eq!(times[1], times[0] + KERNEL);
    assert_eq!((times[2], queues[2]), (times[1], queues[1]));
    assert_eq!(times[3], times[1] + KERNEL);
    assert!(queues[3] != queues[1] && queues[1] != 1);
    assert_eq!(times[4], times[3] + KERNEL, "after the graph");
    assert_eq!(play.times(0)[0], times[4]);
    assert_eq!(play.functions, [4]);
    let error = CallResult::Error;
    assert_eq!(
        play.results(0)[9..],
        [error(CudaError::InvalidValue), error(CudaError::InvalidResourceHandle), CallResult::None, CallResult::None]
    );
}

#[test]
fn synchronising_the_default_stream_waits_for_blocking_streams() {
    let play = run(vec![
        call(Call::StreamCreate { non_blocking: true, priority: 0 }),
        new_stream(),
        call(launch(1)),
        call(Call::StreamSynchronize { stream: 0 }),
        call(Call::ReadClock),
        call(launch(2)),
        call(Call::StreamSynchronize { stream: 0 }),
        call(Call::ReadClock),
        call(Call::StreamDestroy { stream: 2 }),
        call(Call::StreamQuery { stream: 2 }),
        call(Call::StreamDestroy { stream: 0 }),
    ]);
    let [first, second] = play.times(0)[..] else { panic!("two times") };
    assert_eq!(first, 0, "the stream that does not block still has its kernel");
    assert_eq!(second, KERNEL);
    let error = CallResult::Error(CudaError::InvalidResourceHandle);
    assert_eq!(play.results(0)[9..], [error.clone(), error]);
}

/// A node whose graphs run as the first word of the GPU's memory says.
fn conditional(kind: ConditionalKind, graphs: Vec<Vec<GraphNode>>, dependencies: &[u32]) -> GraphNode {
    let conditional = Conditional { kind, address: first(), graphs };
    GraphNode { call: None, conditional: Some(Box::new(conditional)), dependencies: dependencies.to_vec() }
}

/// A launch that is told by the size of its grid.
fn sized(blocks: u32, dependencies: &[u32]) -> GraphNode {
    let Call::Launch(mut kernel) = launch(0) else { unreachable!("a launch is one") };
    kernel.grid = [blocks, 1, 1];
    GraphNode::of(Some(Call::Launch(kernel)), dependencies.to_vec())
}

/// Launches a graph; gives when kernels began, with the sizes of their grids, and when words were read.
fn with_conditions(nodes: Vec<GraphNode>, values: &[u32]) -> (Vec<(u64, u32)>, Vec<u64>) {
    let steps = vec![
        new_stream(),
        call(Call::Malloc { bytes: 4 }),
        call(Call::GraphLaunch { nodes, conditions: vec![(first(), 1)], stream: 1 }),
        call(Call::StreamSynchronize { stream: 1 }),
    ];
    let mut play = Play::new(Program::of(steps), 1);
    play.conditions = values.iter().copied().collect();
    play.finish();
    assert_eq!(play.results(0)[2..], [CallResult::None, CallResult::None], "{}", play.errors);
    let of = |what: &str| -> Vec<u64> {
        play.trace.iter().filter(|(_, words)| words.contains(what)).map(|(time, _)| *time).collect()
    };
    let sizes = play.launches.iter().map(|launch| launch.grid[0]);
    (of("launch").into_iter().zip(sizes).collect(), of("a condition is read"))
}

#[test]
fn a_graph_runs_again_and_again_while_its_condition_holds() {
    // 2, then 3 and 4 as often as the word is not 0, then 5.
    let body = vec![sized(3, &[]), sized(4, &[0])];
    let nodes = vec![sized(2, &[]), conditional(ConditionalKind::While, vec![body], &[0]), sized(5, &[1])];
    let (launches, read) = with_conditions(nodes.clone(), &[1, 7, 0]);
    let sizes: Vec<u32> = launches.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [2, 3, 4, 3, 4, 5]);
    assert_eq!(read[0], launches[0].0 + KERNEL, "what the node waits for is done");
    assert_eq!(launches[1].0, read[0]);
    assert!(read[1] > launches[2].0 && read[1] == launches[3].0, "when the last of the graph is done");
    assert_eq!(launches[5].0, read[2]);
    let sizes: Vec<u32> = with_conditions(nodes, &[0]).0.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [2, 5]);
}

#[test]
fn conditions_choose_among_graphs_and_nest() {
    let inner = conditional(ConditionalKind::Switch, vec![vec![sized(6, &[])], vec![sized(7, &[])]], &[0]);
    let outer =
        conditional(ConditionalKind::If, vec![vec![sized(3, &[]), inner, sized(4, &[1])], vec![sized(5, &[])]], &[]);
    for (values, expected) in
        [(&[1, 1][..], &[3, 7, 4, 9][..]), (&[1, 0], &[3, 6, 4, 9]), (&[1, 2], &[3, 4, 9]), (&[0], &[5, 9])]
    {
        let (launches, read) = with_conditions(vec![outer.clone(), sized(9, &[0])], values);
        assert_eq!(launches.iter().map(|(_, size)| *size).collect::<Vec<_>>(), expected);
        assert_eq!(read.len(), values.len());
    }
}
