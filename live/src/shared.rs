//! The state that the parts of the live side share: the run, as it is followed and held.

use super::access::Access;
use super::follower::Follower;
use super::shared_memory::SharedBoard;
use super::state::{LiveState, Phase};
use balar_actors::engine::RunControl;
use balar_protocol::SimTime;
use balar_record::system::failure::say;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long an order waits for the run to be held.
const ORDER_TIME: Duration = Duration::from_secs(1);
/// Between two looks at whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// How a run is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It stands still.
    Pause,
    /// It goes on.
    Resume,
    /// It goes on for so much simulated time, and stands still.
    Step(SimTime),
}

/// The run, as it is followed and held.
pub struct Shared {
    /// Who may ask.
    pub access: Access,
    /// The picture of the node.
    pub picture: String,
    follower: Arc<Mutex<Follower>>,
    control: RunControl,
    states: watch::Sender<Arc<LiveState>>,
}

/// The answer to the question what units wait for, or that it is not known.
#[derive(Serialize)]
struct WaitingReport {
    /// Has the run answered?
    answered: bool,
    /// How long it has owed an answer.
    unanswered_seconds: f64,
    /// When in simulated time that was.
    sim_ps: u64,
    /// A line for units that wait alike.
    waiting: Vec<String>,
    /// Why there is no answer, and the last sign of life of the run.
    silence: Option<String>,
}

impl Shared {
    /// The state of a run that has not begun.
    pub fn new(access: Access, picture: String, follower: Arc<Mutex<Follower>>, control: RunControl) -> Shared {
        Shared { access, picture, follower, control, states: watch::Sender::new(Arc::default()) }
    }

    /// Follows the run.
    pub fn follower(&self) -> MutexGuard<'_, Follower> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state that was published last.
    pub fn state(&self) -> Arc<LiveState> {
        Arc::clone(&self.states.borrow())
    }

    /// The states as they are published.
    pub fn states(&self) -> watch::Receiver<Arc<LiveState>> {
        self.states.subscribe()
    }

    /// Does nobody wait for a state any more?
    pub fn is_alone(&self) -> bool {
        self.states.receiver_count() == 0
    }

    /// Publishes how the run is, and asks it for its next sample.
    pub fn publish(&self, memory: &mut Option<SharedBoard>) {
        let (state, layout, values, may_ask) = {
            let mut follower = self.follower();
            let state = follower.look(self.control.is_held());
            (state, follower.layout(), follower.values().to_vec(), follower.may_ask())
        };
        if may_ask {
            self.control.ask();
        }
        if let (Some(layout), Some(board)) = (layout, memory.as_mut())
            && let Err(cause) = board.publish(&state, &layout, &values)
        {
            say(format_args!("the run is no longer published in shared memory: {cause}"));
            *memory = None;
        }
        self.states.send_replace(Arc::new(state));
    }

    /// Lets the run stand still or go on, and returns whether it stands still. A run that cannot stop yet does when it can.
    pub async fn order(&self, order: Order) -> Result<bool, String> {
        let phase = self.state().phase;
        if matches!(phase, Phase::Concluding | Phase::Ended) {
            return Err("the run is over".to_owned());
        }
        let has_happened = |is_held: bool| match order {
            Order::Pause => is_held,
            Order::Resume => !is_held,
            Order::Step(_) => true,
        };
        match order {
            Order::Pause => self.control.pause(),
            Order::Resume => self.control.resume(),
            Order::Step(time) => self.control.step(time),
        }
        for _ in 0..ORDER_TIME.as_millis() / LOOK.as_millis() {
            if has_happened(self.control.is_held()) {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(self.control.is_held())
    }

    /// The waiting units as JSON, or, after `limit`, that the run has not answered.
    pub async fn waiting(&self, limit: Duration) -> String {
        let before = {
            let mut follower = self.follower();
            if follower.may_ask() {
                self.control.ask();
            }
            follower.samples()
        };
        let mut has_answered = false;
        for _ in 0..limit.as_millis() / LOOK.as_millis() {
            has_answered = self.follower().samples() > before;
            if has_answered || self.state().phase == Phase::Ended {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        let (state, lines) = {
            let mut follower = self.follower();
            (follower.glance(self.control.is_held()), follower.waiting_lines())
        };
        let waiting = WaitingReport {
            answered: has_answered,
            unanswered_seconds: state.unanswered_seconds,
            sim_ps: state.sampled_ps,
            silence: state.silence(),
            waiting: lines,
        };
        serde_json::to_string(&waiting).unwrap_or_default()
    }
}
