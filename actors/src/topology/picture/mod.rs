//! A topology as a picture, as its user thinks of it: the host at one side, each GPU as a die with its SMs, crossbar, L2 and stacks of
//! memory, and the links between them with their rates.
//!
//! The picture is made of the topology alone. A unit's place follows from what it provides and from its wires, never from a name, so
//! that a unit of one's own stands where it is wired.
//!
//! **Invariant:** no two boxes overlap but one that lies inside the other, and no wire crosses the box of a unit.

mod die;
mod facts;
mod model;
mod node;
mod quantities;
mod scene;

use super::Topology;

/// The topology as an SVG 1.1 picture with a background of its own.
pub fn svg(topology: &Topology) -> String {
    node::svg(topology, scene::Look::Own)
}

/// The same picture as part of a page, which says by its style sheet what the shapes look like. Shapes that stand for units, links among
/// them, have the units' paths, separated by spaces, in their `data-units`.
pub fn live_svg(topology: &Topology) -> String {
    node::svg(topology, scene::Look::OfPage)
}
