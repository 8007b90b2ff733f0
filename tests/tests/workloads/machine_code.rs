//! Every workload as machine code: the result is right, the data from the device is the same as where PTX runs, and a run says the same for
//! any number of threads.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{IsaChoice, RunResult};
use balar_experiments::{SimulationRequest, simulate_wrapped};
use balar_host::{CallResult, Host, Measurement, Next, ThreadId};
use balar_protocol::ProcessId;
use balar_protocol::statistics::Verification;
use balar_tests::{built_in, described, parameters, small};
use balar_workloads::{Descriptor, workloads};
use std::sync::{Arc, Mutex};

/// Workloads that may get other bytes from machine code than from PTX, and why. Where ptxas fuses a product and a sum, which the PTX leaves
/// to it, it rounds once: without that (`-fmad=false`), machine code and PTX give the same bytes.
const DIFFERENT: &[(&str, &str)] = &[
    ("alu_latency", "reads the clock"),
    ("pointer_chase", "reads the clock"),
    ("shared_chase", "reads the clock"),
    ("device_print", "prints in the order in which warps come to it"),
    ("reduction", "adds singles in the order in which blocks end"),
    ("montecarlo", "ptxas fuses products and sums"),
    ("fft", "ptxas fuses products and sums"),
    ("shock", "ptxas fuses products and sums"),
];

/// Bytes that a program has got from the device, in order.
type Received = Arc<Mutex<Vec<Vec<u8>>>>;

/// Notes what a host gets from the device.
struct Receiving {
    host: Box<dyn Host>,
    received: Received,
}

impl Receiving {
    fn note(&self, bytes: Vec<u8>) {
        self.received.lock().expect("no panic").push(bytes);
    }
}

impl Host for Receiving {
    fn next(&mut self) -> Next {
        self.host.next()
    }

    fn expect_call_back(&mut self, expected: bool) {
        self.host.expect_call_back(expected);
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        if let CallResult::Data(bytes) = &result {
            self.note(bytes.to_vec());
        }
        self.host.complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.host.call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.note(data.to_vec());
        self.host.receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.note(text.to_vec());
        self.host.printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        self.host.verification()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.host.measurements()
    }
}

/// A run to its end with a right result, and what came back from the device.
fn run(
    topology: &str,
    workload: &Descriptor,
    parameters: Vec<(String, String)>,
    isa: IsaChoice,
    threads: usize,
) -> (RunResult, Vec<Vec<u8>>) {
    let request = SimulationRequest {
        topology: built_in(topology),
        workload: Some((workload.name.to_owned(), parameters)),
        ptx: Vec::new(),
        code: isa.into(),
        options: RunOptions { threads, ..RunOptions::default() },
    };
    let received = Received::default();
    let notes = Arc::clone(&received);
    let result = simulate_wrapped(request, |host, _| Ok(Box::new(Receiving { host, received: notes })));
    let name = workload.name;
    let result = result.unwrap_or_else(|error| panic!("{name} on {topology}: {error}"));
    assert!(result.completed(), "{name} on {topology}, {isa:?}: {:?} {:?}", result.outcome, result.program);
    assert_ne!(result.verified(), Some(false), "{name} on {topology}, {isa:?}: {:?}", result.program);
    let received = std::mem::take(&mut *received.lock().expect("no panic"));
    (result, received)
}

/// Runs all workloads that have machine code for a GPU.
fn all_on(topology: &str, threads: &[usize]) {
    let (major, minor) = built_in(topology).gpus()[0].compute_capability;
    for workload in workloads() {
        let name = workload.name;
        assert!(workload.cubin_for(major * 10 + minor).is_some(), "{name} has no machine code for {topology}");
        let (result, received) = run(topology, workload, small(name), IsaChoice::Sass, 1);
        assert_eq!(result.isa, "sass");
        let (_, expected) = run(topology, workload, small(name), IsaChoice::Ptx, 1);
        assert!(!received.is_empty(), "{name} gets nothing from the device");
        let may_differ = DIFFERENT.iter().any(|&(other, _)| other == name);
        assert!(may_differ || received == expected, "{name} on {topology} gets other bytes than from PTX");
        let expected = described(&result);
        for &threads in threads {
            let actual = described(&run(topology, workload, small(name), IsaChoice::Sass, threads).0);
            let differs = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
            assert!(differs.is_none(), "{name} on {topology}, {threads} threads: {differs:?}");
            assert_eq!(expected.len(), actual.len(), "{name} on {topology}, {threads} threads");
        }
    }
}

#[test]
fn on_the_v100() {
    all_on("v100_node", &[2, 4]);
}

#[test]
fn on_the_t4() {
    all_on("t4_node", &[2]);
}

#[test]
fn on_the_a100() {
    all_on("a100_sxm_80gb_node", &[2]);
}

#[test]
fn on_the_h100() {
    all_on("h100_sxm_node", &[2]);
}

/// The kernel is 16 instructions long, from the first to `EXIT`, and here no thread leaves it early.
#[test]
fn a_vector_addition_executes_what_its_machine_code_holds() {
    let workload = balar_workloads::find("vectoradd").expect("built in");
    let (result, _) = run("v100_node", workload, parameters("elements=4096,block=128"), IsaChoice::Sass, 1);
    let kernels: Vec<_> = result.statistics.kernels.iter().collect();
    let [kernel] = &kernels[..] else { panic!("{} kernels", kernels.len()) };
    assert_eq!((kernel.counters.ctas.warps_launched, kernel.counters.ctas.inst_executed), (128, 16 * 128));
}
