//! One direction of the crossbar: inputs, outputs, a queue for each pair, round-robin grants.
//!
//! An output has a set of inputs whose first packet can be granted, a bit each. Other inputs with packets for it wait in the order in which
//! their packets can be granted: a grant looks at neither more than once. A packet for an output that has no other packets is in no queue
//! until another one comes.
//!
//! **Invariant:** grants depend on the cycles of packets and credits alone, never on when they are computed: [`Plane::grant`] is told
//! up to which cycle everything has arrived.

use crate::gpu::places::Places;
use crate::slab::chains::{Chain, Chains};
use balar_protocol::memory::Credits;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Shape and speed of a plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneConfiguration {
    pub inputs: usize,
    pub outputs: usize,
    /// Flits a cycle an input injects.
    pub input_flits: Ends<u64>,
    /// Flits a cycle an output ejects.
    pub output_flits: Ends<u64>,
    /// Cycles from grant to departure.
    pub latency: u64,
    /// Packets an output may send before a credit returns; 0 = any number.
    pub credits: u32,
    /// Packets of an input that may wait, of inputs whose sender counts them; 0 = any number.
    pub places: u32,
}

/// Something of each end of a side: that of most ends, and that of those from one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<T> {
    pub most: T,
    pub rest_from: usize,
    pub rest: T,
}

impl<T: Copy> Ends<T> {
    /// The same for all.
    pub fn all(of_each: T) -> Ends<T> {
        Ends { most: of_each, rest_from: usize::MAX, rest: of_each }
    }

    #[inline]
    fn of(&self, end: usize) -> T {
        if end < self.rest_from { self.most } else { self.rest }
    }
}

/// An input's sender gets places back so many together, as an eighth of the queue: each has a message of its own otherwise.
fn places_together(places: u32) -> usize {
    (places as usize / 8).clamp(1, Credits::MOST)
}

/// The counters of a plane.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct PlaneCounters {
    pub packets: u64,
    pub flits: u64,
    /// Cycles from arrival to departure, summed over packets.
    pub latency: u64,
    pub queue_maximum: u64,
    pub credit_stalls: u64,
}

/// Small, because many wait where slices give no credits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Packet<T> {
    /// When it came.
    arrived: u64,
    /// Cycles from then to the first in which its head can be granted.
    eligible_after: u32,
    /// Cycles from then to the one in which its last flit is injected.
    tail_after: u32,
    flits: u32,
    content: T,
}

impl<T> Packet<T> {
    #[inline]
    fn eligible(&self) -> u64 {
        self.arrived + u64::from(self.eligible_after)
    }
}

/// Flit slots: so many a cycle.
#[derive(Clone, Copy, Debug)]
struct Slots {
    per_cycle: u64,
    /// Where that is a power of two: which.
    shift: Option<u32>,
}

impl Slots {
    fn new(per_cycle: u64) -> Slots {
        Slots { per_cycle, shift: per_cycle.is_power_of_two().then(|| per_cycle.trailing_zeros()) }
    }

    /// The cycle of a slot.
    #[inline]
    fn cycle_of(self, slot: u64) -> u64 {
        self.shift.map_or_else(|| slot / self.per_cycle, |shift| slot >> shift)
    }

    /// The first slot of a cycle.
    #[inline]
    fn first_of(self, cycle: u64) -> u64 {
        cycle * self.per_cycle
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Output<T> {
    /// First free flit slot (cycle x flits a cycle).
    free: u64,
    /// No grant before this cycle, by the packets that wait; `u64::MAX` where none waits.
    next: u64,
    /// The input granted last.
    last: u32,
    waiting: u32,
    /// Those of the queue behind it.
    credits: Places,
    /// Inputs whose first packet can be granted later, with the first cycle in which it can, in this order.
    later: VecDeque<(u64, u32)>,
    packets: u64,
    flits: u64,
    /// The only packet that waits, with its input, where it came to an output that none waited for. It is in no queue.
    alone: Option<(u32, Packet<T>)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Input {
    /// First free flit slot.
    free: u64,
    packets: u64,
    /// The cycles in which places get free that its sender does not know of; `None` where it does not count them.
    freed: Option<Vec<u64>>,
}

/// Everything that changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlaneState<T> {
    outputs: Vec<Output<T>>,
    inputs: Vec<Input>,
    /// The packets of each (output, input).
    queues: Vec<Chain>,
    /// Inputs whose first packet can be granted, for each output, as a bit set.
    ready: Vec<u64>,
    /// Outputs that packets wait for, as a bit set.
    busy: Vec<u64>,
    packets: Chains<Packet<T>>,
    counters: PlaneCounters,
}

/// One direction of the crossbar.
#[derive(Debug)]
pub(super) struct Plane<T> {
    configuration: PlaneConfiguration,
    input_slots: Ends<Slots>,
    output_slots: Ends<Slots>,
    /// Words of a bit set of inputs.
    words: usize,
    /// Places that an input's sender gets back together.
    together: usize,
    pub state: PlaneState<T>,
}

impl<T: Copy> Plane<T> {
    pub fn new(configuration: PlaneConfiguration) -> Plane<T> {
        let PlaneConfiguration { inputs, outputs, credits, .. } = configuration;
        let output = Output {
            free: 0,
            next: u64::MAX,
            last: inputs.saturating_sub(1) as u32,
            waiting: 0,
            credits: Places::of_queue(credits),
            later: VecDeque::new(),
            packets: 0,
            flits: 0,
            alone: None,
        };
        let words = inputs.div_ceil(64).max(1);
        let state = PlaneState {
            outputs: vec![output; outputs],
            inputs: vec![Input { free: 0, packets: 0, freed: None }; inputs],
            queues: vec![Chain::default(); inputs * outputs],
            ready: vec![0; words * outputs],
            busy: vec![0; outputs.div_ceil(64)],
            packets: Chains::default(),
            counters: PlaneCounters::default(),
        };
        let slots = |flits: Ends<u64>| Ends {
            most: Slots::new(flits.most),
            rest_from: flits.rest_from,
            rest: Slots::new(flits.rest),
        };
        let [input_slots, output_slots] = [configuration.input_flits, configuration.output_flits].map(slots);
        Plane {
            together: places_together(configuration.places),
            configuration,
            input_slots,
            output_slots,
            words,
            state,
        }
    }

    /// The sender of an input counts the places of its queue.
    pub fn count_places(&mut self, input: usize) {
        if self.configuration.places > 0 {
            self.state.inputs[input].freed = Some(Vec::new());
        }
    }

    /// Is `state` of a plane of this shape?
    pub fn fits(&self, state: &PlaneState<T>) -> bool {
        let PlaneConfiguration { inputs, outputs, .. } = self.configuration;
        let right = |output: &Output<T>| {
            let input_of_alone = output.alone.as_ref().map_or(0, |(input, _)| *input);
            (output.last.max(input_of_alone) as usize) < inputs.max(1)
        };
        (state.inputs.len(), state.outputs.len()) == (inputs, outputs)
            && state.inputs.iter().zip(&self.state.inputs).all(|(a, b)| a.freed.is_some() == b.freed.is_some())
            && (state.queues.len(), state.ready.len()) == (inputs * outputs, self.words * outputs)
            && state.busy.len() == outputs.div_ceil(64)
            && state.outputs.iter().all(right)
    }

    /// Takes in a packet that arrives at `input` in `cycle` and leaves through `output`. Grants of that output before `cycle` have
    /// been computed.
    pub fn push(&mut self, input: usize, output: usize, cycle: u64, flits: u32, content: T) {
        let slots = self.input_slots.of(input);
        let state = &mut self.state;
        let source = &mut state.inputs[input];
        let start = slots.first_of(cycle).max(source.free);
        let end = start + u64::from(flits);
        source.free = end;
        source.packets += 1;
        let eligible = slots.cycle_of(start);
        let [eligible_after, tail_after] = [eligible, slots.cycle_of(end - 1)].map(|then| (then - cycle) as u32);
        let packet = Packet { arrived: cycle, eligible_after, tail_after, flits, content };
        let to = &mut state.outputs[output];
        to.waiting += 1;
        state.counters.queue_maximum = state.counters.queue_maximum.max(u64::from(to.waiting));
        if to.waiting == 1 {
            to.next = eligible;
            to.alone = Some((input as u32, packet));
            state.busy[output / 64] |= 1 << (output % 64);
            return;
        }
        if let Some((input, packet)) = to.alone.take() {
            self.enqueue(input, output, packet);
        }
        self.enqueue(input as u32, output, packet);
    }

    /// Puts a packet into its queue.
    fn enqueue(&mut self, input: u32, output: usize, packet: Packet<T>) {
        let PlaneState { outputs, queues, packets, .. } = &mut self.state;
        let (to, queue) = (&mut outputs[output], &mut queues[output * self.configuration.inputs + input as usize]);
        if queue.is_empty() {
            to.wait(packet.eligible(), input);
            to.next = to.next.min(packet.eligible());
        }
        packets.push(queue, packet);
    }

    /// Grants packets of `output` in cycles before `limit`, up to which every packet and credit is there; `send` gets the cycle in
    /// which each leaves. Returns the cycle of the next grant, `u64::MAX` where none is due before something else arrives.
    #[inline]
    pub fn grant(&mut self, output: usize, limit: u64, send: impl FnMut(u64, &T)) -> u64 {
        let next = self.state.outputs[output].next;
        if next < limit { self.grant_now(output, limit, send) } else { next }
    }

    fn grant_now(&mut self, output: usize, limit: u64, mut send: impl FnMut(u64, &T)) -> u64 {
        let PlaneConfiguration { inputs: input_count, latency, .. } = self.configuration;
        let slots = self.output_slots.of(output);
        let PlaneState { outputs, inputs, queues, ready, busy, packets, counters, .. } = &mut self.state;
        let to = &mut outputs[output];
        if let Some((input, packet)) = to.alone {
            let wanted = slots.cycle_of(to.free).max(packet.eligible());
            let Some(cycle) = to.take_credit(wanted, limit, counters) else { return to.next };
            let depart = to.let_go(input, &packet, slots, cycle, latency, counters);
            inputs[input as usize].free_place(depart - latency);
            send(depart, &packet.content);
            to.alone = None;
        } else {
            let ready = &mut ready[output * self.words..(output + 1) * self.words];
            let queues = &mut queues[output * input_count..(output + 1) * input_count];
            while to.waiting > 0 {
                // Without a credit, this is when the output would grant its next packet.
                let free = slots.cycle_of(to.free);
                let wanted = match to.later.front() {
                    Some(&(eligible, _)) if ready.iter().all(|&word| word == 0) => free.max(eligible),
                    _ => free,
                };
                let Some(cycle) = to.take_credit(wanted, limit, counters) else { return to.next };
                let input = to.choose(ready, cycle);
                let Some(packet) = packets.front(&queues[input]) else { unreachable!("input {input} is ready") };
                let depart = to.let_go(input as u32, packet, slots, cycle, latency, counters);
                inputs[input].free_place(depart - latency);
                send(depart, &packet.content);
                packets.drop_front(&mut queues[input]);
                match packets.front(&queues[input]).map(Packet::eligible) {
                    Some(eligible) if eligible <= cycle => insert(ready, input),
                    Some(eligible) => to.wait(eligible, input as u32),
                    None => {}
                }
            }
        }
        to.next = u64::MAX;
        busy[output / 64] &= !(1 << (output % 64));
        u64::MAX
    }

    /// [`Self::grant`] for every output; `send` gets the output, too.
    pub fn grant_all(&mut self, limit: u64, mut send: impl FnMut(usize, u64, &T)) -> u64 {
        let mut next = u64::MAX;
        for word in 0..self.state.busy.len() {
            let mut outputs = self.state.busy[word];
            while outputs != 0 {
                let output = word * 64 + outputs.trailing_zeros() as usize;
                outputs &= outputs - 1;
                next = next.min(self.grant(output, limit, |depart, content| send(output, depart, content)));
            }
        }
        next
    }

    /// A packet of `input` goes another way: it has no place from `cycle` on.
    pub fn free_place(&mut self, input: usize, cycle: u64) {
        self.state.inputs[input].free_place(cycle);
    }

    /// Tells senders of places that have got free in cycles before `limit`, up to which all packets have been granted: `tell` gets the input,
    /// the cycle of the last place and how many there are. Returns the cycle of the next that is known, `u64::MAX` where none is.
    pub fn give_back(&mut self, limit: u64, mut tell: impl FnMut(usize, u64, usize)) -> u64 {
        let together = self.together;
        let mut next = u64::MAX;
        for (input, freed) in self.state.inputs.iter_mut().map(|input| &mut input.freed).enumerate() {
            let Some(freed) = freed.as_mut().filter(|freed| freed.len() >= together) else { continue };
            // Outputs have granted their packets each for itself.
            freed.sort_unstable();
            let mut told = 0;
            while let Some(&last) = freed.get(told + together - 1) {
                if last >= limit {
                    next = next.min(last);
                    break;
                }
                tell(input, last, together);
                told += together;
            }
            freed.drain(..told);
        }
        next
    }

    /// A credit for `output` may be used from `cycle` on, which is not before those of earlier credits.
    #[inline]
    pub fn add_credit(&mut self, output: usize, cycle: u64) {
        let to = &mut self.state.outputs[output];
        if to.credits.next().is_none() && to.waiting > 0 {
            to.next = 0;
        }
        to.credits.add(cycle);
    }

    pub fn latency(&self) -> u64 {
        self.configuration.latency
    }

    pub fn counters(&self) -> &PlaneCounters {
        &self.state.counters
    }

    pub fn in_flight(&self) -> u64 {
        self.state.outputs.iter().map(|output| u64::from(output.waiting)).sum()
    }

    pub fn busy_cycles(&self) -> u64 {
        let flits = self.configuration.output_flits;
        let outputs = self.state.outputs.iter().enumerate();
        outputs.map(|(number, output)| output.flits.div_ceil(flits.of(number))).sum()
    }

    pub fn packets_out(&self, output: usize) -> u64 {
        self.state.outputs[output].packets
    }

    pub fn packets_in(&self, input: usize) -> u64 {
        self.state.inputs[input].packets
    }
}

impl Input {
    /// A packet leaves the queue in `cycle`.
    #[inline]
    fn free_place(&mut self, cycle: u64) {
        if let Some(freed) = &mut self.freed {
            freed.push(cycle);
        }
    }
}

impl<T> Output<T> {
    /// The cycle of the next grant, for which a credit is taken, if that is before `limit`. Without credits it would be in cycle
    /// `wanted`. Where it is not, `next` says when it is due.
    #[inline]
    fn take_credit(&mut self, wanted: u64, limit: u64, counters: &mut PlaneCounters) -> Option<u64> {
        let cycle = self.credits.next().map_or(u64::MAX, |credit| wanted.max(credit));
        if cycle >= limit {
            self.next = cycle;
            return None;
        }
        self.credits.take();
        counters.credit_stalls += cycle - wanted;
        Some(cycle)
    }

    /// A packet of `input` is granted in `cycle`: gives the cycle in which it leaves, `latency` cycles after its last flit is through.
    #[inline]
    fn let_go(
        &mut self,
        input: u32,
        packet: &Packet<T>,
        slots: Slots,
        cycle: u64,
        latency: u64,
        counters: &mut PlaneCounters,
    ) -> u64 {
        let end = slots.first_of(cycle).max(self.free) + u64::from(packet.flits);
        let depart = slots.cycle_of(end - 1).max(packet.arrived + u64::from(packet.tail_after)) + latency;
        self.free = end;
        self.last = input;
        self.waiting -= 1;
        self.packets += 1;
        self.flits += u64::from(packet.flits);
        counters.packets += 1;
        counters.flits += u64::from(packet.flits);
        counters.latency += depart - packet.arrived;
        depart
    }

    /// `input` waits for cycle `eligible`. Most often that is later than all others.
    #[inline]
    fn wait(&mut self, eligible: u64, input: u32) {
        match self.later.back() {
            Some(&(last, _)) if last > eligible => {
                let place = self.later.partition_point(|&(cycle, _)| cycle <= eligible);
                self.later.insert(place, (eligible, input));
            }
            _ => self.later.push_back((eligible, input)),
        }
    }

    /// The input whose first packet is granted in `cycle`. There is at least one. It is neither ready nor waiting any more.
    #[inline]
    fn choose(&mut self, ready: &mut [u64], cycle: u64) -> usize {
        while let Some(&(eligible, input)) = self.later.front()
            && eligible <= cycle
        {
            self.later.pop_front();
            insert(ready, input as usize);
        }
        let input = next_of(ready, self.last as usize + 1);
        ready[input / 64] &= !(1 << (input % 64));
        input
    }
}

#[inline]
fn insert(set: &mut [u64], member: usize) {
    set[member / 64] |= 1 << (member % 64);
}

/// The first member of a set that is not empty, from `from` on around.
#[inline]
fn next_of(set: &[u64], from: usize) -> usize {
    let first = from / 64;
    if let Some(word) = set.get(first) {
        let upper = word & !0 << (from % 64);
        if upper != 0 {
            return first * 64 + upper.trailing_zeros() as usize;
        }
    }
    let after = (first + 1..set.len()).chain(0..=first.min(set.len() - 1));
    let mut places = after.filter(|&word| set[word] != 0);
    places.next().map_or(0, |word| word * 64 + set[word].trailing_zeros() as usize)
}
