//! Who may stay connected: those who have shown the token, and a few strangers, of whom the oldest goes when there are too many.
//!
//! **Invariant:** connections that never show the token keep nobody out who does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, oneshot};

/// Connections at a time that have shown the token: others wait for their answers.
const KNOWN: usize = 64;
/// Connections at a time that have not.
const STRANGERS: usize = 64;

/// All connections.
#[derive(Debug)]
pub struct Connections {
    places: Arc<Semaphore>,
    entered: AtomicU64,
    /// By number, and so by age: what sends each away.
    strangers: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
}

impl Default for Connections {
    fn default() -> Connections {
        let places = Arc::new(Semaphore::new(KNOWN));
        Connections { places, entered: AtomicU64::new(0), strangers: Mutex::default() }
    }
}

/// A connection. Dropped, its place is free.
#[derive(Debug)]
pub struct Visitor {
    connections: Arc<Connections>,
    number: u64,
    place: OnceCell<OwnedSemaphorePermit>,
}

impl Connections {
    fn strangers(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stranger connects, and tells by the receiver when it has to go: a value, and not that the sender is gone. Where there are too many
    /// strangers, the oldest has to.
    pub fn enter(self: &Arc<Connections>) -> (Visitor, oneshot::Receiver<()>) {
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        let (sender, sent_away) = oneshot::channel();
        let mut strangers = self.strangers();
        strangers.insert(number, sender);
        if strangers.len() > STRANGERS
            && let Some((_, oldest)) = strangers.pop_first()
        {
            // It may have gone by itself.
            let _ = oldest.send(());
        }
        drop(strangers);
        (Visitor { connections: Arc::clone(self), number, place: OnceCell::new() }, sent_away)
    }
}

impl Visitor {
    /// It has shown the token: it stays, and has a place once there is one.
    pub async fn is_known(&self) {
        self.connections.strangers().remove(&self.number);
        // The semaphore is never closed.
        let _ = self.place.get_or_try_init(|| Arc::clone(&self.connections.places).acquire_owned()).await;
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.connections.strangers().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::sync::oneshot::error::TryRecvError;

    #[test]
    fn the_oldest_stranger_goes_and_no_one_who_is_known() {
        let connections = Arc::new(Connections::default());
        let mut visitors: Vec<_> = (0..STRANGERS).map(|_| connections.enter()).collect();
        assert!(visitors.iter_mut().all(|(_, sent_away)| sent_away.try_recv() == Err(TryRecvError::Empty)));
        // The oldest shows the token: there is room for one more stranger.
        visitors[0].0.is_known().now_or_never().expect("there is a place");
        let newer = connections.enter();
        assert_eq!(visitors[0].1.try_recv(), Err(TryRecvError::Closed), "it stays");
        assert_eq!(visitors[1].1.try_recv(), Err(TryRecvError::Empty));
        // The next one is too many.
        let newest = connections.enter();
        assert_eq!(visitors[1].1.try_recv(), Ok(()));
        assert_eq!(visitors[2].1.try_recv(), Err(TryRecvError::Empty));
        // One that leaves makes room.
        drop(newer);
        let another = connections.enter();
        assert_eq!(visitors[2].1.try_recv(), Err(TryRecvError::Empty));
        drop((newest, another));
    }

    #[test]
    fn places_are_for_those_who_are_known() {
        let connections = Arc::new(Connections::default());
        let mut known: Vec<Visitor> = (0..KNOWN).map(|_| connections.enter().0).collect();
        for visitor in &known {
            visitor.is_known().now_or_never().expect("there is a place");
            visitor.is_known().now_or_never().expect("it has a place");
        }
        let (next, _sent_away) = connections.enter();
        assert!(next.is_known().now_or_never().is_none(), "it waits");
        known.pop();
        next.is_known().now_or_never().expect("one is free");
    }
}
