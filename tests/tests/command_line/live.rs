//! `--live` and `watch`, by real processes: their output, their refusals, and that nothing of them stays or changes a result.
#![expect(clippy::disallowed_types, reason = "the tests wait for processes in real time")]

use crate::call::{Called, call, call_in};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nothing here takes as long on the slowest machine.
const LIMIT: Duration = Duration::from_secs(120);
/// A workload that takes longer than any of these tests looks at it.
const LONG: &str = "gemm:size=2048";

fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// A run with `--live`. Dropped, it is killed.
struct Running {
    child: Child,
    port: u16,
    token: String,
}

impl Running {
    fn start(workload: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
        command.args(["--topology", "v100_node", "--workload", workload, "--live"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
        let (address, rest) =
            line.strip_prefix("live: http://127.0.0.1:").and_then(|line| line.split_once("  (")).expect("an address");
        let (port, token) = address.split_once("/?token=").expect("a token");
        assert_eq!(rest, format!("in a terminal: balar-actors watch {})\n", child.id()));
        Running { port: port.parse().expect("a port"), token: token.to_owned(), child }
    }

    fn memory(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/balar-actors.{}", self.child.id()))
    }

    /// Status and body of the answer to a request whose head is this, without the line that ends it.
    fn raw(&self, head: &str) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        stream
    }

    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let (port, token) = (self.port, &self.token);
        self.raw(&format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}"))
    }

    fn get(&self, path: &str) -> String {
        let (status, body) = self.ask("GET", path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.get("/api/state")).expect("JSON")
    }

    fn simulated(&self) -> u64 {
        self.state()["sim_ps"].as_u64().expect("a time")
    }

    fn wait_for_phase(&self, phase: &str) -> Value {
        wait_until(phase, || Some(self.state()).filter(|state| state["phase"] == phase))
    }

    fn wait_until_it_moves(&self) {
        self.wait_for_phase("running");
        let before = self.simulated();
        wait_until("simulated time moves", || (self.simulated() > before).then_some(()));
    }

    fn post(&self, path: &str) -> Value {
        let (status, body) = self.ask("POST", path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it was there");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(pid: u32) -> Called {
    call(&["watch", &pid.to_string()])
}

#[test]
fn a_port_in_use_is_an_error_before_the_run() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let called = call(&["--topology", "v100_node", "--workload", LONG, "--live", &port]);
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    for part in [format!("port {port} of 127.0.0.1 is in use"), "help: name another port, or none".to_owned()] {
        assert!(called.stderr.contains(&part), "{part}\n{}", called.stderr);
    }
    for wrong in ["65536", "web", "-1"] {
        let called = call(&["--topology", "v100_node", &format!("--live={wrong}")]);
        assert!(called.code == 2 && called.stderr.contains("not a port"), "{wrong}: {}", called.stderr);
    }
}

#[test]
fn only_requests_of_this_machine_with_the_token_are_answered() {
    let run = Running::start(LONG);
    let (port, token) = (run.port, &run.token);
    let host = format!("Host: 127.0.0.1:{port}");
    let of = |line: &str, headers: &str| run.raw(&format!("{line} HTTP/1.1\r\n{headers}")).0;
    let with_token = format!("GET /api/state?token={token}");
    assert_eq!(of(&with_token, &host), 200);
    assert_eq!(of("GET /api/state", &format!("{host}\r\nCookie: a=b; balar_{port}={token}")), 200);
    for path in ["/", "/api/state", "/metrics", "/page.js", "/nothing"] {
        assert_eq!(of(&format!("GET {path}"), &host), 401, "{path}");
    }
    assert_eq!(of(&format!("GET /api/state?token={}", "0".repeat(32)), &host), 401);
    assert_eq!(of("POST /api/pause", &host), 401);
    assert_eq!(of(&with_token, "Host: elsewhere.example"), 403, "a name that was made to stand for 127.0.0.1");
    assert_eq!(
        of(&format!("POST /api/pause?token={token}"), &format!("{host}\r\nOrigin: http://elsewhere.example")),
        403
    );
    assert_eq!(run.ask("GET", "/api/pause").0, 405, "a link or an image does not pause a run");
    assert_eq!(run.ask("POST", "/metrics").0, 405);
    assert_eq!(run.ask("GET", "/nothing").0, 404);
    assert_eq!(run.ask("POST", "/api/step?time=0ns").0, 400);
    assert_eq!(of(&with_token, &format!("{host}\r\nX-Long: {}", "x".repeat(64 << 10))), 431, "requests are bounded");
    assert_ne!(run.state()["phase"], "held", "nobody has paused it");
    // It does not listen on other addresses of this machine.
    let other = TcpStream::connect_timeout(&(Ipv4Addr::new(127, 0, 0, 2), port).into(), Duration::from_secs(2));
    assert!(other.is_err(), "{other:?}");
    let page = run.get("/");
    assert!(page.contains("<!doctype html>") && !page.contains(token.as_str()), "the page does not name the token");
    let picture = run.get("/api/topology");
    for unit in ["gpu.sm[83]", "gpu.crossbar", "data_link", "cpu"] {
        assert!(picture.contains(&format!("data-units=\"{unit}\"")), "{unit}");
    }
}

#[test]
fn a_run_is_paused_stepped_and_resumed() {
    let run = Running::start(LONG);
    run.wait_until_it_moves();
    assert_eq!(run.post("/api/pause")["held"], true);
    let held = run.wait_for_phase("held")["sim_ps"].as_u64().expect("a time");
    sleep(Duration::from_millis(600));
    assert_eq!(run.simulated(), held, "it stands still");
    let waiting: Value = serde_json::from_str(&run.get("/api/waiting")).expect("JSON");
    assert_eq!(waiting["answered"], true, "a run that is held answers: {waiting}");
    let lines = waiting["waiting"].as_array().expect("lines");
    assert!(lines.iter().any(|line| line.as_str().is_some_and(|line| line.contains("gpu"))), "{waiting}");

    run.post("/api/step?time=1us");
    wait_until("a step of 1 us moves it by 1 us", || (run.simulated() == held + 1_000_000).then_some(()));
    sleep(Duration::from_millis(600));
    assert_eq!(run.simulated(), held + 1_000_000, "it stands still");
    assert_eq!(run.state()["phase"], "held");
    assert_eq!(run.post("/api/resume")["held"], false);
    run.wait_for_phase("running");
    wait_until("it goes on", || (run.simulated() > held + 1_000_000).then_some(()));
}

#[test]
fn a_run_that_is_held_ends_when_it_is_told_to() {
    let mut run = Running::start(LONG);
    run.wait_until_it_moves();
    run.post("/api/pause");
    let mut events = run.connect();
    let (port, token) = (run.port, &run.token);
    write!(events, "GET /api/events?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let pid = rustix::process::Pid::from_raw(run.child.id() as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    assert_eq!(run.child.wait().expect("it ends").code(), Some(130));
    let mut told = String::new();
    events.read_to_string(&mut told).expect("it ends with the run");
    assert!(
        told.contains("\"phase\":\"ended\",\"ending\":\"interrupted"),
        "{}",
        &told[told.len().saturating_sub(2000)..]
    );
    assert!(!run.memory().exists(), "its shared memory goes with it");
}

#[test]
fn watchers_do_not_touch_the_run() {
    let mut run = Running::start(LONG);
    run.wait_until_it_moves();
    let pid = run.child.id();
    // Two watchers in terminals of their own. One of them is killed.
    let watchers = [(); 2].map(|()| {
        let program = env!("CARGO_BIN_EXE_command-line-under-test");
        let line = format!("stty cols 100 rows 30 && exec {program} watch {pid}");
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).spawn().expect("script is part of every Linux")
    });
    let [mut first, mut second] = watchers;
    for watcher in [&mut first, &mut second] {
        // It draws the name of the run first.
        let mut seen = Vec::new();
        let mut output = watcher.stdout.take().expect("piped");
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).contains("gemm") {
            assert!(output.read(&mut byte).is_ok_and(|read| read == 1), "it draws nothing");
            seen.push(byte[0]);
        }
        // A terminal that shows nothing more would hold the watcher up.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", first.id())).expect("it has a child");
    let child = children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a number");
    let child = rustix::process::Pid::from_raw(child).expect("a process");
    rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("sent");
    first.wait().expect("it ends with its child");
    run.wait_until_it_moves();

    // The other one pauses the run, and leaves it alone.
    second.stdin.as_mut().expect("piped").write_all(b"p").expect("a key");
    run.wait_for_phase("held");
    second.stdin.as_mut().expect("piped").write_all(b"r").expect("a key");
    run.wait_until_it_moves();
    second.stdin.as_mut().expect("piped").write_all(b"q").expect("a key");
    assert!(second.wait().expect("it ends").success());
    run.wait_until_it_moves();

    let snapshot = watch(pid);
    assert_eq!(snapshot.code, 0, "{}", snapshot.stderr);
    for part in ["gemm on v100_node, process ", "running", "gpu: SMs active ", " of 1024 CTAs, "] {
        assert!(snapshot.stdout.contains(part), "{part}\n{}", snapshot.stdout);
    }
    let other = Running::start(LONG);
    let several = call(&["watch"]);
    assert_eq!(several.code, 2);
    for part in
        [format!("  {pid}  gemm on v100_node, "), format!("  {}  gemm", other.child.id()), "help: name one".to_owned()]
    {
        assert!(several.stderr.contains(&part), "{part}\n{}", several.stderr);
    }
    run.kill();
}

#[test]
fn a_killed_simulator_leaves_no_shared_memory() {
    let mut run = Running::start(LONG);
    run.wait_until_it_moves();
    let memory = run.memory();
    assert!(memory.exists());
    run.kill();
    wait_until("it is removed", || (!memory.exists()).then_some(()));
    let called = watch(run.child.id());
    assert_eq!((called.code, called.stdout.as_str()), (2, ""));
    let text = format!("error: no run with --live has process number {}", run.child.id());
    assert!(called.stderr.starts_with(&text), "{}", called.stderr);
}

#[test]
fn connections_without_the_token_keep_nobody_out() {
    let run = Running::start(LONG);
    // Twice as many as there is room for: silent ones, and those that have begun a request.
    let idle: Vec<TcpStream> = (0..128)
        .map(|number| {
            let mut stream = run.connect();
            if number % 2 == 1 {
                stream.write_all(b"GET /api/state HTTP/1.1\r\n").expect("sent");
            }
            stream
        })
        .collect();
    let mut events = run.connect();
    let (port, token) = (run.port, &run.token);
    write!(events, "GET /api/events?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").expect("sent");
    let mut first = [0; 15];
    events.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    assert_eq!(run.ask("GET", "/api/state").0, 200);
    // The oldest were sent away for it, without a byte.
    for mut stream in idle.iter().take(64) {
        let read = stream.read(&mut [0; 64]).or_else(|error| match error.kind() {
            // What it has sent was not read.
            ErrorKind::ConnectionReset => Ok(0),
            _ => Err(error),
        });
        assert_eq!(read.expect("it is closed"), 0);
    }
    // Who has shown the token stays, whoever comes then.
    let more: Vec<TcpStream> = (0..128).map(|_| run.connect()).collect();
    assert_eq!(run.post("/api/pause")["held"], true);
    let mut seen = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("\"phase\":\"held\"") {
        let read = events.read(&mut part).expect("events go on");
        assert!(read > 0, "it was sent away");
        seen.extend_from_slice(&part[..read]);
    }
    drop((idle, more));
}

#[test]
fn a_run_goes_on_whose_name_for_shared_memory_is_taken() {
    // A folder is not removed as an object of shared memory is.
    let script = r#"mkdir /dev/shm/balar-actors.$$ && echo $$ && exec "$0" --topology v100_node --workload vectoradd:elements=256 --live"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_command-line-under-test")]).env_remove("RUST_LOG");
    let output = command.stdin(Stdio::null()).output().expect("sh is everywhere");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let (pid, result) = stdout.split_once('\n').expect("a process number");
    let taken = format!("/dev/shm/balar-actors.{pid}");
    std::fs::remove_dir(&taken).expect("it is left alone");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(result.contains("vectorAdd"), "{result}");
    let told = format!("live: the run is not published in shared memory: {taken} of the user with number ");
    assert!(stderr.starts_with(&told), "{stderr}");
    assert!(stderr.contains("\nlive: http://127.0.0.1:") && !stderr.contains("balar-actors watch"), "{stderr}");
}

/// The result without what may differ between two runs, and the series.
fn result(folder: &Path, name: &str, live: &[&str]) -> (Value, Vec<u8>) {
    let fixed =
        ["--topology", "v100_node", "--workload", "hotspot:size=64,iterations=2", "--format", "json", "--threads", "2"];
    let series = ["--sample-interval", "1 us", "--output", name];
    let called = call_in(folder, &[&fixed[..], &series[..], live].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    let mut result: Value = serde_json::from_str(&called.stdout).expect("JSON");
    for field in ["wall_seconds", "warp_instructions_per_second"] {
        result.as_object_mut().and_then(|result| result.remove(field)).expect(field);
    }
    (result, std::fs::read(folder.join(name).join("samples.jsonl")).expect("written"))
}

#[test]
fn results_are_those_of_a_run_that_nobody_looks_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = result(folder.path(), "alone", &[]);
    assert!(alone.1.len() > 1000);
    assert_eq!(result(folder.path(), "live", &["--live"]), alone);
}

/// Checks what the text format of Prometheus says of names, types, labels and values.
fn check_exposition(text: &str) {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (mut kind, mut family, mut seen) = (String::new(), String::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(name, help)| is_name(name) && !help.is_empty()), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').expect("a type");
            assert!(!seen.contains(&name.to_owned()), "{name} comes twice");
            assert!(of == "gauge" || of == "counter", "{line}");
            assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
            seen.push(name.to_owned());
            (family, kind) = (name.to_owned(), of.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(kind != "counter" || value >= 0.0, "{line}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert_eq!(name, family, "series follow their family");
        let labels = labels.strip_suffix('}').expect("closed");
        for label in labels.split("\",").filter(|label| !label.is_empty()) {
            assert!(label.split_once("=\"").is_some_and(|(name, _)| is_name(name)), "{line}");
        }
    }
    assert!(seen.len() > 40 && text.ends_with('\n'), "{}", seen.len());
}

#[test]
fn prometheus_finds_counters_of_gpus() {
    let run = Running::start(LONG);
    run.wait_until_it_moves();
    wait_until("instructions are counted", || {
        (run.state()["warp_instructions_per_second"].as_f64()? > 0.0).then_some(())
    });
    let text = run.get("/metrics");
    check_exposition(&text);
    for series in [
        "balar_gpu_sm_inst_executed_total{gpu=\"gpu\"} ",
        "balar_gpu_stall_long_scoreboard{gpu=\"gpu\"} ",
        "balar_node_link_bytes_total ",
        "balar_kernel_ctas{gpu=\"gpu\",kernel=\"",
        "balar_run_phase{phase=\"running\"} 1",
    ] {
        assert!(text.contains(&format!("\n{series}")), "{series}\n{text}");
    }
}
