//! The cost of the tunnel between a program and the simulator: copies of several sizes and calls without data, with a host that answers at
//! once. Both ends are threads of one process, as two processes would be.

#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

use balar_host::call::CopyEnd;
use balar_host::tunnel::{Client, Control, ProgramEnd, Role, Server, ServerOptions, SocketFolder};
use balar_host::{Bytes, Call, CallResult, Host, Next, NodeDescription};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(700);
/// The largest copy.
const LARGEST: usize = 256 << 20;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| page | bytes of a copy | to the simulator, GB/s | from it, GB/s | CPU s/GB to | from |\n|---:|---:|---:|---:|---:|---:|"
    )?;
    for page_bytes in [4096, 65536, 1 << 20] {
        let node = Node::start(page_bytes)?;
        let mut client = Client::connect(&node.folder.socket(), Role::Thread)?.0;
        for bytes in [4 << 10, 64 << 10, 1 << 20, 16 << 20, LARGEST] {
            let data = vec![7; bytes];
            let (to, to_cost) = rate(bytes, || upload(&mut client, &data))?;
            let mut back = vec![0; bytes];
            let (from, from_cost) = rate(bytes, || download(&mut client, &mut back))?;
            writeln!(
                out,
                "| {} KiB | {bytes} | {to:.2} | {from:.2} | {to_cost:.2} | {from_cost:.2} |",
                page_bytes >> 10
            )?;
        }
        if page_bytes == 4096 {
            let (micros, cost) = call_cost(|| {
                client.call(0, 0, &Call::DeviceSynchronize, &[], &mut |_, _| {})?;
                Ok(1)
            })?;
            writeln!(out, "\na call without data: {micros:.1} us, {cost:.1} us of them computing")?;
            let (micros, cost) = call_cost(|| {
                let may_post = client.call(0, 0, &Call::DeviceSynchronize, &[], &mut |_, _| {})?.may_post;
                (0..may_post).try_for_each(|_| client.post(0, 0, Call::DeviceSynchronize))?;
                Ok(1 + may_post)
            })?;
            writeln!(out, "a posted call: {micros:.1} us, {cost:.1} us computing\n")?;
        }
        drop(client);
        node.end();
    }
    Ok(())
}

/// Gigabytes a second of what moves `bytes` bytes, and the seconds that both ends compute for a gigabyte.
fn rate(bytes: usize, mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<(f64, f64)> {
    act()?;
    let (start, computed) = (Instant::now(), cpu_seconds());
    let mut times = 0;
    while start.elapsed() < TIME {
        act()?;
        times += 1;
    }
    let gigabytes = bytes as f64 * f64::from(times) / 1e9;
    Ok((gigabytes / start.elapsed().as_secs_f64(), (cpu_seconds() - computed) / gigabytes))
}

/// Microseconds of a call, and those that both ends compute for it; `act` says how many calls it has made.
fn call_cost(mut act: impl FnMut() -> std::io::Result<u32>) -> std::io::Result<(f64, f64)> {
    let (start, computed) = (Instant::now(), cpu_seconds());
    let mut calls = 0;
    while start.elapsed() < TIME {
        calls += act()?;
    }
    let of_call = |seconds: f64| seconds * 1e6 / f64::from(calls);
    Ok((of_call(start.elapsed().as_secs_f64()), of_call(cpu_seconds() - computed)))
}

/// What this process has computed.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn upload(client: &mut Client, data: &[u8]) -> std::io::Result<()> {
    let absent = Bytes::absent(data.len() as u64);
    let call = Call::copy_to_device(0, absent, 0, false);
    client.call(0, 0, &call, &[data], &mut |_, _| {}).map(drop)
}

fn download(client: &mut Client, data: &mut [u8]) -> std::io::Result<()> {
    let bytes = data.len() as u64;
    let call = Call::copy_from_device(0, bytes, 0, 0, false);
    let mut sink = |offset: u64, part: &[u8]| {
        let start = offset as usize;
        data[start..start + part.len()].copy_from_slice(part);
    };
    client.call(0, 0, &call, &[], &mut sink).map(drop)
}

/// A simulator that answers at once.
struct Node {
    folder: SocketFolder,
    control: Control,
    thread: std::thread::JoinHandle<()>,
}

impl Node {
    fn start(page_bytes: u64) -> std::io::Result<Node> {
        let folder = SocketFolder::create(SocketFolder::choose())?;
        let control = Control::new(Arc::default(), None)?;
        let options = ServerOptions {
            node: NodeDescription::default(),
            page_bytes,
            arena: None,
            control: control.clone(),
            report: Arc::new(|text| panic!("{text}")),
        };
        let mut server = Server::listen(&folder.socket(), options)?;
        let thread = std::thread::spawn(move || {
            let data: Arc<[u8]> = vec![1; LARGEST].into();
            let mut results = std::collections::BTreeMap::new();
            while let Next::Call(request) = server.next() {
                let result = match request.call {
                    Call::Copy { destination: CopyEnd::Bytes(absent), .. } => {
                        let bytes = absent.len();
                        let part = || CallResult::Data(Bytes::from(data[..bytes as usize].to_vec()));
                        results.entry(bytes).or_insert_with(part).clone()
                    }
                    _ => CallResult::None,
                };
                server.queue_room(request.thread, 1000);
                server.complete(request.thread, result);
            }
        });
        Ok(Node { folder, control, thread })
    }

    fn end(self) {
        self.control.program_ended(ProgramEnd::Exited(0));
        // A panic has been reported.
        let _ = self.thread.join();
    }
}
