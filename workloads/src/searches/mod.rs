//! Searches in graphs, trees, grids and sequences.

pub(crate) mod bfs;
pub(crate) mod btree;
pub(crate) mod nn;
pub(crate) mod nw;
pub(crate) mod pathfinder;
pub(crate) mod sssp;
