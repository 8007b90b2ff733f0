//! The cards, and the tables of what was measured on each.

use crate::validation::PartDescription;
use crate::validation::recorded::{self, KernelRows};

/// A card, and the kernels that were measured on it.
pub(super) struct Card {
    pub description: PartDescription,
    /// Its name, in print.
    pub name: &'static str,
    /// Its node.
    pub node: &'static str,
    /// The name of the table's files.
    pub table: &'static str,
    /// The title of the table.
    pub title: &'static str,
    pub rows: &'static KernelRows,
}

/// All of them.
pub(super) const CARDS: [&Card; 2] = [&TITANV, &RTX2080TI];

pub(super) const TITANV: Card = Card {
    description: PartDescription {
        name: "titanv",
        summary: "times of kernels of a public program beside a TITAN V (titanv_node), recorded or with --programs",
    },
    name: "TITAN V",
    node: "titanv_node",
    table: "titanv_kernels",
    title: "Kernels of a public program beside a TITAN V, ms",
    rows: &recorded::TITANV_KERNELS,
};

pub(super) const RTX2080TI: Card = Card {
    description: PartDescription {
        name: "rtx2080ti",
        summary: "the same beside a GeForce RTX 2080 Ti (rtx2080ti_node), recorded or with --programs",
    },
    name: "RTX 2080 Ti",
    node: "rtx2080ti_node",
    table: "rtx2080ti_kernels",
    title: "Kernels of a public program beside a GeForce RTX 2080 Ti, ms",
    rows: &recorded::RTX2080TI_KERNELS,
};
