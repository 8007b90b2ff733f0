//! Runs a topology and prints what came of it.
#![allow(missing_docs, clippy::print_stdout)]
use balar_actors::{engine::RunOptions, simulation::*, topology::*, units::UNITS};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let overrides: Vec<Override> =
        args[3..].iter().filter(|a| !a.starts_with("t=")).map(|a| Override(a.clone())).collect();
    let threads = args[3..].iter().find_map(|a| a.strip_prefix("t=")).map_or(1, |t| t.parse().unwrap());
    let lib = PartLibrary::built_in();
    let o = LoadOptions { kinds: UNITS, library: &lib, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    let topology = match load(&TopologySource::Named(args[1].clone()), &o) {
        Ok(t) => t,
        Err(e) => {
            println!("{}", e.render());
            return;
        }
    };
    let w = args[2].split_once(':').unwrap_or((&args[2], ""));
    let ps =
        w.1.split(',')
            .filter(|s| !s.is_empty())
            .map(|s| {
                let (a, b) = s.split_once('=').unwrap();
                (a.to_string(), b.to_string())
            })
            .collect();
    let r = simulate(SimulationRequest {
        topology,
        workload: Some((w.0.to_string(), ps)),
        ptx: None,
        options: RunOptions { threads, ..Default::default() },
    });
    let r = match r {
        Ok(r) => r,
        Err(e) => {
            println!("{e}");
            return;
        }
    };
    println!(
        "{:?} {:?} sim {} wall {:?} windows {} messages {}",
        r.outcome, r.program, r.sim_time, r.wall, r.windows, r.messages
    );
    for k in &r.statistics.kernels {
        println!(
            "{} {} cycles {} inst {} regs {} ",
            k.launch.0, k.name, k.cycles, k.counters.inst_executed, k.registers_per_thread
        );
    }
    println!(
        "warp inst {} rate {:.2} M/s",
        r.warp_instructions(),
        r.warp_instructions() as f64 / r.wall.as_secs_f64() / 1e6
    );
    if std::env::var("ROWS").is_ok() {
        for row in &r.statistics.rows {
            if row.value != 0 {
                println!("{},{},{},{}", row.location, row.what, row.value, row.unit);
            }
        }
    }
}
