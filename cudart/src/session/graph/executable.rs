//! Executable graphs: a graph at the time of its instantiation, with its child graphs expanded, in topological order.

use crate::abi::graph::{InstantiateParams, instantiate_flags, update_result};
use crate::session::graph::node::{Node, Work};
use crate::session::graph::step::{Staging, Step};
use crate::session::graph::store::{self, Graph};
use crate::session::graph::{kernel, user_object};
use crate::session::state::dependency::Dependency;
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(in crate::session) static EXECUTABLES: Handles<Arc<Mutex<Executable>>> = Handles::new(Kind::GraphExec);

static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

/// An executable graph (`cudaGraphExec_t`).
#[derive(Debug)]
pub struct Executable {
    /// Its number, for programs that ask.
    pub number: u32,
    /// The flags it was instantiated with.
    pub flags: u64,
    /// The device that was current.
    pub device: u32,
    /// Each after those it waits for.
    pub nodes: Vec<Step>,
    /// The graph's structure.
    shape: Shape,
    pub(in crate::session) user_objects: BTreeMap<u64, u32>,
    /// Pinned memory between the program's memory and the device, by step.
    pub(in crate::session) staging: BTreeMap<u32, Staging>,
    /// Where it was launched last: the stream's device and number.
    pub(in crate::session) launched_in: Option<(u32, u32)>,
    /// Keeps launches in different streams one after another: the simulator's number of an event.
    pub(in crate::session) launched: Option<u32>,
}

/// The structure of a graph: nodes in the order in which they were added.
#[derive(Clone, Debug, Default)]
struct Shape {
    nodes: Vec<NodeShape>,
}

#[derive(Clone, Debug)]
struct NodeShape {
    node: u64,
    kind: u32,
    /// The dependencies of each node, by place in `nodes`.
    dependencies: Vec<usize>,
    /// The graphs that belong to it.
    graphs: Vec<Shape>,
}

/// A graph that cannot be made executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantiationError {
    /// The error.
    pub error: CudaError,
    /// The node that is the reason, or 0.
    pub node: u64,
    /// The reason is a condition that no node goes by.
    pub is_unused_condition: bool,
}

impl InstantiationError {
    /// A node is the reason.
    fn of_node(error: CudaError, node: u64) -> InstantiationError {
        InstantiationError { error, node, is_unused_condition: false }
    }
}

/// An update that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateError {
    /// See [`update_result`].
    pub result: u32,
    /// The node of the new graph.
    pub node: u64,
}

impl From<CudaError> for InstantiationError {
    fn from(error: CudaError) -> InstantiationError {
        InstantiationError::of_node(error, 0)
    }
}

/// Makes a graph executable on the current device; returns the handle.
pub fn instantiate(graph: u64, flags: u64) -> Result<u64, InstantiationError> {
    const KNOWN: u64 = instantiate_flags::AUTO_FREE_ON_LAUNCH
        | instantiate_flags::UPLOAD
        | instantiate_flags::DEVICE_LAUNCH
        | instantiate_flags::USE_NODE_PRIORITY;
    if flags & !KNOWN != 0 {
        return Err(CudaError::InvalidValue.into());
    }
    // Kernels cannot launch graphs.
    if flags & instantiate_flags::DEVICE_LAUNCH != 0 {
        return Err(CudaError::NotSupported.into());
    }
    let device = thread::device();
    let mut nodes = Vec::new();
    flatten(graph, &[], &mut nodes)?;
    check(&nodes, &mut None, false)?;
    if store::with(graph, |graph| Ok(graph.conditions.iter().any(|condition| !condition.is_used())))? {
        return Err(InstantiationError { is_unused_condition: true, ..CudaError::InvalidValue.into() });
    }
    let shape = shape(graph)?;
    let user_objects = store::with(graph, |graph| Ok(graph.user_objects.clone()))?;
    for (object, count) in &user_objects {
        user_object::retain(*object, *count)?;
    }
    let executable = Executable {
        number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
        flags,
        device,
        nodes,
        shape,
        user_objects,
        staging: BTreeMap::new(),
        launched_in: None,
        launched: None,
    };
    Ok(EXECUTABLES.insert(Arc::new(Mutex::new(executable))))
}

/// As [`instantiate`], with the flags of a structure, into which errors are written.
pub fn instantiate_with(graph: u64, parameters: &mut InstantiateParams) -> Result<u64, CudaError> {
    const SUCCESS: u32 = 0;
    const ERROR: u32 = 1;
    const INVALID_STRUCTURE: u32 = 2;
    const OPERATION_NOT_SUPPORTED: u32 = 3;
    const UNUSED_CONDITION: u32 = 5;
    let made = instantiate(graph, parameters.flags);
    parameters.error_node = made.map_or_else(|error| error.node, |_| 0);
    parameters.result = match made {
        Ok(_) => SUCCESS,
        Err(InstantiationError { is_unused_condition: true, .. }) => UNUSED_CONDITION,
        Err(InstantiationError { error: CudaError::NotSupported, .. }) => OPERATION_NOT_SUPPORTED,
        Err(InstantiationError { node, .. }) if node != 0 => INVALID_STRUCTURE,
        Err(_) => ERROR,
    };
    made.map_err(|error| error.error)
}

/// Updates the nodes of an executable graph from the nodes of a graph; the inner error says why they do not fit.
pub fn update(handle: u64, graph: u64) -> Result<Result<(), UpdateError>, CudaError> {
    store::with(graph, |_| Ok(()))?;
    with(handle, |executable| Ok(executable.update(graph)))
}

/// Replaces the work of a node of an executable graph by work of the same kind. A kernel node keeps its attributes.
pub fn set(handle: u64, node: u64, work: Work) -> Result<(), CudaError> {
    with(handle, |executable| match work {
        Work::Graph(child) => executable.update_child(node, child).map_err(|_| CudaError::GraphExecUpdateFailure),
        Work::Kernel(_) => {
            let work = kernel::replace(&executable.step(node)?.work, work)?;
            executable.set_work(node, work)
        }
        work => executable.set_work(node, work),
    })
}

/// Has launches do the work of a node, or leave it out.
pub fn set_enabled(handle: u64, node: u64, is_enabled: u32) -> Result<(), CudaError> {
    with(handle, |executable| {
        let step = executable.step(node)?;
        if !step.work.can_be_disabled() {
            return Err(CudaError::InvalidValue);
        }
        step.is_enabled = is_enabled != 0;
        Ok(())
    })
}

/// Do launches do the work of a node?
pub fn is_enabled(handle: u64, node: u64) -> Result<bool, CudaError> {
    with(handle, |executable| {
        let step = executable.step(node)?;
        if step.work.can_be_disabled() { Ok(step.is_enabled) } else { Err(CudaError::InvalidValue) }
    })
}

/// Calls `use_it` with an executable graph.
pub fn with<T>(handle: u64, use_it: impl FnOnce(&mut Executable) -> Result<T, CudaError>) -> Result<T, CudaError> {
    let executable = EXECUTABLES.get(handle).map_err(store::no_such_thing)?;
    let mut executable = executable.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(&mut executable)
}

/// Appends the steps of a graph. The first of them wait for `after`; returns the steps that the graph's end waits for.
fn flatten(graph: u64, after: &[u32], steps: &mut Vec<Step>) -> Result<Vec<u32>, InstantiationError> {
    let (order, nodes) = store::with(graph, |graph| Ok((graph.in_order(), graph.nodes.clone())))?;
    let order = order.map_err(|node| InstantiationError::of_node(CudaError::InvalidValue, node))?;
    // The steps that stand for the end of each node.
    let mut ends: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for handle in order {
        let Node { work, dependencies, is_enabled, .. } = &nodes[&handle];
        let mut waits: Vec<u32> = if dependencies.is_empty() {
            after.to_vec()
        } else {
            dependencies.iter().flat_map(|dependency| ends[&dependency.node].iter().copied()).collect()
        };
        waits.sort_unstable();
        waits.dedup();
        let end = if let Work::Graph(child) = work {
            flatten(*child, &waits, steps)?
        } else {
            let mut graphs = Vec::new();
            if let Work::Conditional(node) = work {
                for graph in node.graphs.iter() {
                    let mut own = Vec::new();
                    flatten(*graph, &[], &mut own)?;
                    graphs.push(own);
                }
            }
            let (work, is_enabled) = (work.clone(), *is_enabled);
            steps.push(Step { node: handle, work, dependencies: waits, is_enabled, graphs });
            vec![steps.len() as u32 - 1]
        };
        ends.insert(handle, end);
    }
    let waited_for: Vec<u64> =
        nodes.values().flat_map(|node| node.dependencies.iter().map(|dependency| dependency.node)).collect();
    let last = ends.iter().filter(|(node, _)| !waited_for.contains(node));
    let last: Vec<u32> = last.flat_map(|(_, steps)| steps.iter().copied()).collect();
    Ok(if nodes.is_empty() { after.to_vec() } else { last })
}

/// Refuses steps that the simulator cannot run as one graph, and steps that graphs of conditional nodes cannot have: functions of the
/// program, events, and memory of the program alone (`cudaConditionalNodeParams`).
fn check(steps: &[Step], device: &mut Option<u32>, is_conditional: bool) -> Result<(), InstantiationError> {
    for step in steps {
        let is_allowed = match &step.work {
            Work::Kernel(kernel) => *device.get_or_insert(kernel.device) == kernel.device,
            Work::Copy(_) => !is_conditional || step.program_memory().is_none(),
            Work::Memset(_) | Work::Empty | Work::Graph(_) | Work::Conditional(_) => true,
            Work::Host(_) | Work::EventRecord(_) | Work::EventWait(_) | Work::Allocate(_) | Work::Free(_) => {
                !is_conditional
            }
        };
        if !is_allowed {
            return Err(InstantiationError::of_node(CudaError::NotSupported, step.node));
        }
        for graph in &step.graphs {
            check(graph, device, true)?;
        }
    }
    Ok(())
}

fn shape(graph: u64) -> Result<Shape, CudaError> {
    let nodes = store::with(graph, |graph: &mut Graph| Ok(graph.nodes.clone()))?;
    let places: BTreeMap<u64, usize> = nodes.keys().enumerate().map(|(place, node)| (*node, place)).collect();
    let of_node = |(handle, node): (&u64, &Node)| {
        let mut dependencies: Vec<usize> =
            node.dependencies.iter().map(|dependency| places[&dependency.node]).collect();
        dependencies.sort_unstable();
        let graphs = node.work.graphs().iter().map(|child| shape(*child)).collect::<Result<_, _>>()?;
        Ok(NodeShape { node: *handle, kind: node.work.kind(), dependencies, graphs })
    };
    Ok(Shape { nodes: nodes.iter().map(of_node).collect::<Result<_, CudaError>>()? })
}

impl Shape {
    /// Pairs the nodes of two graphs of the same structure: those of `self` with those of `other`.
    fn pair(&self, other: &Shape, pairs: &mut Vec<(u64, u64)>) -> Result<(), UpdateError> {
        for (old, new) in self.nodes.iter().zip(&other.nodes) {
            if old.kind != new.kind {
                return Err(UpdateError { result: update_result::NODE_TYPE_CHANGED, node: new.node });
            }
            if old.dependencies != new.dependencies {
                return Err(UpdateError { result: update_result::TOPOLOGY_CHANGED, node: new.node });
            }
            for (old, new) in old.graphs.iter().zip(&new.graphs) {
                old.pair(new, pairs)?;
            }
            pairs.push((old.node, new.node));
        }
        if self.nodes.len() != other.nodes.len() {
            let extra = other.nodes.get(self.nodes.len()).map_or(0, |node| node.node);
            return Err(UpdateError { result: update_result::TOPOLOGY_CHANGED, node: extra });
        }
        Ok(())
    }

    /// The structure of the child graph of a node.
    fn child_of(&self, node: u64) -> Option<&Shape> {
        self.nodes.iter().find_map(|shape| match &shape.graphs[..] {
            [child] if shape.node == node => Some(child),
            graphs => graphs.iter().find_map(|graph| graph.child_of(node)),
        })
    }
}

impl Executable {
    /// The step of a graph's node.
    pub fn step(&mut self, node: u64) -> Result<&mut Step, CudaError> {
        find(&mut self.nodes, node).ok_or(CudaError::InvalidValue)
    }

    /// Gives a step another work of the same kind.
    pub fn set_work(&mut self, node: u64, work: Work) -> Result<(), CudaError> {
        let step = self.step(node)?;
        if replacement_error(&step.work, &work).is_some() {
            return Err(CudaError::InvalidValue);
        }
        step.work = work;
        Ok(())
    }

    /// A graph of the same nodes.
    pub fn as_graph(&self) -> Result<u64, CudaError> {
        let graph = store::create();
        let mut nodes: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for step in &self.nodes {
            let after: Vec<Dependency> =
                step.dependencies.iter().map(|index| Dependency::on(nodes[*index as usize])).collect();
            let work = if step.is_enabled { step.work.clone() } else { Work::Empty };
            if let Work::Conditional(_) = work {
                return Err(CudaError::NotSupported);
            }
            nodes.push(store::add(graph, &after, work)?);
        }
        Ok(graph)
    }

    /// Takes the work of the nodes of `graph`, which must have the same structure.
    pub fn update(&mut self, graph: u64) -> Result<(), UpdateError> {
        let shape = self.shape.clone();
        self.update_part(&shape, graph)
    }

    /// Takes the work of the nodes of `graph` for the nodes of the child graph of `node`.
    pub fn update_child(&mut self, node: u64, graph: u64) -> Result<(), UpdateError> {
        let wrong = UpdateError { result: update_result::ERROR, node: 0 };
        let shape = self.shape.child_of(node).cloned().ok_or(wrong)?;
        self.update_part(&shape, graph)
    }

    fn update_part(&mut self, old: &Shape, graph: u64) -> Result<(), UpdateError> {
        let wrong = |_| UpdateError { result: update_result::ERROR, node: 0 };
        let new = shape(graph).map_err(wrong)?;
        let mut pairs = Vec::new();
        old.pair(&new, &mut pairs)?;
        let mut changes = Vec::new();
        for (old, new) in pairs {
            let work = store::with_node(new, |node| Ok(node.work.clone())).map_err(wrong)?;
            // The steps of a child graph have pairs of their own.
            if matches!(work, Work::Graph(_)) {
                continue;
            }
            let step = self.step(old).map_err(wrong)?;
            if let Some(result) = replacement_error(&step.work, &work) {
                return Err(UpdateError { result, node: new });
            }
            changes.push((old, work));
        }
        for (node, work) in changes {
            self.step(node).map_err(wrong)?.work = work;
        }
        Ok(())
    }
}

/// The step of a graph's node, among those of conditional nodes as well.
fn find(steps: &mut [Step], node: u64) -> Option<&mut Step> {
    for step in steps {
        if step.node == node {
            return Some(step);
        }
        if let Some(found) = step.graphs.iter_mut().find_map(|graph| find(graph, node)) {
            return Some(found);
        }
    }
    None
}

/// Why a step cannot do something else, if it cannot.
fn replacement_error(old: &Work, new: &Work) -> Option<u32> {
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(new)) => (old.device != new.device).then_some(update_result::FUNCTION_CHANGED),
        (Work::Copy(old), Work::Copy(new)) => {
            let (old, new) = (old.copy.shape, new.copy.shape);
            let is_row = old.height * old.depth == 1 && new.height * new.depth == 1;
            (!is_row && old != new).then_some(update_result::PARAMETERS_CHANGED)
        }
        (Work::Memset(_), Work::Memset(_)) => {
            let (Ok(old), Ok(new)) = (old.memset_parameters(), new.memset_parameters()) else {
                return Some(update_result::PARAMETERS_CHANGED);
            };
            let is_row = old.height == 1 && new.height == 1;
            let is_same = (old.width, old.height, old.element_bytes) == (new.width, new.height, new.element_bytes);
            (!is_row && !is_same).then_some(update_result::PARAMETERS_CHANGED)
        }
        (Work::Allocate(old), Work::Allocate(new)) if Arc::ptr_eq(old, new) => None,
        (Work::Free(old), Work::Free(new)) if old == new => None,
        (Work::Conditional(old), Work::Conditional(new)) if Arc::ptr_eq(&old.condition, &new.condition) => None,
        (Work::Allocate(_) | Work::Free(_) | Work::Conditional(_), _) => Some(update_result::NOT_SUPPORTED),
        _ => (old.kind() != new.kind()).then_some(update_result::NODE_TYPE_CHANGED),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{add, create};
    use super::*;
    use crate::abi::graph::HostNodeParams;

    fn host(data: u64) -> Work {
        Work::Host(HostNodeParams { function: 1, data })
    }

    /// first -> child graph of two nodes -> last.
    fn with_child(data: u64) -> (u64, [u64; 3]) {
        let child = create();
        add(child, &[], host(data)).expect("a new node");
        add(child, &[], host(data + 1)).expect("a new node");
        let graph = create();
        let first = add(graph, &[], host(data + 2)).expect("a new node");
        let middle = add(graph, &[Dependency::on(first)], Work::Graph(child)).expect("a new node");
        let last = add(graph, &[Dependency::on(middle)], host(data + 3)).expect("a new node");
        (graph, [first, middle, last])
    }

    fn steps(executable: u64) -> Vec<(u64, Vec<u32>)> {
        let list = |executable: &mut Executable| {
            let of_step = |step: &Step| match step.work {
                Work::Host(HostNodeParams { data, .. }) => (data, step.dependencies.clone()),
                _ => (0, step.dependencies.clone()),
            };
            Ok(executable.nodes.iter().map(of_step).collect())
        };
        with(executable, list).expect("it is there")
    }

    #[test]
    fn child_graphs_take_the_place_of_their_nodes() {
        let (graph, _) = with_child(10);
        let executable = instantiate(graph, 0).expect("a sound graph");
        let expected = vec![(12, vec![]), (10, vec![0]), (11, vec![0]), (13, vec![1, 2])];
        assert_eq!(steps(executable), expected);
    }

    #[test]
    fn an_empty_child_graph_passes_on_what_it_waits_for() {
        let graph = create();
        let first = add(graph, &[], host(1)).expect("a new node");
        let middle = add(graph, &[Dependency::on(first)], Work::Graph(create())).expect("a new node");
        add(graph, &[Dependency::on(middle)], host(2)).expect("a new node");
        let executable = instantiate(graph, 0).expect("a sound graph");
        assert_eq!(steps(executable), vec![(1, vec![]), (2, vec![0])]);
    }

    #[test]
    fn an_update_wants_the_same_structure() {
        let (graph, nodes) = with_child(10);
        let executable = instantiate(graph, 0).expect("a sound graph");
        let (other, _) = with_child(20);
        assert_eq!(with(executable, |executable| Ok(executable.update(other))), Ok(Ok(())));
        let expected = vec![(22, vec![]), (20, vec![0]), (21, vec![0]), (23, vec![1, 2])];
        assert_eq!(steps(executable), expected);
        let extra = add(other, &[], Work::Empty).expect("a new node");
        let error = UpdateError { result: update_result::TOPOLOGY_CHANGED, node: extra };
        assert_eq!(with(executable, |executable| Ok(executable.update(other))), Ok(Err(error)));
        let single = create();
        let empty = add(single, &[], Work::Empty).expect("a new node");
        let error = UpdateError { result: update_result::NODE_TYPE_CHANGED, node: empty };
        assert_eq!(with(executable, |executable| Ok(executable.update(single))), Ok(Err(error)));
        assert_eq!(with(executable, |executable| executable.set_work(nodes[0], host(99))), Ok(()));
        assert_eq!(steps(executable)[0].0, 99);
        let wrong = with(executable, |executable| executable.set_work(nodes[0], Work::Empty));
        assert_eq!(wrong, Err(CudaError::InvalidValue));
    }

    #[test]
    fn a_cycle_has_no_order() {
        let graph = create();
        let first = add(graph, &[], Work::Empty).expect("a new node");
        let second = add(graph, &[Dependency::on(first)], Work::Empty).expect("a new node");
        let back = store::Edge { from: second, to: first, data: Default::default() };
        store::with(graph, |graph| graph.add_edge(back)).expect("an edge");
        let error = instantiate(graph, 0).expect_err("a cycle");
        assert_eq!(error, InstantiationError::of_node(CudaError::InvalidValue, first));
    }
}
