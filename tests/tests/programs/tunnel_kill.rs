//! Programs and simulators that are killed at any moment: nothing hangs, nothing is left behind, and each is told what happened.

#![expect(clippy::disallowed_types, reason = "the test waits for processes in real time")]

use balar_host::tunnel::SIMULATOR_ENDED;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Nothing takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// Moments at which each of the two is killed.
const MOMENTS: u64 = 50;

/// A run of the test program, with folders of its own.
struct Run {
    temporary: tempfile::TempDir,
    simulator: Child,
    stderr: mpsc::Receiver<String>,
}

impl Run {
    fn start(arguments: &[&str]) -> Run {
        let temporary = tempfile::tempdir().expect("a folder");
        // What started the test may have had signals ignored, as `nohup` does, and a run leaves ignored what was.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_command-line-under-test")]);
        command.args(["run", "--topology", "v100_node", "--", env!("CARGO_BIN_EXE_tunnel-client")]).args(arguments);
        command.env("TMPDIR", temporary.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut simulator = command.spawn().expect("starts");
        let stderr = read_to_end(simulator.stderr.take().expect("piped"));
        Run { temporary, simulator, stderr }
    }

    /// The program's process, once it has begun.
    fn program(&self) -> Option<Pid> {
        let children = format!("/proc/{0}/task/{0}/children", self.simulator.id());
        fs::read_to_string(children).ok()?.split_whitespace().find_map(|number| {
            let path = fs::read_link(format!("/proc/{number}/exe")).ok()?;
            let is_program = path == Path::new(env!("CARGO_BIN_EXE_tunnel-client")).canonicalize().ok()?;
            is_program.then(|| Pid::from_raw(number.parse().ok()?)).flatten()
        })
    }

    fn wait_for_program(&self) -> Pid {
        let start = Instant::now();
        loop {
            match self.program() {
                Some(program) => return program,
                None => assert!(start.elapsed() < LIMIT, "the program does not begin"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// All that was said on stderr, after everybody who could say more has ended.
    fn said(&self) -> String {
        self.stderr.recv_timeout(LIMIT).expect("everything ends in time")
    }

    /// Asserts that the run has left nothing.
    fn assert_cleared(&self) {
        let start = Instant::now();
        loop {
            let left: Vec<PathBuf> =
                fs::read_dir(self.temporary.path()).expect("a folder").flatten().map(|e| e.path()).collect();
            let processes = processes_that_name(self.temporary.path());
            let shared = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
            let shared = shared.filter(|e| e.file_name().to_string_lossy().contains("balar")).count();
            if left.is_empty() && processes.is_empty() && shared == 0 {
                return;
            }
            assert!(start.elapsed() < LIMIT, "left: {left:?}, processes {processes:?}, {shared} shared memories");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read_to_end(mut stream: ChildStderr) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let _ = send.send(String::from_utf8_lossy(&text).into_owned());
    });
    receive
}

/// Processes that have a path in their arguments or in what they have been told of the environment.
fn processes_that_name(path: &Path) -> Vec<String> {
    let needle = path.as_os_str().as_encoded_bytes();
    let names = |file: PathBuf| {
        let text = fs::read(file).unwrap_or_default();
        text.windows(needle.len()).any(|part| part == needle)
    };
    let numbers = fs::read_dir("/proc").expect("mounted").flatten().map(|entry| entry.file_name());
    let numbers =
        numbers.filter_map(|name| name.to_str().filter(|name| name.parse::<u32>().is_ok()).map(str::to_owned));
    let numbers = numbers.filter(|number| number.parse() != Ok(std::process::id()));
    numbers
        .filter(|number| ["cmdline", "environ"].iter().any(|file| names(format!("/proc/{number}/{file}").into())))
        .collect()
}

/// The same moments every time: from at once to well into the run.
fn moments() -> impl Iterator<Item = Duration> {
    let mut state = 4_u64;
    (0..MOMENTS).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros((state >> 33) % 300_000)
    })
}

#[test]
fn a_program_that_is_killed_ends_the_run_with_its_statistics() {
    for moment in moments() {
        let mut run = Run::start(&["busy"]);
        let program = run.wait_for_program();
        std::thread::sleep(moment);
        kill_process(program, Signal::KILL).expect("it lives");
        let said = run.said();
        let status = run.simulator.wait().expect("ours");
        assert_eq!(status.code(), Some(128 + 9), "after {moment:?}: {said}");
        assert!(said.contains("tunnel-client was killed by SIGKILL (signal 9)"), "after {moment:?}: {said}");
        assert!(said.contains("--- balar-actors: tunnel-client on v100_node ---"), "after {moment:?}: {said}");
        run.assert_cleared();
    }
}

#[test]
fn a_simulator_that_is_killed_ends_the_calls_of_its_program() {
    let mut told = 0;
    for (number, moment) in moments().enumerate() {
        let mut run = Run::start(&["busy"]);
        // Some on the way to the program's start.
        if number % 4 > 0 {
            run.wait_for_program();
        }
        std::thread::sleep(moment);
        run.simulator.kill().expect("ours");
        run.simulator.wait().expect("ours");
        let said = run.said();
        // Where the program had not begun, or had not connected, there is nothing, or another thing, to say.
        let early = said.is_empty() || said.contains("balar-actors: no connection to the simulator");
        assert!(early || said.matches(SIMULATOR_ENDED).count() == 1, "after {moment:?}: {said}");
        told += u64::from(!early);
        run.assert_cleared();
    }
    assert!(told > MOMENTS / 4, "{told} of {MOMENTS} programs had begun");
}

#[test]
fn a_run_that_is_ended_by_a_signal_passes_it_on() {
    for (signal, code) in [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::INT, 2)] {
        let mut run = Run::start(&["wait"]);
        run.wait_for_program();
        std::thread::sleep(Duration::from_millis(50));
        kill_process(Pid::from_child(&run.simulator), signal).expect("it lives");
        let said = run.said();
        assert_eq!(run.simulator.wait().expect("ours").code(), Some(128 + code), "{said}");
        assert!(said.contains("tunnel-client was killed by SIG"), "{said}");
        run.assert_cleared();
    }
}
