//! Loads cubins: reads each and lowers all of its kernels, which are kept; tells how long it takes, and which kernels cannot run.
#![expect(clippy::print_stdout, reason = "a command line")]
#![expect(clippy::disallowed_types, reason = "how long loading takes is what it tells")]
use balar_isa::machine::MachineModule;
use std::time::Instant;

fn main() {
    for file in std::env::args().skip(1) {
        let image = std::fs::read(&file).expect("a file");
        let start = Instant::now();
        let module = match MachineModule::read([image.into()]) {
            Ok(module) => module,
            Err(error) => {
                println!("{file}: {error}");
                continue;
            }
        };
        println!("{file}: read in {:?}", start.elapsed());
        let addresses: Vec<u64> =
            (0..module.placements().len() as u64).map(|index| 0x7f00_0000_0000 + index * 0x0100_0000).collect();
        let names: Vec<&str> = module.kernels().collect();
        let mut programs = Vec::new();
        for name in &names {
            let begin = Instant::now();
            match module.program(name, &addresses) {
                Ok(program) => {
                    println!("{name}: {} instructions, {:?}", program.len(), begin.elapsed());
                    programs.push(program);
                }
                Err(error) => println!("{name}: {error}"),
            }
        }
        println!("{file}: {} of {} kernels in {:?}, {}", programs.len(), names.len(), start.elapsed(), peak_memory());
    }
}

/// The most memory that the process has had, as Linux tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "peak memory unknown".to_owned(), |line| format!("peak memory {}", line.trim()))
}
