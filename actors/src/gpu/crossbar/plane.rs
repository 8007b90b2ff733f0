//! One direction of the crossbar: inputs, outputs, a queue for each pair, round-robin grants.

const NONE: u32 = u32::MAX;

/// Shape and speed of a plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneConfiguration {
    pub inputs: usize,
    pub outputs: usize,
    /// Flits a cycle an input injects.
    pub input_flits: u64,
    /// Flits a cycle an output ejects.
    pub output_flits: u64,
    /// Cycles from grant to departure.
    pub latency: u64,
    /// Packets an output may send before a credit returns; `None` = no limit.
    pub credits: Option<u32>,
}

/// What a plane counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaneCounters {
    pub packets: u64,
    pub flits: u64,
    pub latency: u64,
    pub queue_maximum: u64,
    pub credit_stalls: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet<T> {
    /// When it came.
    arrived: u64,
    /// First cycle in which its head can be granted.
    eligible: u64,
    /// Cycle in which its last flit is injected.
    tail: u64,
    flits: u32,
    /// The next packet of the same input and output, or of the free list.
    next: u32,
    content: T,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    /// First free flit slot (cycle x flits a cycle).
    free: u64,
    /// The input granted last.
    last: u32,
    waiting: u32,
    credits: u32,
    /// No grant before: when the credit in use arrived.
    credit_cycle: u64,
    /// Since when it has stood without a credit.
    stalled_since: Option<u64>,
    packets: u64,
    flits: u64,
}

/// One direction of the crossbar.
#[derive(Debug)]
pub(super) struct Plane<T> {
    configuration: PlaneConfiguration,
    outputs: Vec<Output>,
    /// First free flit slot of each input.
    input_free: Vec<u64>,
    input_packets: Vec<u64>,
    /// (first, last) packet of each (output, input).
    queues: Vec<(u32, u32)>,
    /// Inputs with packets for each output, as a bit set.
    occupied: Vec<u64>,
    words: usize,
    packets: Vec<Packet<T>>,
    free: u32,
    pub counters: PlaneCounters,
}

impl<T: Copy> Plane<T> {
    pub fn new(configuration: PlaneConfiguration) -> Plane<T> {
        let output = Output {
            free: 0,
            last: configuration.inputs.saturating_sub(1) as u32,
            waiting: 0,
            credits: configuration.credits.unwrap_or(u32::MAX),
            credit_cycle: 0,
            stalled_since: None,
            packets: 0,
            flits: 0,
        };
        let words = configuration.inputs.div_ceil(64).max(1);
        Plane {
            outputs: vec![output; configuration.outputs],
            input_free: vec![0; configuration.inputs],
            input_packets: vec![0; configuration.inputs],
            queues: vec![(NONE, NONE); configuration.inputs * configuration.outputs],
            occupied: vec![0; words * configuration.outputs],
            words,
            packets: Vec::new(),
            free: NONE,
            counters: PlaneCounters::default(),
            configuration,
        }
    }

    /// Takes in a packet that arrives at `input` in `cycle` and leaves through `output`.
    pub fn push(&mut self, input: usize, output: usize, cycle: u64, flits: u32, content: T) {
        let rate = self.configuration.input_flits;
        let start = (cycle * rate).max(self.input_free[input]);
        let end = start + u64::from(flits);
        self.input_free[input] = end;
        self.input_packets[input] += 1;
        let packet =
            Packet { arrived: cycle, eligible: start / rate, tail: (end - 1) / rate, flits, next: NONE, content };
        let index = if self.free == NONE {
            self.packets.push(packet);
            (self.packets.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.packets[index as usize].next;
            self.packets[index as usize] = packet;
            index
        };
        let queue = &mut self.queues[output * self.configuration.inputs + input];
        if queue.0 == NONE {
            *queue = (index, index);
            self.occupied[output * self.words + input / 64] |= 1 << (input % 64);
        } else {
            self.packets[queue.1 as usize].next = index;
            queue.1 = index;
        }
        self.outputs[output].waiting += 1;
        self.counters.queue_maximum = self.counters.queue_maximum.max(u64::from(self.outputs[output].waiting));
    }

    /// Grants packets of `output` in cycles before `limit`; `send` gets the cycle in which each leaves.
    /// Returns the cycle of the next grant, `u64::MAX` where none is due before something else arrives.
    pub fn grant(&mut self, output: usize, limit: u64, mut send: impl FnMut(u64, T)) -> u64 {
        let PlaneConfiguration { inputs, output_flits: rate, latency, credits, .. } = self.configuration;
        while self.outputs[output].waiting > 0 {
            let state = self.outputs[output];
            let ready = (state.free / rate).max(state.credit_cycle);
            let (input, cycle) = self.choose(output, ready);
            if state.credits == 0 {
                if state.stalled_since.is_none() {
                    self.outputs[output].stalled_since = Some(cycle);
                }
                return u64::MAX;
            }
            if cycle >= limit {
                return cycle;
            }
            let queue = &mut self.queues[output * inputs + input];
            let index = queue.0;
            let packet = self.packets[index as usize];
            queue.0 = packet.next;
            if packet.next == NONE {
                self.occupied[output * self.words + input / 64] &= !(1 << (input % 64));
            }
            self.packets[index as usize].next = self.free;
            self.free = index;

            let slot = (cycle * rate).max(state.free);
            let end = slot + u64::from(packet.flits);
            let depart = ((end - 1) / rate).max(packet.tail) + latency;
            let state = &mut self.outputs[output];
            state.free = end;
            state.last = input as u32;
            state.waiting -= 1;
            state.packets += 1;
            state.flits += u64::from(packet.flits);
            if credits.is_some() {
                state.credits -= 1;
            }
            self.counters.packets += 1;
            self.counters.flits += u64::from(packet.flits);
            self.counters.latency += depart - packet.arrived;
            send(depart, packet.content);
        }
        u64::MAX
    }

    /// The input to grant at or after `ready`, and the cycle: round robin over the heads that are there, else the first that will be.
    #[inline]
    fn choose(&self, output: usize, ready: u64) -> (usize, u64) {
        let inputs = self.configuration.inputs;
        let words = &self.occupied[output * self.words..(output + 1) * self.words];
        let from = (self.outputs[output].last as usize + 1) % inputs;
        let mut first = (0, u64::MAX);
        // One pass over the words from the starting one, which is looked at twice: its upper bits first, its lower bits last.
        for step in 0..=self.words {
            let word = (from / 64 + step) % self.words;
            let mut bits = words[word];
            if step == 0 {
                bits &= !0 << (from % 64);
            } else if step == self.words {
                bits &= !(!0 << (from % 64));
            }
            while bits != 0 {
                let input = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let eligible = self.packets[self.queues[output * inputs + input].0 as usize].eligible;
                if eligible <= ready {
                    return (input, ready);
                }
                if eligible < first.1 {
                    first = (input, eligible);
                }
            }
        }
        first
    }

    /// `count` credits for `output` arrive in `cycle`.
    pub fn add_credits(&mut self, output: usize, cycle: u64, count: u32) {
        let state = &mut self.outputs[output];
        if state.credits == 0 {
            state.credit_cycle = cycle;
        }
        state.credits = state.credits.saturating_add(count);
        if let Some(since) = state.stalled_since.take() {
            self.counters.credit_stalls += cycle.saturating_sub(since);
        }
    }

    pub fn latency(&self) -> u64 {
        self.configuration.latency
    }

    pub fn waiting(&self, output: usize) -> u32 {
        self.outputs[output].waiting
    }

    pub fn in_flight(&self) -> u64 {
        self.outputs.iter().map(|output| u64::from(output.waiting)).sum()
    }

    pub fn busy_cycles(&self) -> u64 {
        self.outputs.iter().map(|output| output.flits.div_ceil(self.configuration.output_flits)).sum()
    }

    pub fn packets_out(&self, output: usize) -> u64 {
        self.outputs[output].packets
    }

    pub fn packets_in(&self, input: usize) -> u64 {
        self.input_packets[input]
    }
}
