//! The files under `topologies/`, embedded, so that the program works from any folder.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../topologies/", $name)))),*]
    };
}

/// For each generation of GPUs that is built in, the node that stands for it, and the compute capability of its GPU.
pub const BUILT_IN_NODES: &[(&str, (u32, u32))] = &[
    ("k20x_node", (3, 5)),
    ("p100_node", (6, 0)),
    ("gtx1080ti_node", (6, 1)),
    ("v100_node", (7, 0)),
    ("t4_node", (7, 5)),
    ("a100_sxm_80gb_node", (8, 0)),
    ("rtx3070_node", (8, 6)),
    ("rtx4070_node", (8, 9)),
    ("h100_sxm_node", (9, 0)),
];

/// (name, text).
pub const FILES: &[(&str, &str)] = files![
    "v100_node.ron",
    "v100_sxm2_node.ron",
    "qv100_node.ron",
    "qv100_ncu_node.ron",
    "titanv_node.ron",
    "rtx2080ti_node.ron",
    "p100_node.ron",
    "t4_node.ron",
    "a100_sxm_40gb_node.ron",
    "a100_sxm_80gb_node.ron",
    "rtx3070_node.ron",
    "rtx4070_node.ron",
    "l40_node.ron",
    "h100_nvl_node.ron",
    "h100_pcie_node.ron",
    "h100_sxm_node.ron",
    "h200_node.ron",
    "two_v100_node.ron",
    "four_v100_node.ron",
    "gtx1080ti_node.ron",
    "uvmsmart_v100_node.ron",
    "k20x_node.ron",
    "parts/v100.ron",
    "parts/v100_sxm2.ron",
    "parts/p100.ron",
    "parts/t4.ron",
    "parts/a100.ron",
    "parts/rtx3070.ron",
    "parts/rtx4070.ron",
    "parts/h100.ron",
    "parts/gtx1080ti.ron",
    "parts/k20x.ron",
];

#[cfg(test)]
mod tests {
    use super::BUILT_IN_NODES;
    use crate::kinds::UNITS;
    use crate::topology::{LoadOptions, PartLibrary, TopologySource, load};
    use balar_protocol::GpuDescription;
    use balar_protocol::limits::{shared_reserved, shared_unit};
    use std::collections::BTreeSet;

    fn gpus(library: &PartLibrary, name: &str) -> Vec<GpuDescription> {
        let options = LoadOptions { kinds: UNITS, library, workloads: None, overrides: &[] };
        load(&TopologySource::from(name), &options).expect("it is built in").gpus()
    }

    #[test]
    fn every_generation_of_gpus_has_a_node_that_stands_for_it() {
        let library = PartLibrary::built_in();
        let capability = |name: &str| gpus(&library, name)[0].compute_capability;
        for (name, expected) in BUILT_IN_NODES {
            assert_eq!(capability(name), *expected, "{name}");
        }
        let all: BTreeSet<(u32, u32)> = library.topologies().map(capability).collect();
        assert_eq!(all, BUILT_IN_NODES.iter().map(|(_, capability)| *capability).collect());
    }

    /// What programs are told of occupancy comes from the compute capability, what CTAs get from the topology.
    #[test]
    fn ctas_get_shared_memory_as_programs_are_told() {
        let library = PartLibrary::built_in();
        for (name, gpu) in
            library.topologies().flat_map(|name| gpus(&library, name).into_iter().map(move |gpu| (name, gpu)))
        {
            let told = (shared_unit(gpu.compute_capability), shared_reserved(gpu.compute_capability));
            for sm in &gpu.sms {
                assert_eq!((sm.resources.shared_unit, sm.resources.shared_reserved), told, "{name}");
            }
        }
    }
}
