//! The files under `topologies/`, embedded, so that the program works from any folder.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../topologies/", $name)))),*]
    };
}

/// (name, text).
pub const FILES: &[(&str, &str)] = files![
    "v100_node.ron",
    "v100_sxm2_node.ron",
    "qv100_node.ron",
    "qv100_ncu_node.ron",
    "p100_node.ron",
    "t4_node.ron",
    "two_v100_node.ron",
    "four_v100_node.ron",
    "gtx1080ti_node.ron",
    "uvmsmart_v100_node.ron",
    "k20x_node.ron",
    "parts/v100.ron",
    "parts/v100_sxm2.ron",
    "parts/p100.ron",
    "parts/t4.ron",
    "parts/gtx1080ti.ron",
    "parts/k20x.ron",
];
