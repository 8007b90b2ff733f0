//! Graphs: their nodes and dependencies, and their executable graphs.
//!
//! From the ground up: the belongings of nodes (`allocation`, `condition`, `user_object`, `footprint`), the nodes (`node`), the graphs
//! (`store`), nodes of each kind (`kernel`, `conditional`, `allocation_nodes`), executable graphs (`step`, `executable`), their launches
//! (`launch`).

pub mod allocation;
pub mod allocation_nodes;
pub mod condition;
pub mod conditional;
pub mod dot;
pub mod executable;
pub mod footprint;
pub mod graph_objects;
pub mod kernel;
pub mod launch;
pub mod node;
pub mod parameters;
pub mod step;
pub mod store;
pub mod user_object;

pub use dot::print;
pub use node::{Node, Work};
pub use store::{
    add, add_child, add_edges, child_of, copy, create, create_with_flags, dependencies, dependents, destroy,
    destroy_node, edges, find_in_copy, graph_of, nodes, remove_edges, roots, set, tools_id, with, with_node,
};
