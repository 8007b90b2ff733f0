//! A bench for one unit: it drives the unit as the engine does, and holds it to the rules of time.

use super::conduct::rules::{BrokenRule, MAXIMUM_CALLS, advance_alone, outbox_alone};
use super::containment;
use super::unit::{NextWake, Unit, Window};
use super::{Inbox, Outbox};
use balar_protocol::{Message, Payload, PortId, SimTime, UnitId};
use std::fmt;

/// A message that a unit sent: (arrival time, port, payload).
pub type Sent = (SimTime, PortId, Payload);

/// Drives one unit in its own tests, without an engine.
///
/// As in the engine, a unit is called where it is due and only there: when a message arrives, at the time of its own [`NextWake::At`], and
/// once at the start. A window begins with the earliest such time. A unit that forgets to ask for a wake stays asleep.
#[derive(Debug)]
pub struct Bench {
    /// The outbox of the unit.
    pub out: Outbox,
    /// The messages that it is to receive, in any order.
    pub inbox: Vec<Message>,
    /// The unit has run until here.
    now: SimTime,
    /// When it wants to wake: at the start, as every unit does.
    wake: SimTime,
    calls: u64,
}

impl Bench {
    /// A unit whose port i has the latency `latencies[i]`, wired to port i of unit 1.
    pub fn new(latencies: &[SimTime]) -> Bench {
        Bench {
            out: outbox_alone(latencies.iter().copied()),
            inbox: Vec::new(),
            now: SimTime::ZERO,
            wake: SimTime::ZERO,
            calls: 0,
        }
    }

    /// Queues a message that arrives at `port` at `time`.
    pub fn deliver(&mut self, time: SimTime, port: PortId, payload: Payload) {
        self.inbox.push(Message { time, source: UnitId(1), port, payload });
    }

    /// When the unit is next due; [`SimTime::MAX`] where it sleeps and no message is queued.
    pub fn next_event(&self) -> SimTime {
        let arrival = self.inbox.iter().map(|message| message.time).min().unwrap_or(SimTime::MAX);
        arrival.min(self.wake).max(self.now)
    }

    /// The messages that the unit has sent since the last call of this function.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        let sent = self.out.take_sent().into_iter();
        sent.map(|(_, message)| (message.time, message.port, message.payload)).collect()
    }

    /// The end of the last window.
    pub fn asleep_since(&self) -> SimTime {
        self.now
    }

    /// Runs the unit in windows of at most `window` until `end`, and returns the messages that it sent.
    ///
    /// # Panics
    ///
    /// Where the unit breaks a rule, with the rule's text.
    pub fn run(&mut self, unit: &mut dyn Unit, window: SimTime, end: SimTime) -> Vec<Sent> {
        self.try_run(unit, window, end).unwrap_or_else(|broken| panic!("{broken}"))
    }

    /// As [`Bench::run`].
    ///
    /// # Errors
    ///
    /// The rule that the unit broke.
    pub fn try_run(&mut self, unit: &mut dyn Unit, window: SimTime, end: SimTime) -> Result<Vec<Sent>, BrokenRule> {
        loop {
            let start = self.next_event();
            if start >= end {
                break;
            }
            self.call(unit, Window { start, until: start.saturating_add(window).min(end) })?;
        }
        self.now = self.now.max(end);
        Ok(self.take_sent())
    }

    /// Calls the unit once, with the messages of `window`, whether or not it is due. Its messages stay in [`Bench::out`].
    ///
    /// # Errors
    ///
    /// The rule that the unit broke.
    pub fn call(&mut self, unit: &mut dyn Unit, window: Window) -> Result<(), BrokenRule> {
        containment::install();
        let (due, rest): (Vec<Message>, Vec<Message>) =
            self.inbox.drain(..).partition(|message| message.time < window.until);
        self.inbox = rest;
        let mut inbox = Inbox::default();
        inbox.extend(due.into_iter().map(Some));
        inbox.sort();
        let next = advance_alone(unit, window, &mut inbox, &mut self.out)?;
        self.now = window.until;
        self.wake = match next {
            NextWake::At(at) => at,
            NextWake::OnMessage => SimTime::MAX,
        };
        self.calls += 1;
        if self.calls > MAXIMUM_CALLS {
            return Err(BrokenRule::Restless { at: self.now });
        }
        Ok(())
    }

    /// Runs `test` with windows of `longest`, a half and a seventh of it, and of one picosecond, which holds a single moment; returns the
    /// result of `test`.
    ///
    /// # Panics
    ///
    /// Where it does not always return the same.
    pub fn in_windows_of_any_length<T: PartialEq + fmt::Debug>(
        longest: SimTime,
        mut test: impl FnMut(SimTime) -> T,
    ) -> T {
        let whole = test(longest);
        for length in window_lengths(longest).into_iter().skip(1) {
            let other = test(length);
            assert!(
                other == whole,
                "the unit does something else in windows of {length} than in windows of {longest}; rule: where windows end \
                 changes nothing\nin windows of {longest}: {whole:#?}\nin windows of {length}: {other:#?}"
            );
        }
        whole
    }
}

/// `longest`, a half and a seventh of it, and one picosecond.
pub(crate) fn window_lengths(longest: SimTime) -> [SimTime; 4] {
    let part = |divisor: u64| SimTime((longest.0 / divisor).max(1));
    [longest, part(2), part(7), SimTime(1)]
}

#[cfg(test)]
mod tests {
    use super::super::containment::contain;
    use super::*;
    use balar_protocol::statistics::StatisticSink;

    /// Sends an echo of each message after 5 ns, and does so at a wake.
    #[derive(Default)]
    struct Echo {
        due: Vec<(SimTime, [u64; 3])>,
        calls: Vec<SimTime>,
        mistake: Mistake,
    }

    #[derive(Default, PartialEq)]
    enum Mistake {
        #[default]
        None,
        ForgetsToWake,
        LeavesMessages,
        WakesInThePast,
        SendsIntoThePast,
        NeverRests,
        TellsTheWindow,
    }

    impl Unit for Echo {
        fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
            self.calls.push(window.start);
            if self.mistake == Mistake::LeavesMessages {
                return NextWake::OnMessage;
            }
            while let Some(message) = inbox.take() {
                let Payload::Custom(words) = message.payload else { continue };
                self.due.push((message.time + SimTime::from_nanoseconds(5), words));
            }
            let told = if self.mistake == Mistake::TellsTheWindow { window.until.0 - window.start.0 } else { 0 };
            for (at, [a, b, _]) in self.due.extract_if(.., |(at, _)| *at < window.until) {
                let early = SimTime(if self.mistake == Mistake::SendsIntoThePast { 1 } else { 0 });
                out.send(PortId(0), at - early, Payload::Custom([a, b, told]));
            }
            match (self.due.first(), &self.mistake) {
                (_, Mistake::ForgetsToWake) => NextWake::OnMessage,
                (_, Mistake::NeverRests) => NextWake::At(window.until),
                (_, Mistake::WakesInThePast) => NextWake::At(window.start),
                (Some(&(at, _)), _) => NextWake::At(at),
                (None, _) => NextWake::OnMessage,
            }
        }

        fn statistics(&self, _: &mut StatisticSink) {}

        fn outstanding(&self) -> Option<String> {
            None
        }
    }

    const WIRE: SimTime = SimTime::from_nanoseconds(10);

    fn run(mistake: Mistake, window: SimTime) -> (Result<Vec<Sent>, BrokenRule>, Vec<SimTime>) {
        let mut bench = Bench::new(&[WIRE]);
        let mut unit = Echo { mistake, ..Echo::default() };
        bench.deliver(SimTime(20_000), PortId(0), Payload::Custom([1, 2, 3]));
        bench.deliver(SimTime(51_000), PortId(0), Payload::Custom([4, 5, 6]));
        (bench.try_run(&mut unit, window, SimTime(1_000_000)), unit.calls)
    }

    #[test]
    fn a_unit_is_called_where_it_is_due_and_only_there() {
        let (sent, calls) = run(Mistake::None, SimTime(1_000));
        let sent = sent.expect("no rule is broken");
        assert_eq!(sent.iter().map(|(time, _, _)| time.0).collect::<Vec<_>>(), [35_000, 66_000]);
        // At the start, for each message, and 5 ns after each.
        assert_eq!(calls.iter().map(|time| time.0).collect::<Vec<_>>(), [0, 20_000, 25_000, 51_000, 56_000]);
    }

    #[test]
    fn a_unit_that_forgets_to_wake_stays_asleep() {
        let (sent, calls) = run(Mistake::ForgetsToWake, SimTime(1_000));
        // The second message wakes it for work that was due before; nothing wakes it for its own.
        assert_eq!(calls.len(), 3);
        assert!(matches!(sent, Err(BrokenRule::Panicked { .. })), "what was due before is in the past: {sent:?}");
    }

    #[test]
    fn broken_rules_are_named() {
        for (mistake, text) in [
            (Mistake::LeavesMessages, "left 1 messages in its inbox in the window from 20000 ps to 21000 ps"),
            (Mistake::WakesInThePast, "wants to wake at 0 ps, in the window from 0 ps to 1000 ps"),
            (Mistake::SendsIntoThePast, "sent at 24999 ps, before the window's start at 25000 ps"),
        ] {
            let (sent, _) = run(mistake, SimTime(1_000));
            let broken = sent.expect_err(text).to_string();
            assert!(broken.contains(text), "{broken}");
        }
    }

    #[test]
    fn a_unit_that_never_rests_is_stopped() {
        let mut bench = Bench::new(&[WIRE]);
        let mut unit = Echo { mistake: Mistake::NeverRests, ..Echo::default() };
        let sent = bench.try_run(&mut unit, SimTime(1), SimTime::MAX);
        assert_eq!(sent.map(|sent| sent.len()), Err(BrokenRule::Restless { at: SimTime(MAXIMUM_CALLS + 1) }));
    }

    #[test]
    fn windows_of_any_length_are_compared() {
        let test = |mistake: fn() -> Mistake| {
            move |window| run(mistake(), window).0.map(|sent| format!("{sent:?}")).expect("no rule is broken")
        };
        Bench::in_windows_of_any_length(WIRE, test(|| Mistake::None));
        let different = contain(|| Bench::in_windows_of_any_length(WIRE, test(|| Mistake::TellsTheWindow)));
        let text = different.expect_err("windows are told apart");
        assert!(text.contains("in windows of 5000 ps than in windows of 10000 ps"), "{text}");
    }
}
