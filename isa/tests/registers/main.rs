//! The estimate of a kernel's registers beside the figures of the GPU's own assembler for the workloads' kernels.

use balar_isa::module::PtxModule;
use std::collections::BTreeMap;
use std::path::Path;

/// The median of the errors that is promised.
const MEDIAN: f64 = 0.15;
/// Nine of ten kernels are no further off: the assembler unrolls loops and gives up pairs where the estimate knows neither.
const NINE_TENTHS: f64 = 0.35;

/// Absolute relative errors of the estimates, ascending, by the ending of the file: the compiler that wrote the PTX.
fn errors() -> BTreeMap<String, Vec<f64>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    let mut modules: BTreeMap<&str, PtxModule> = BTreeMap::new();
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in include_str!("ptxas.txt").lines().filter(|line| !line.starts_with('#')) {
        let [file, kernel, figure] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}: three words") };
        let module = modules.entry(file).or_insert_with(|| {
            let text = std::fs::read_to_string(folder.join(file)).expect("the workload's PTX");
            PtxModule::parse(file, &text).expect("PTX that reads")
        });
        let addresses: Vec<u64> =
            (0..module.variables().len() as u64).map(|index| 0x1000_0000 + index * 0x1000).collect();
        let program = module.program(kernel, &addresses).expect("a kernel that decodes");
        let estimate = f64::from(program.resources().registers_per_thread);
        let figure: f64 = figure.parse().expect("a number");
        let (_, ending) = file.split_once('.').expect("a file with an ending");
        errors.entry(ending.to_owned()).or_default().push((estimate / figure - 1.0).abs());
    }
    errors.values_mut().for_each(|list| list.sort_by(f64::total_cmp));
    errors
}

#[test]
fn estimates_are_near_what_the_assembler_takes() {
    let errors = errors();
    assert_eq!(errors.len(), 2, "PTX of two compilers: {:?}", errors.keys());
    for (compiler, list) in errors {
        let at = |part: f64| list[(list.len() as f64 * part) as usize];
        assert!(list.len() > 90, "{compiler}: {} kernels", list.len());
        assert!(at(0.5) <= MEDIAN, "{compiler}: half of the kernels are off by {:.3} or more", at(0.5));
        assert!(at(0.9) <= NINE_TENTHS, "{compiler}: a tenth of the kernels is off by {:.3} or more", at(0.9));
    }
}
