//! Files that tools for rooflines read: the Empirical Roofline Toolkit's `roofline.json`, and the `data.txt` of NERSC's plotting script.

use super::{Ceilings, Measurements, Placed};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the toolkit whose files these are like.
const TOOLKIT_VERSION: &str = "1.1.0";

/// The document that the toolkit writes beside its chart: bandwidths by level and the greatest throughput, measured (`empirical`) and by
/// parameters (`spec`).
pub fn roofline_json(found: &Measurements) -> Value {
    let memory = |ceilings: &Ceilings| -> Vec<Value> {
        ceilings.memory.iter().map(|level| json!([level.name, rounded(level.gigabytes)])).collect()
    };
    // The toolkit has one number and calls it GFLOPs: that of double precision here, too. The other ones follow under their names.
    let arithmetic = |ceilings: &Ceilings| -> Vec<Value> {
        let named = ceilings.arithmetic.iter().enumerate().map(|(index, (precision, gigaflops))| {
            let name = if index == 0 { "GFLOPs".to_owned() } else { format!("{} GFLOPs", precision.title()) };
            json!([name, rounded(*gigaflops)])
        });
        named.collect()
    };
    let metadata = BTreeMap::from([
        ("ERT_VERSION", TOOLKIT_VERSION.to_owned()),
        ("HOSTNAME", found.topology.clone()),
        ("UNAME", format!("balar-actors {}", env!("CARGO_PKG_VERSION"))),
        ("CONFIG", format!("{} simulated", found.topology)),
    ]);
    json!({
        "empirical": {
            "gbytes": { "data": memory(&found.empirical), "metadata": {} },
            "gflops": { "data": arithmetic(&found.empirical), "metadata": {} },
            "metadata": metadata,
        },
        "spec": {
            "gbytes": { "data": memory(&found.textbook) },
            "gflops": { "data": arithmetic(&found.textbook) },
        },
    })
}

/// The input of NERSC's plot_roofline.py: a line of values for each key. DRAM is its HBM.
pub fn data_txt(found: &Measurements, placed: &[Placed]) -> String {
    let ceilings = &found.empirical;
    let level = |name: &str| if name == "DRAM" { "HBM".to_owned() } else { name.to_owned() };
    let numbers = |values: &mut dyn Iterator<Item = f64>| {
        values.map(|value| rounded(value).to_string()).collect::<Vec<_>>().join(" ")
    };
    let names =
        |values: &mut dyn Iterator<Item = String>| values.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" ");
    let mut lines = vec![
        format!("memroofs {}", numbers(&mut ceilings.memory.iter().map(|level| level.gigabytes))),
        format!("mem_roof_names {}", names(&mut ceilings.memory.iter().map(|one| level(&one.name)))),
        format!("comproofs {}", numbers(&mut ceilings.arithmetic.iter().map(|one| one.1))),
        format!("comp_roof_names {}", names(&mut ceilings.arithmetic.iter().map(|one| one.0.title().to_owned()))),
    ];
    let shown: Vec<&Placed> = placed.iter().filter(|one| one.work.gigaflops().is_some_and(|rate| rate > 0.0)).collect();
    if !shown.is_empty() {
        for (index, name) in ["L1", "L2", "DRAM"].into_iter().enumerate() {
            let intensities = shown.iter().map(|one| one.work.intensities()[index].1.unwrap_or(0.0));
            lines.push(format!("AI_{} {}", level(name), numbers(&mut { intensities })));
        }
        lines.push(format!("FLOPS {}", numbers(&mut shown.iter().filter_map(|one| one.work.gigaflops()))));
        // Quotes would end a name.
        lines.push(format!("labels {}", names(&mut shown.iter().map(|one| one.name.replace('\'', "")))));
    }
    lines.join("\n") + "\n"
}

/// The number with two decimals, or with six where it is below 1.
fn rounded(value: f64) -> f64 {
    if value >= 1.0 { (value * 100.0).round() / 100.0 } else { (value * 1e6).round() / 1e6 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roofline::{Level, Precision, Work};

    fn found() -> Measurements {
        let level = |name: &str, gigabytes| Level { name: name.to_owned(), gigabytes };
        Measurements {
            topology: "v100_node".to_owned(),
            empirical: Ceilings {
                memory: vec![level("L1", 1002.834), level("L2", 541.98), level("DRAM", 68.76)],
                shared: None,
                arithmetic: vec![(Precision::Double, 288.33), (Precision::Single, 576.0)],
            },
            ..Measurements::default()
        }
    }

    #[test]
    fn the_document_is_the_toolkits() {
        let document = roofline_json(&found());
        let data = json!([["L1", 1002.83], ["L2", 541.98], ["DRAM", 68.76]]);
        assert_eq!(document["empirical"]["gbytes"]["data"], data);
        assert_eq!(document["empirical"]["gflops"]["data"], json!([["GFLOPs", 288.33], ["FP32 GFLOPs", 576.0]]));
        assert_eq!(document["empirical"]["metadata"]["ERT_VERSION"], "1.1.0");
        assert_eq!(document["spec"]["gbytes"]["data"], json!([]));
    }

    #[test]
    fn lines_are_those_of_the_script() {
        let work = Work {
            picoseconds: 1000,
            double: 2000,
            l1_bytes: 8000.0,
            l2_bytes: 4000.0,
            dram_bytes: 1000.0,
            ..Work::default()
        };
        let idle = Placed { name: "copy".to_owned(), work: Work { picoseconds: 5, ..Work::default() } };
        let placed = [Placed { name: "it's".to_owned(), work }, idle];
        let expected = "\
memroofs 1002.83 541.98 68.76
mem_roof_names 'L1' 'L2' 'HBM'
comproofs 288.33 576
comp_roof_names 'FP64' 'FP32'
AI_L1 0.25
AI_L2 0.5
AI_HBM 2
FLOPS 2000
labels 'its'
";
        assert_eq!(data_txt(&found(), &placed), expected);
        assert!(!data_txt(&found(), &[]).contains("labels"));
    }
}
