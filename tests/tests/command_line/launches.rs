//! Counts by launch, in sections, the document and the formats of profilers.

use crate::call::call;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The cells of the line of a table that begins with a name.
fn cells<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line =
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.trim_start()[name.len()..].split_whitespace().collect()
}

/// 256 x 256 floats: 2048 warps read a row of 128 bytes each, 4 sectors, and write a column of 32 sectors. Only the tiled kernel has bank
/// conflicts: each of its 2048 stores to shared memory takes 32 wavefronts.
#[test]
fn sections_are_about_the_chosen_launches() {
    let transpose = ["--topology", "v100_node", "--workload", "transpose", "--sections", "--kernel"];
    let naive = call(&[&transpose[..], &["transpose_naive"]].concat()).stdout;
    assert_eq!(cells(&naive, "global loads")[..3], ["2048", "8192", "4.00"]);
    assert_eq!(cells(&naive, "global stores")[..3], ["2048", "65536", "32.00"]);
    assert_eq!(cells(&naive, "shared loads"), ["0", "0", "-", "-"]);
    assert!(naive.contains("\n 0 wavefronts were bank conflicts"), "{naive}");
    let tiled = call(&[&transpose[..], &["transpose_tiled"]].concat()).stdout;
    assert_eq!(cells(&tiled, "global stores")[..3], ["2048", "8192", "4.00"]);
    assert!(tiled.contains(&format!("\n {} wavefronts were bank conflicts", 2048 * 31)), "{tiled}");
    let padded = call(&[&transpose[..], &["transpose_padded"]].concat()).stdout;
    assert!(padded.contains("\n 0 wavefronts were bank conflicts"), "{padded}");
}

/// A copy of 2^20 doubles: 262,144 sectors are read and as many written. No sector is read twice, so all come from memory.
#[test]
fn the_memory_is_as_busy_as_the_kernel_keeps_it() {
    let stream = ["--topology", "v100_node", "--workload", "stream:elements=1048576,launches=1"];
    let kernel = &json(&call(&[&stream[..], &["--format", "json"]].concat()).stdout)["kernels"][0];
    let count = |name: &str| kernel[name].as_u64().unwrap_or_else(|| panic!("{name}: {kernel}"));
    assert_eq!((count("l2_sectors_load"), count("l2_sectors_written")), (262_144, 262_144));
    // Code and constants are read beside the data.
    assert!((262_144..262_200).contains(&count("dram_sectors_read")), "{kernel}");
    // The bus of 4096 bits carries two transfers in a cycle of 877 MHz: 32 bytes of one of 32 channels take 1.14 ns.
    let moved = count("dram_sectors_read") + count("dram_sectors_written");
    let busy = 100.0 * moved as f64 * 32.0 / (898.0 * (count("end_ps") - count("start_ps")) as f64 / 1000.0);
    let sections = call(&[&stream[..], &["--sections"]].concat()).stdout;
    let shown: f64 = cells(&sections, "gpu.hbm[*]")[0].parse().expect("a number");
    assert!((shown - busy).abs() < 0.5, "{shown} {busy}");
    let ncu = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
    let called = call(&[&stream[..], &["--format", "ncu-csv", "--metrics", ncu]].concat()).stdout;
    let value = called.lines().nth(1).and_then(|line| line.rsplit('"').nth(1)).expect("a value");
    assert!((value.parse::<f64>().expect("a number") - busy).abs() < 0.5, "{called} {busy}");
}

/// The scheduler keeps its 1312 MHz: kernels are measured in cycles of the SMs all the same.
#[test]
fn cycles_are_those_of_the_sms() {
    for (clock, megahertz) in [("656 MHz", 656.0), ("1800 MHz", 1800.0)] {
        let set = format!("gpu.sm[*].clock={clock}");
        let called = call(&["--topology", "v100_node", "--workload", "lud:size=48", "--format", "json", "--set", &set]);
        for kernel in json(&called.stdout)["kernels"].as_array().expect("kernels") {
            let number = |name: &str| kernel[name].as_u64().expect("a number") as f64;
            let cycles = (number("end_ps") - number("start_ps")) * 1e-6 * megahertz;
            assert!((number("cycles") - cycles).abs() <= 1.0, "{clock}: {kernel}");
        }
    }
}
