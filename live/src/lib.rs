//! A run that can be looked at while it goes on: a page and Prometheus's text over HTTP on 127.0.0.1, shared memory, and `watch`.
//!
//! ```text
//!   engine ── samples ──► Follower ──► LiveState ─┬─► page, /api/..., /metrics   (server.rs)
//!   LiveBoard ────────────────┘                   ├─► shared memory              (shared_memory/)
//!   RunControl ◄── pause, step, resume ───────────┴─◄ page, watch
//! ```
//!
//! A thread looks at the run five times a second of real time and asks it for a sample then, so that nothing is done per simulated time.
//!
//! **Invariant:** the results of a run do not depend on whether it is looked at, nor on how often.

mod access;
mod connections;
pub mod estimate;
mod follower;
mod prometheus;
mod server;
mod shared;
pub mod shared_memory;
pub mod state;
mod stopwatch;
pub mod text;

use access::Access;
use balar_actors::engine::{LiveBoard, Observer, RunControl};
use balar_actors::topology::{self, Topology};
use balar_record::ending::Ending;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::result::RunRecord;
use balar_record::system::failure::{Failure, say};
use follower::Follower;
use futures::future::select;
use shared::Shared;
use shared_memory::SharedBoard;
use state::RunFacts;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Between two looks at the run.
const PERIOD: Duration = Duration::from_millis(200);
/// How long a run that is over waits for pages to take how it ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The node of a run, and the work on it.
#[derive(Clone, Debug)]
pub struct WhatRuns {
    /// The name of the workload or the program.
    pub name: String,
    /// Is it a program of the user's own, which computes between its calls?
    pub is_program: bool,
}

/// The live side of a run. Dropped, it says that the run ended without a result.
pub struct Live {
    follower: Arc<Mutex<Follower>>,
    control: RunControl,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Begins to listen, and says where on stderr.
    ///
    /// # Errors
    ///
    /// If the port is in use, or the system refuses something.
    pub fn start(port: u16, topology: &Topology, work: WhatRuns, board: &LiveBoard) -> Result<Live, Failure> {
        let cannot =
            |what: &str, cause: &dyn std::fmt::Display| Failure::input(format_args!("--live: cannot {what}: {cause}"));
        let listener = listen(port)?;
        let own = listener.local_addr().map_err(|cause| cannot("listen", &cause))?.port();
        let access = Access::new(own).map_err(|cause| cannot("make a token", &cause))?;
        let facts = RunFacts {
            pid: std::process::id(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            topology: topology.name.clone(),
            workload: work.name,
            is_program: work.is_program,
        };
        let follower = Arc::new(Mutex::new(Follower::new(facts, NodeFacts::of(topology), board.clone())));
        let memory = SharedBoard::create(own, access.token());
        let memory = memory
            .inspect_err(|cause| say(format_args!("live: the run is not published in shared memory: {cause}")))
            .ok();
        let control = RunControl::default();
        let address = access.address();
        let picture = topology::live_svg(topology);
        let shared = Arc::new(Shared::new(access, picture, Arc::clone(&follower), control.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|cause| cannot("listen", &cause))?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(|cause| cannot("listen", &cause))?
        };
        let (stop, stopped) = oneshot::channel();
        let is_published = memory.is_some();
        let work = move || {
            let serve = server::serve(listener, Arc::clone(&shared));
            let publish = publish(shared, memory, stopped);
            runtime.block_on(async {
                // Serving goes on for as long as the run is published.
                let (serve, publish) = (pin!(serve), pin!(publish));
                select(serve, publish).await;
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("live".to_owned()).spawn(work);
        let thread = thread.map_err(|cause| cannot("start a thread", &cause))?;
        match is_published {
            true => say(format_args!("live: {address}  (in a terminal: balar-actors watch {})", std::process::id())),
            false => say(format_args!("live: {address}")),
        }
        Ok(Live { follower, control, stop: Some(stop), thread: Some(thread) })
    }

    /// Who takes samples of the run.
    pub fn observer(&self) -> Arc<Mutex<dyn Observer>> {
        Arc::clone(&self.follower) as Arc<Mutex<dyn Observer>>
    }

    /// The control that holds the run, and asks it.
    pub fn control(&self) -> RunControl {
        self.control.clone()
    }

    /// Ends the live side: says how the run ended to all who look at it.
    pub fn end(&mut self, ending: &str) {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).end(ending.to_owned());
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing, and the panic hook reports a panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end("ended without a result");
    }
}

/// How a run ended, in words.
pub fn ending_of(record: &RunRecord) -> String {
    if let Some(problem) = record.problem() {
        return problem;
    }
    let how = match (record.ending == Ending::StopTime, record.verified()) {
        (true, _) => "ended by --stop-at",
        (false, Some(true)) => "completed, and the result is verified",
        (false, _) => "completed",
    };
    format!("{how}, at {}", text::simulated(record.sim_time.0))
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => Failure::mistake(
            format_args!("--live: port {port} of 127.0.0.1 is in use"),
            "name another port, or none: --live alone takes one that is free",
        ),
        io::ErrorKind::PermissionDenied => Failure::mistake(
            format_args!("--live: port {port} is not for ordinary users"),
            "name a port from 1024 on, or none: --live alone takes one that is free",
        ),
        _ => Failure::input(format_args!("--live: cannot listen on port {port} of 127.0.0.1: {cause}")),
    })
}

/// Publishes how the run is until it is over, and then waits for those who look to take the last of it.
async fn publish(shared: Arc<Shared>, mut memory: Option<SharedBoard>, mut stopped: oneshot::Receiver<()>) {
    loop {
        shared.publish(&mut memory);
        // The sender is dropped when the run is over.
        if tokio::time::timeout(PERIOD, &mut stopped).await.is_ok() {
            break;
        }
    }
    shared.publish(&mut memory);
    for _ in 0..LAST_WORDS.as_millis() / 10 {
        if shared.is_alone() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Bytes that have been handed to connections are sent.
    tokio::time::sleep(Duration::from_millis(20)).await;
}
