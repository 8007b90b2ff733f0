//! The graphs of the program: nodes, their dependencies, and copies of graphs.

use crate::abi::arguments::In;
use crate::abi::graph::EdgeData;
use crate::session::graph::condition::Condition;
use crate::session::graph::node::{Node, Work};
use crate::session::graph::user_object;
use crate::session::state::dependency::Dependency;
use crate::session::state::handles::{Handles, Kind};
use balar_host::CudaError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static GRAPHS: Handles<Arc<Mutex<Graph>>> = Handles::new(Kind::Graph);
/// The handle of each node's graph.
static NODES: Handles<u64> = Handles::new(Kind::GraphNode);
static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

/// A graph (`cudaGraph_t`).
#[derive(Debug)]
pub struct Graph {
    /// Its handle.
    pub handle: u64,
    /// Its number, for programs that ask.
    pub number: u32,
    /// Nodes by handle, and so in the order in which they were added.
    pub nodes: BTreeMap<u64, Node>,
    /// The node whose child graph it is, for a child graph.
    pub owner: Option<u64>,
    /// The conditions that were made for it.
    pub conditions: Vec<Arc<Condition>>,
    /// References that it holds: by handle of the object.
    pub user_objects: BTreeMap<u64, u32>,
    /// The nodes of a copy, by those of the original.
    originals: BTreeMap<u64, u64>,
    last_local_id: u32,
}

/// An edge between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that comes first.
    pub from: u64,
    /// The node that waits.
    pub to: u64,
    /// Which parts of the two nodes it is about.
    pub data: EdgeData,
}

impl Edge {
    /// Edges in C's form: arrays of both ends and, where given, of their data.
    fn list(from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) -> Result<Vec<Edge>, CudaError> {
        let (from, to) = (from.array(count)?, to.array(count)?);
        let data = if data.is_null() { vec![EdgeData::default(); count] } else { data.array(count)? };
        Ok(from.into_iter().zip(to).zip(data).map(|((from, to), data)| Edge { from, to, data }).collect())
    }
}

fn lock(graph: &Arc<Mutex<Graph>>) -> MutexGuard<'_, Graph> {
    graph.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(in crate::session) fn no_such_thing(_: CudaError) -> CudaError {
    CudaError::InvalidValue
}

/// Makes an empty graph.
pub fn create() -> u64 {
    create_owned_by(None)
}

fn create_owned_by(owner: Option<u64>) -> u64 {
    let graph = Arc::new(Mutex::new(Graph {
        handle: 0,
        number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
        nodes: BTreeMap::new(),
        owner,
        conditions: Vec::new(),
        user_objects: BTreeMap::new(),
        originals: BTreeMap::new(),
        last_local_id: 0,
    }));
    let handle = GRAPHS.insert(graph.clone());
    lock(&graph).handle = handle;
    handle
}

/// Calls `use_it` with a graph.
pub fn with<T>(graph: u64, use_it: impl FnOnce(&mut Graph) -> Result<T, CudaError>) -> Result<T, CudaError> {
    let graph = GRAPHS.get(graph).map_err(no_such_thing)?;
    let mut graph = lock(&graph);
    use_it(&mut graph)
}

/// The graph that a node is in.
pub fn graph_of(node: u64) -> Result<u64, CudaError> {
    NODES.get(node).map_err(no_such_thing)
}

/// Calls `use_it` with a node.
pub fn with_node<T>(node: u64, use_it: impl FnOnce(&mut Node) -> Result<T, CudaError>) -> Result<T, CudaError> {
    with(graph_of(node)?, |graph| use_it(graph.nodes.get_mut(&node).ok_or(CudaError::InvalidValue)?))
}

/// Ends a graph with all that it has.
pub fn destroy(graph: u64) -> Result<(), CudaError> {
    if with(graph, |graph| Ok(graph.owner.is_some()))? {
        return Err(CudaError::InvalidValue);
    }
    destroy_any(graph)
}

fn destroy_any(graph: u64) -> Result<(), CudaError> {
    let graph = GRAPHS.remove(graph).map_err(no_such_thing)?;
    let (nodes, objects) = {
        let mut graph = lock(&graph);
        (std::mem::take(&mut graph.nodes), std::mem::take(&mut graph.user_objects))
    };
    for (node, Node { work, .. }) in nodes {
        NODES.remove(node).map_err(no_such_thing)?;
        for child in work.graphs() {
            destroy_any(*child)?;
        }
    }
    for (object, count) in objects {
        user_object::release(object, count)?;
    }
    Ok(())
}

/// Adds a node that waits for others. A child graph is copied.
pub fn add(graph: u64, dependencies: &[Dependency], work: Work) -> Result<u64, CudaError> {
    with(graph, |graph| graph.check_dependencies(None, dependencies))?;
    let work = if let Work::Graph(child) = work { Work::Graph(copy(child)?) } else { work };
    add_as_it_is(graph, dependencies, work)
}

/// Adds a child graph, which belongs to the node from now on.
pub fn add_moved(graph: u64, dependencies: &[Dependency], child: u64) -> Result<u64, CudaError> {
    with(graph, |graph| graph.check_dependencies(None, dependencies))?;
    if graph == child || with(child, |child| Ok(child.owner.is_some()))? {
        return Err(CudaError::InvalidValue);
    }
    add_as_it_is(graph, dependencies, Work::Graph(child))
}

pub(in crate::session) fn add_as_it_is(graph: u64, dependencies: &[Dependency], work: Work) -> Result<u64, CudaError> {
    let children = work.graphs().to_vec();
    let node = NODES.insert(graph);
    with(graph, |graph| {
        graph.last_local_id += 1;
        let local_id = graph.last_local_id;
        graph.nodes.insert(node, Node { work, dependencies: dependencies.to_vec(), local_id, is_enabled: true });
        Ok(())
    })?;
    for child in children {
        with(child, |child| {
            child.owner = Some(node);
            Ok(())
        })?;
    }
    Ok(node)
}

/// The nodes of a graph.
pub fn nodes(graph: u64) -> Result<Vec<u64>, CudaError> {
    with(graph, |graph| Ok(graph.nodes.keys().copied().collect()))
}

/// The nodes of a graph that wait for none.
pub fn roots(graph: u64) -> Result<Vec<u64>, CudaError> {
    with(graph, |graph| {
        let roots = graph.nodes.iter().filter(|(_, node)| node.dependencies.is_empty());
        Ok(roots.map(|(handle, _)| *handle).collect())
    })
}

/// The edges of a graph: both ends, and the data.
pub fn edges(graph: u64) -> Result<Vec<(u64, u64, EdgeData)>, CudaError> {
    let edges = with(graph, |graph| Ok(graph.edges()))?;
    Ok(edges.into_iter().map(|edge| (edge.from, edge.to, edge.data)).collect())
}

/// The nodes that a node waits for, and the data of the edges.
pub fn dependencies(node: u64) -> Result<Vec<(u64, EdgeData)>, CudaError> {
    with_node(node, |node| Ok(node.dependencies.iter().map(|dependency| (dependency.node, dependency.edge)).collect()))
}

/// The nodes that wait for a node, and the data of the edges.
pub fn dependents(node: u64) -> Result<Vec<(u64, EdgeData)>, CudaError> {
    let edges = edges(graph_of(node)?)?;
    Ok(edges.into_iter().filter(|(from, ..)| *from == node).map(|(_, to, data)| (to, data)).collect())
}

/// Adds edges to a graph.
pub fn add_edges(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) -> Result<(), CudaError> {
    let edges = Edge::list(from, to, data, count)?;
    with(graph, |graph| edges.into_iter().try_for_each(|edge| graph.add_edge(edge)))
}

/// Removes edges from a graph.
pub fn remove_edges(graph: u64, from: In<u64>, to: In<u64>, data: In<EdgeData>, count: usize) -> Result<(), CudaError> {
    let edges = Edge::list(from, to, data, count)?;
    with(graph, |graph| edges.into_iter().try_for_each(|edge| graph.remove_edge(edge)))
}

/// A number that no other node of the program has.
pub fn tools_id(node: u64) -> Result<u64, CudaError> {
    let graph = with(graph_of(node)?, |graph| Ok(graph.number))?;
    Ok(u64::from(graph) << 32 | u64::from(with_node(node, |node| Ok(node.local_id))?))
}

/// The graph that a node runs.
pub fn child_of(node: u64) -> Result<u64, CudaError> {
    with_node(node, |node| match node.work {
        Work::Graph(child) => Ok(child),
        _ => Err(CudaError::InvalidValue),
    })
}

/// Adds a child graph, which is copied.
pub fn add_child(graph: u64, dependencies: &[Dependency], child: u64) -> Result<u64, CudaError> {
    if graph == child { Err(CudaError::InvalidValue) } else { add(graph, dependencies, Work::Graph(child)) }
}

/// Replaces the work of a node by work of the same kind.
pub fn set(node: u64, work: Work) -> Result<(), CudaError> {
    with_node(node, |node| {
        if node.work.kind() != work.kind() {
            return Err(CudaError::InvalidValue);
        }
        node.work = work;
        Ok(())
    })
}

/// Makes an empty graph as a program asks for it, without flags.
pub fn create_with_flags(flags: u32) -> Result<u64, CudaError> {
    if flags == 0 { Ok(create()) } else { Err(CudaError::InvalidValue) }
}

/// Ends a node and its edges.
pub fn destroy_node(node: u64) -> Result<(), CudaError> {
    let graph = graph_of(node)?;
    let ended = with(graph, |graph| {
        if graph.owner.is_some() {
            return Err(CudaError::NotSupported);
        }
        let is_memory = |node: &Node| matches!(node.work, Work::Allocate(_) | Work::Free(_));
        if graph.nodes.get(&node).is_none_or(is_memory) {
            return Err(CudaError::InvalidValue);
        }
        let ended = graph.nodes.remove(&node).ok_or(CudaError::InvalidValue)?;
        for other in graph.nodes.values_mut() {
            other.dependencies.retain(|dependency| dependency.node != node);
        }
        Ok(ended)
    })?;
    NODES.remove(node).map_err(no_such_thing)?;
    ended.work.graphs().iter().try_for_each(|child| destroy_any(*child))
}

/// A copy of a graph, with copies of its child graphs. One with conditional nodes cannot be copied.
pub fn copy(graph: u64) -> Result<u64, CudaError> {
    let (nodes, objects, last_local_id) =
        with(graph, |graph| Ok((graph.nodes.clone(), graph.user_objects.clone(), graph.last_local_id)))?;
    if nodes.values().any(|node| matches!(node.work, Work::Conditional(_))) {
        return Err(CudaError::NotSupported);
    }
    let handle = create();
    let originals: BTreeMap<u64, u64> = nodes.keys().map(|node| (*node, NODES.insert(handle))).collect();
    let mut copies = BTreeMap::new();
    for (node, mut copied) in nodes {
        for dependency in &mut copied.dependencies {
            dependency.node = originals[&dependency.node];
        }
        if let Work::Graph(child) = copied.work {
            let child = copy(child)?;
            with(child, |child| {
                child.owner = Some(originals[&node]);
                Ok(())
            })?;
            copied.work = Work::Graph(child);
        }
        copies.insert(originals[&node], copied);
    }
    for (object, count) in &objects {
        user_object::retain(*object, *count)?;
    }
    with(handle, |graph| {
        graph.nodes = copies;
        graph.user_objects = objects;
        graph.originals = originals;
        graph.last_local_id = last_local_id;
        Ok(())
    })?;
    Ok(handle)
}

/// The node of a copy that stands for a node of the original.
pub fn find_in_copy(original: u64, copy: u64) -> Result<u64, CudaError> {
    with(copy, |graph| graph.originals.get(&original).copied().ok_or(CudaError::InvalidValue))
}

impl Graph {
    /// Refuses dependencies on nodes of other graphs or on the node itself (`None` for a new one), and duplicates.
    pub(in crate::session) fn check_dependencies(
        &self,
        of: Option<u64>,
        dependencies: &[Dependency],
    ) -> Result<(), CudaError> {
        let mut seen = BTreeSet::new();
        for dependency in dependencies {
            let is_new = seen.insert((dependency.node, dependency.edge));
            if !is_new || !self.nodes.contains_key(&dependency.node) || of == Some(dependency.node) {
                return Err(CudaError::InvalidValue);
            }
        }
        Ok(())
    }

    /// All edges, by the node that waits.
    pub fn edges(&self) -> Vec<Edge> {
        let of_node = |(to, node): (&u64, &Node)| {
            let to = *to;
            node.dependencies.iter().map(move |from| Edge { from: from.node, to, data: from.edge }).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of_node).collect()
    }

    /// Adds an edge, which must not be there.
    pub fn add_edge(&mut self, edge: Edge) -> Result<(), CudaError> {
        let dependency = Dependency { node: edge.from, edge: edge.data };
        self.check_dependencies(Some(edge.to), &[dependency])?;
        let node = self.nodes.get_mut(&edge.to).ok_or(CudaError::InvalidValue)?;
        if node.dependencies.contains(&dependency) {
            return Err(CudaError::InvalidValue);
        }
        node.dependencies.push(dependency);
        Ok(())
    }

    /// Removes an edge, which must be there.
    pub fn remove_edge(&mut self, edge: Edge) -> Result<(), CudaError> {
        let node = self.nodes.get_mut(&edge.to).ok_or(CudaError::InvalidValue)?;
        let wanted = Dependency { node: edge.from, edge: edge.data };
        let place = node.dependencies.iter().position(|dependency| *dependency == wanted);
        node.dependencies.remove(place.ok_or(CudaError::InvalidValue)?);
        Ok(())
    }

    /// The nodes in topological order; if there is none, a node of a cycle.
    pub fn in_order(&self) -> Result<Vec<u64>, u64> {
        let mut waits: BTreeMap<u64, usize> =
            self.nodes.iter().map(|(node, it)| (*node, it.dependencies.len())).collect();
        let mut after: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for edge in self.edges() {
            after.entry(edge.from).or_default().push(edge.to);
        }
        let mut ready: BTreeSet<u64> = waits.iter().filter(|(_, count)| **count == 0).map(|(node, _)| *node).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            waits.remove(&node);
            order.push(node);
            for next in after.get(&node).into_iter().flatten() {
                let Some(count) = waits.get_mut(next) else { continue };
                *count -= 1;
                if *count == 0 {
                    ready.insert(*next);
                }
            }
        }
        waits.first_key_value().map_or(Ok(order), |(node, _)| Err(*node))
    }

    /// These nodes and all that they wait for.
    pub fn with_predecessors(&self, nodes: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut open: Vec<u64> = nodes.into_iter().collect();
        while let Some(node) = open.pop() {
            if found.insert(node) {
                let dependencies = self.nodes.get(&node).map(|node| &node.dependencies);
                open.extend(dependencies.into_iter().flatten().map(|dependency| dependency.node));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(nodes: &[u64]) -> Vec<Dependency> {
        nodes.iter().map(|node| Dependency::on(*node)).collect()
    }

    #[test]
    fn nodes_come_after_what_they_wait_for() {
        let graph = create();
        let first = add(graph, &[], Work::Empty).expect("a new node");
        let second = add(graph, &after(&[first]), Work::Empty).expect("a new node");
        let root = add(graph, &[], Work::Empty).expect("a new node");
        let edge = Edge { from: root, to: first, data: EdgeData::default() };
        with(graph, |graph| graph.add_edge(edge)).expect("a new edge");
        assert_eq!(with(graph, |graph| graph.add_edge(edge)), Err(CudaError::InvalidValue));
        assert_eq!(with(graph, |graph| Ok(graph.in_order())), Ok(Ok(vec![root, first, second])));
        let back = Edge { from: second, to: root, data: EdgeData::default() };
        with(graph, |graph| graph.add_edge(back)).expect("a cycle is found later");
        assert_eq!(with(graph, |graph| Ok(graph.in_order())), Ok(Err(first)));
        with(graph, |graph| graph.remove_edge(back)).expect("the edge is there");
        assert_eq!(with(graph, |graph| graph.remove_edge(back)), Err(CudaError::InvalidValue));
        destroy_node(first).expect("the node is there");
        assert_eq!(with(graph, |graph| Ok(graph.edges())), Ok(Vec::new()));
        assert_eq!(destroy(graph), Ok(()));
        assert_eq!(destroy(graph), Err(CudaError::InvalidValue));
        assert_eq!(graph_of(second), Err(CudaError::InvalidValue));
    }

    #[test]
    fn wrong_dependencies_are_refused() {
        let (graph, other) = (create(), create());
        let node = add(graph, &[], Work::Empty).expect("a new node");
        assert_eq!(add(graph, &after(&[node, node]), Work::Empty), Err(CudaError::InvalidValue));
        assert_eq!(add(other, &after(&[node]), Work::Empty), Err(CudaError::InvalidValue));
        let to_itself = Edge { from: node, to: node, data: EdgeData::default() };
        assert_eq!(with(graph, |graph| graph.add_edge(to_itself)), Err(CudaError::InvalidValue));
    }

    #[test]
    fn a_copy_has_its_own_nodes_and_child_graphs() {
        let child = create();
        add(child, &[], Work::Empty).expect("a new node");
        let graph = create();
        let first = add(graph, &[], Work::Empty).expect("a new node");
        let second = add(graph, &after(&[first]), Work::Graph(child)).expect("a new node");
        let Ok(Work::Graph(embedded)) = with_node(second, |node| Ok(node.work.clone())) else {
            panic!("a child graph")
        };
        assert_ne!(embedded, child);
        assert_eq!(destroy(embedded), Err(CudaError::InvalidValue));
        let copied = copy(graph).expect("a graph");
        let copy_of_second = find_in_copy(second, copied).expect("it has been copied");
        assert_ne!(copy_of_second, second);
        let copy_of_first = find_in_copy(first, copied).expect("it has been copied");
        let dependencies = with_node(copy_of_second, |node| Ok(node.dependencies.clone()));
        assert_eq!(dependencies, Ok(after(&[copy_of_first])));
        assert_eq!(destroy(graph), Ok(()));
        assert_eq!(graph_of(copy_of_second), Ok(copied));
        assert_eq!(find_in_copy(copy_of_second, copied), Err(CudaError::InvalidValue));
    }
}
