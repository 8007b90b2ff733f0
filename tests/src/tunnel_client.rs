//! A program that makes CUDA calls through the tunnel by itself, to test `balar-actors run` where there is no CUDA.
//!
//! ```text
//! tunnel-client exit CODE            one call, then this exit code
//! tunnel-client busy                 copies there and back for ever; code 9 once a call fails
//! tunnel-client threads N ROUNDS     N threads that copy there and back
//! tunnel-client copy BYTES ROUNDS    large copies there and back
//! tunnel-client vectoradd N          loads PTX from standard input, adds two vectors, checks the sum
//! tunnel-client wait                 one call, then sleeps for ever
//! tunnel-client twice PROGRAM...     one call, then runs a program that makes calls too while this one lives
//! ```

use balar_host::tunnel::{Client, Role, SOCKET_VARIABLE};
use balar_host::{Bytes, Call, CallResult};
use std::io::{Read, Write};
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Exit code of a program whose call has failed.
const FAILED: u8 = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match act(&words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(std::io::stdout(), "failed: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn act(words: &[&str]) -> Result<u8, Failure> {
    match words {
        ["exit", code] => {
            connect()?.allocate(1000)?;
            Ok(code.parse()?)
        }
        ["busy"] => {
            let mut program = connect()?;
            let _ = writeln!(std::io::stdout(), "begins");
            for round in 0.. {
                program.there_and_back(1 + (round * 77_777) % 300_000, round)?;
            }
            Ok(0)
        }
        ["threads", threads, rounds] => {
            let (threads, rounds): (usize, usize) = (threads.parse()?, rounds.parse()?);
            let ends: Vec<_> = (0..threads)
                .map(|thread| {
                    std::thread::spawn(move || -> Result<(), Failure> {
                        let mut program = connect()?;
                        for round in 0..rounds {
                            program.there_and_back(1000 + 4321 * round, thread * 1000 + round)?;
                        }
                        Ok(())
                    })
                })
                .collect();
            for end in ends {
                end.join().map_err(|_| "a thread panicked")??;
            }
            Ok(0)
        }
        ["copy", bytes, rounds] => {
            let mut program = connect()?;
            for round in 0..rounds.parse()? {
                program.there_and_back(bytes.parse()?, round)?;
            }
            Ok(0)
        }
        ["vectoradd", elements] => {
            connect()?.add_vectors(elements.parse()?)?;
            Ok(0)
        }
        ["wait"] => {
            let mut program = connect()?;
            program.allocate(1000)?;
            let _ = writeln!(std::io::stdout(), "begins");
            std::thread::sleep(std::time::Duration::from_secs(3600));
            Ok(0)
        }
        ["twice", program, arguments @ ..] => {
            let mut own = connect()?;
            own.allocate(1000)?;
            let status = std::process::Command::new(program).args(arguments).status()?;
            own.allocate(1000)?;
            Ok(status.code().unwrap_or(255) as u8)
        }
        _ => Err("expected exit, busy, threads, copy, vectoradd, wait or twice".into()),
    }
}

/// A thread's connection.
struct Program(Client);

fn connect() -> Result<Program, Failure> {
    let socket = std::env::var_os(SOCKET_VARIABLE).ok_or("not started by balar-actors run")?;
    Ok(Program(Client::connect(socket.as_ref(), Role::Thread)?.0))
}

impl Program {
    fn call(&mut self, call: &Call) -> Result<CallResult, Failure> {
        self.call_with(call, &[], &mut |_, _| {})
    }

    fn call_with(
        &mut self,
        call: &Call,
        payloads: &[&[u8]],
        sink: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<CallResult, Failure> {
        match self.0.call(0, 0, call, payloads, sink)?.result {
            CallResult::Error(error) => Err(format!("{}: {error}", call.name()).into()),
            result => Ok(result),
        }
    }

    fn allocate(&mut self, bytes: usize) -> Result<u64, Failure> {
        match self.call(&Call::Malloc { bytes: bytes as u64 })? {
            CallResult::Pointer(pointer) => Ok(pointer),
            other => Err(format!("{other:?} in place of a pointer").into()),
        }
    }

    fn upload(&mut self, destination: u64, bytes: &[u8]) -> Result<(), Failure> {
        let data = Bytes::absent(bytes.len() as u64);
        let call = Call::copy_to_device(destination, data, 0, false);
        self.call_with(&call, &[bytes], &mut |_, _| {})?;
        Ok(())
    }

    fn download(&mut self, source: u64, bytes: usize) -> Result<Vec<u8>, Failure> {
        let mut data = vec![0; bytes];
        let call = Call::copy_from_device(source, bytes as u64, 0, 0, false);
        let mut sink = |offset: u64, part: &[u8]| {
            let start = offset as usize;
            if let Some(place) = data.get_mut(start..start + part.len()) {
                place.copy_from_slice(part);
            }
        };
        self.call_with(&call, &[], &mut sink)?;
        Ok(data)
    }

    fn there_and_back(&mut self, bytes: usize, seed: usize) -> Result<(), Failure> {
        let sent: Vec<u8> = (0..bytes).map(|index| ((index + seed) % 251) as u8).collect();
        let pointer = self.allocate(bytes)?;
        self.upload(pointer, &sent)?;
        let back = self.download(pointer, bytes)?;
        self.call(&Call::Free { pointer })?;
        if back == sent { Ok(()) } else { Err(format!("{bytes} bytes came back changed").into()) }
    }

    /// Adds vectors with the kernel of the PTX on standard input, which takes two addends, the sum and their length.
    fn add_vectors(&mut self, elements: usize) -> Result<(), Failure> {
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text)?;
        let images = vec![Bytes::absent(text.len() as u64)];
        let load = Call::ModuleLoad { images, name: "standard input".to_owned() };
        let loaded = self.call_with(&load, &[&text], &mut |_, _| {})?;
        let CallResult::Module { module, functions, .. } = loaded else { return Err("no module".into()) };
        let name = functions.first().ok_or("no kernel")?.name.clone();
        let values =
            |factor: f32| -> Vec<u8> { (0..elements).flat_map(|i| (i as f32 * factor).to_le_bytes()).collect() };
        let (a, b) = (values(1.0), values(2.0));
        let pointers = [self.allocate(a.len())?, self.allocate(a.len())?, self.allocate(a.len())?];
        self.upload(pointers[0], &a)?;
        self.upload(pointers[1], &b)?;
        let mut parameters: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        parameters.extend_from_slice(&(elements as u32).to_le_bytes());
        self.call(&Call::Launch(balar_host::call::Launch {
            function: balar_host::call::Function { module, name },
            grid: [elements.div_ceil(256) as u32, 1, 1],
            block: [256, 1, 1],
            shared_memory_bytes: 0,
            stream: 0,
            parameters,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
            access_policy: None,
        }))?;
        let sum = self.download(pointers[2], a.len())?;
        if sum == values(3.0) { Ok(()) } else { Err("the sum is wrong".into()) }
    }
}
