//! The cost of copies that a real program makes on a simulated node: the program is a process of its own behind the tunnel.
//!
//! `cargo bench -p balar-benches --bench copies [-- TOPOLOGY MIB [KIND]...]`

#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{CodeChoice, HostSurroundings, simulate_host};
use balar_actors::topology::{self, LoadOptions, PartLibrary, TopologySource};
use balar_experiments::BuiltInWorkloads;
use balar_host::tunnel::{Client, Control, ProgramEnd, Role, SOCKET_VARIABLE, Server, ServerOptions, SocketFolder};
use balar_host::{Bytes, Call, CallResult, Host};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a program copies. Each but the last two brings its bytes to the device first.
const KINDS: [&str; 7] = ["nothing", "to", "to_again", "back", "pinned", "within", "fill"];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["program", kind, bytes] => program(kind, bytes.parse()?),
        ["node", topology, kind, bytes] => node(topology, kind, bytes),
        [topology, mib, ref kinds @ ..] => table(topology, mib.parse()?, if kinds.is_empty() { &KINDS } else { kinds }),
        _ => table("v100_node", 256, &KINDS).and_then(|()| table("v100_sxm2_node", 16, &KINDS)),
    }
}

/// One line for each kind of copy, each by a node of its own.
fn table(topology: &str, mib: u64, kinds: &[&str]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{topology}, {mib} MiB:\n\n| copies | wall s | CPU s | of it system | peak MiB | simulated us |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|")?;
    for kind in kinds {
        let bytes = (mib << 20).to_string();
        let node = Command::new(std::env::current_exe()?).args(["node", topology, kind, &bytes]).output()?;
        write!(out, "{}{}", String::from_utf8_lossy(&node.stdout), String::from_utf8_lossy(&node.stderr))?;
    }
    writeln!(out)?;
    Ok(())
}

/// Simulates a node for a program that copies, and says what that took of this process.
fn node(name: &str, kind: &str, bytes: &str) -> Result<(), Failure> {
    let library = PartLibrary::built_in();
    let kinds = balar_actors::kinds::UNITS;
    let options = LoadOptions { kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &[] };
    let topology = topology::load(&TopologySource::from(name), &options).map_err(|errors| errors.to_string())?;
    let folder = SocketFolder::create(SocketFolder::choose())?;
    let control = Control::new(Arc::default(), None)?;
    let mut child = None;
    let start = |node: HostSurroundings| -> std::io::Result<Box<dyn Host>> {
        let options = ServerOptions {
            node: node.description,
            page_bytes: 4096,
            arena: node.shared_memory,
            control: control.clone(),
            report: Arc::new(|text| panic!("{text}")),
        };
        let server = Server::listen(&folder.socket(), options)?;
        let mut program = Command::new(std::env::current_exe()?);
        let mut program = program.args(["program", kind, bytes]).env(SOCKET_VARIABLE, folder.socket()).spawn()?;
        control.program_started(program.id());
        let control = control.clone();
        child = Some(std::thread::spawn(move || {
            let code = program.wait().ok().and_then(|status| status.code()).unwrap_or(1);
            control.program_ended(ProgramEnd::Exited(code));
            code
        }));
        Ok(Box::new(server))
    };
    let begin = Instant::now();
    let result =
        simulate_host(&topology, CodeChoice::default(), start, RunOptions { threads: 1, ..RunOptions::default() })?;
    let wall = begin.elapsed().as_secs_f64();
    let code = child.and_then(|child| child.join().ok());
    if code != Some(0) {
        return Err(format!("the program ended with {code:?}").into());
    }
    let usage = usage()?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| {kind} | {wall:.2} | {:.2} | {:.2} | {} | {:.3} |",
        usage.user + usage.system,
        usage.system,
        usage.peak_kib >> 10,
        result.sim_time.0 as f64 / 1e6
    )?;
    Ok(())
}

/// What this process has used, its children not counted.
struct Usage {
    user: f64,
    system: f64,
    peak_kib: u64,
}

fn usage() -> Result<Usage, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The fields behind the name, which ends with the last parenthesis; times are in hundredths of a second.
    let fields: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let time = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let peak_kib = peak.trim().trim_end_matches(" kB").parse()?;
    Ok(Usage { user: time(11), system: time(12), peak_kib })
}

/// The program: makes its copies, and ends.
fn program(kind: &str, bytes: usize) -> Result<(), Failure> {
    let socket = std::env::var_os(SOCKET_VARIABLE).ok_or("not started by this benchmark")?;
    let mut program = Program(Client::connect(socket.as_ref(), Role::Thread)?.0);
    let device = program.allocate(Call::Malloc { bytes: bytes as u64 })?;
    let uploads = match kind {
        "to" | "back" => 1,
        "to_again" => 2,
        _ => 0,
    };
    let mut data: Vec<u8> = if uploads > 0 { (0..bytes).map(|at| (at % 251) as u8).collect() } else { Vec::new() };
    for _ in 0..uploads {
        program.upload(device, &data)?;
    }
    let copy = |destination, source| Call::copy_within(destination, source, bytes as u64, 0, false);
    match kind {
        "nothing" | "to" | "to_again" => {}
        "back" => {
            data.fill(0);
            program.download(device, &mut data)?;
            if !data.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8) {
                return Err("other bytes came back".into());
            }
        }
        "pinned" => {
            let pinned = program.allocate(Call::MallocHost { bytes: bytes as u64 })?;
            program.call(&copy(device, pinned))?;
            program.call(&copy(pinned, device))?;
        }
        "within" => {
            let other = program.allocate(Call::Malloc { bytes: bytes as u64 })?;
            program.call(&copy(other, device))?;
        }
        "fill" => {
            program.call(&Call::memset(device, 7, bytes as u64, 0, false))?;
        }
        other => return Err(format!("{other} is no kind of copy").into()),
    }
    Ok(())
}

struct Program(Client);

impl Program {
    fn call(&mut self, call: &Call) -> Result<CallResult, Failure> {
        match self.0.call(0, 0, call, &[], &mut |_, _| {})?.result {
            CallResult::Error(error) => Err(error.to_string().into()),
            result => Ok(result),
        }
    }

    fn allocate(&mut self, call: Call) -> Result<u64, Failure> {
        match self.call(&call)? {
            CallResult::Pointer(pointer) => Ok(pointer),
            other => Err(format!("{other:?} in place of a pointer").into()),
        }
    }

    fn upload(&mut self, destination: u64, data: &[u8]) -> Result<(), Failure> {
        let absent = Bytes::absent(data.len() as u64);
        let call = Call::copy_to_device(destination, absent, 0, false);
        self.0.call(0, 0, &call, &[data], &mut |_, _| {})?;
        Ok(())
    }

    fn download(&mut self, source: u64, data: &mut [u8]) -> Result<(), Failure> {
        let bytes = data.len() as u64;
        let call = Call::copy_from_device(source, bytes, 0, 0, false);
        let mut sink = |offset: u64, part: &[u8]| {
            let start = offset as usize;
            data[start..start + part.len()].copy_from_slice(part);
        };
        self.0.call(0, 0, &call, &[], &mut sink)?;
        Ok(())
    }
}
