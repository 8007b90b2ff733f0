//! A workload on a node, from its request to its result.

use crate::workloads::{device_code, workload};
use crate::{BuiltInProgram, RequestError, SimulationRequest};
use balar_actors::simulation::{HostSurroundings, RunResult, simulate_host_with_code};
use balar_host::{Host, SingleThread};

/// The gauge on the live board that has the CTAs of all launches that a built-in workload will make. Those of each kernel have one, too,
/// with a dot and the kernel's name behind this.
pub const PLANNED_CTAS: &str = "workload.planned_ctas";

/// Runs a simulation to its end.
///
/// # Errors
///
/// Where nothing could be simulated. A simulated program that fails, a deadlock or a time limit is a result, not an error.
pub fn simulate(request: SimulationRequest) -> Result<RunResult, RequestError> {
    simulate_wrapped(request, |host, _| Ok(host))
}

/// As [`simulate`], with something between the workload and the simulated host CPU, such as a recorder: `wrap` makes it.
///
/// # Errors
///
/// As [`simulate`], and where `wrap` fails.
#[expect(clippy::disallowed_types, reason = "how long a run took is reported, not simulated")]
pub fn simulate_wrapped(
    request: SimulationRequest,
    wrap: impl FnOnce(Box<dyn Host>, BuiltInProgram) -> std::io::Result<Box<dyn Host>>,
) -> Result<RunResult, RequestError> {
    let start = std::time::Instant::now();
    let (descriptor, parameters) = workload(&request)?;
    let program = descriptor.program(&parameters)?;
    let parameters: Vec<(String, String)> =
        parameters.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let code = device_code(&request.topology, descriptor, request.ptx, request.code)?;
    if let (Some(board), Some(planned)) = (&request.options.progress, program.planned_ctas()) {
        board.gauge(PLANNED_CTAS).set(planned.values().sum());
        for (kernel, ctas) in planned {
            board.gauge(&format!("{PLANNED_CTAS}.{kernel}")).set(ctas);
        }
    }
    let begin = |surroundings: HostSurroundings| {
        let (parameters, code) = (parameters.clone(), code.initial.clone());
        let shared_memory = surroundings.shared_memory;
        let built_in = BuiltInProgram { name: descriptor.name, parameters, code, shared_memory };
        wrap(Box::new(SingleThread::new(program)), built_in)
    };
    let mut result = simulate_host_with_code(&request.topology, &code, begin, request.options)?;
    result.workload = descriptor.name;
    result.parameters = parameters;
    result.wall = start.elapsed();
    Ok(result)
}
