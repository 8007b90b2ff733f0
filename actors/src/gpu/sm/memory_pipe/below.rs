//! The way out of the SM: address translation, and the port that one request leaves by in a cycle.

use super::ports::Moment;
use super::tlb::{Level, Use};
use super::waiting::Waiting;
use super::way_out::{Behind, WayOut};
use crate::gpu::sm::parameters::SmParameters;
use crate::gpu::tlb::{IDENTITY_BITS, identity};
use balar_protocol::cuda::LaunchId;
use balar_protocol::memory::MemoryRequest;
use balar_protocol::residency::{L2Policy, Residency};
use balar_protocol::translation::{Translation, TranslationMessage};
use serde::{Deserialize, Serialize};

/// The TLBs of an SM, and requests that wait for the GMMU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Below {
    first: Level,
    second: Level,
    second_level_latency: u64,
    /// Cycles between two reports of how often a page is used.
    report_interval: u64,
    /// First cycle in which a request can leave.
    free: u64,
    waiting: Waiting,
    way_out: WayOut,
    /// The last cycle in which a request has come to the way out or will come.
    last: u64,
    /// A warp waits for stores that wait for the GMMU.
    drain_follows: bool,
    /// What the L2 is to be told about the accesses of launches; most say nothing.
    policies: Vec<(u32, L2Policy)>,
}

impl Below {
    /// Without any translation, above a crossbar that takes so many requests; 0 = any number.
    pub fn new(parameters: &SmParameters, crossbar_places: u32) -> Below {
        let tlb = &parameters.tlb;
        Below {
            first: Level::new(tlb.page.0, tlb.entries, tlb.ways),
            second: Level::new(tlb.second_level_page.0, tlb.second_level_entries, tlb.second_level_ways),
            second_level_latency: u64::from(tlb.second_level_latency),
            report_interval: u64::from(tlb.report_interval),
            free: 0,
            waiting: Waiting::new(tlb.page.0),
            way_out: WayOut::new(crossbar_places),
            last: 0,
            drain_follows: false,
            policies: Vec::new(),
        }
    }

    /// Requests of the launch follow this policy from now on; policies of launches that are not here are forgotten.
    pub fn follow_policy(&mut self, launch: LaunchId, policy: L2Policy, mut is_here: impl FnMut(LaunchId) -> bool) {
        if self.policies.iter().all(|&(known, _)| known != launch.0) {
            self.policies.retain(|&(known, _)| is_here(LaunchId(known)));
            self.policies.push((launch.0, policy));
        }
    }

    /// What a request of the launch says about the residency of its line.
    #[cold]
    fn residency(&self, launch: u32, line: u64) -> Residency {
        let policy = self.policies.iter().find(|&&(known, _)| known == launch);
        policy.map_or(Residency::default(), |(_, policy)| policy.residency(line))
    }

    /// A request leaves the SM now, or after those that left before and when its page is known.
    pub fn send(&mut self, mut request: MemoryRequest, now: &mut Moment) {
        if !self.policies.is_empty() {
            request.residency = self.residency(request.launch, request.line);
        }
        now.cycle = now.cycle.max(self.free);
        self.free = now.cycle + 1;
        now.counters.tlb_lookups += 1;
        let (mut delay, mut found) = (0, self.first.lookup(request.line, request.kind.carries_data()).copied());
        if found.is_none() {
            now.counters.tlb_misses += 1;
            delay = self.second_level_latency;
            found = self.look_further(request, now);
        }
        let Some(translation) = found else { return };
        if translation.followed {
            self.count_use(&request, now);
        }
        now.cycle += delay;
        self.leave(request, &translation, now);
    }

    /// A request whose page is known comes to the way out.
    fn leave(&mut self, request: MemoryRequest, translation: &Translation, now: &mut Moment) {
        self.last = self.last.max(now.cycle);
        self.way_out.send(MemoryRequest { aperture: translation.aperture, ..request }, now);
    }

    /// Do both lead to crossbars of a kind?
    pub fn fits(&self, other: &Below) -> bool {
        self.way_out.fits(&other.way_out)
    }

    /// Requests that wait for a place in the crossbar.
    #[inline]
    pub fn requests_waiting(&self) -> u32 {
        self.way_out.requests()
    }

    /// The crossbar has a place more from now on.
    pub fn add_place(&mut self, now: &mut Moment) {
        self.way_out.add_place(now);
    }

    /// The second level is asked for a page that the first one lacks, and then the GMMU: then the request waits, and there is no translation.
    fn look_further(&mut self, request: MemoryRequest, now: &mut Moment) -> Option<Translation> {
        let line = request.line;
        if let Some(&translation) = self.second.lookup(line, request.kind.carries_data()) {
            self.enter_first(line, &translation, now);
            return Some(translation);
        }
        now.counters.tlb_second_level_misses += 1;
        if now.ports.translation.is_some() {
            if let Some(question) = self.waiting.add(request) {
                now.tell(question);
            }
            return None;
        }
        let translation = identity(line, IDENTITY_BITS);
        self.enter(line, &translation, now);
        Some(translation)
    }

    /// Both levels hold a translation around `line` from now on.
    fn enter(&mut self, line: u64, translation: &Translation, now: &mut Moment) {
        self.enter_first(line, translation, now);
        if let Some((gone, used)) = self.second.insert(line, translation, Use::default()) {
            now.counters.tlb_evictions += 1;
            report(now, &gone, used);
        }
    }

    /// The first level holds a translation around `line` from now on. The counts of a page go with it from level to level, and are reported
    /// when it leaves both.
    fn enter_first(&mut self, line: u64, translation: &Translation, now: &mut Moment) {
        let used = if translation.followed { self.second.used(line) } else { None };
        let used = used.map(|(_, used)| std::mem::take(used)).unwrap_or_default();
        let Some((gone, used)) = self.first.insert(line, translation, used) else { return };
        now.counters.tlb_evictions += 1;
        if !gone.followed {
            return;
        }
        match self.second.used(gone.page) {
            Some((_, place)) => *place = used,
            None => report(now, &gone, used),
        }
    }

    /// A request goes to a page that the driver of unified memory follows.
    fn count_use(&mut self, request: &MemoryRequest, now: &mut Moment) {
        let Some((page, used)) = self.first.used(request.line) else { return };
        used.requests += 1;
        used.written |= request.kind.carries_data();
        // The first change is told at once: the follower of the page knows then that it is dirty.
        let becomes_dirty = used.written && !used.dirty;
        if becomes_dirty || used.reported.is_none_or(|reported| now.cycle >= reported + self.report_interval) {
            let next = Use { reported: Some(now.cycle), dirty: used.dirty || used.written, ..Use::default() };
            let since = std::mem::replace(used, next);
            report(now, &page, since);
        }
    }

    /// The last cycle in which a request has come to the way out or will come, those aside that wait for the GMMU.
    #[inline]
    pub fn last_request(&self) -> u64 {
        self.last
    }

    /// A warp begins to wait for its stores: the unit that holds stores back is told so, after the last of them. It takes no request's
    /// place.
    pub fn drain(&mut self, now: &mut Moment) {
        if now.ports.drains {
            self.drain_follows = !self.waiting.is_empty();
            self.way_out.say(Behind::Drain, &mut now.at(now.cycle.max(self.last)));
        }
    }

    /// The GMMU has answered: requests of that page go on, and others that waited with them ask for themselves.
    pub fn answered(&mut self, id: u32, translation: &Translation, now: &mut Moment) {
        let mut questions = Vec::new();
        let Some(released) = self.waiting.answered(id, translation, |ask| questions.push(ask)) else { return };
        let line = released.first().map_or(translation.page, |request| request.line);
        self.enter(line, translation, now);
        for request in released {
            if translation.followed {
                self.count_use(&request, now);
            }
            // They pass the port one after the other, as all do.
            let cycle = now.cycle.max(self.free);
            self.free = cycle + 1;
            self.leave(request, translation, &mut now.at(cycle));
        }
        questions.into_iter().for_each(|question| now.tell(question));
        if self.drain_follows {
            self.drain(now);
        }
    }

    /// The page of `2^page_bits` bytes around `address` is not resident: requests of others ask for themselves.
    pub fn faulted(&mut self, (id, address, page_bits): (u32, u64, u8), now: &mut Moment) {
        now.counters.tlb_faults += 1;
        self.waiting.faulted(id, address, page_bits, |question| now.tell(question));
    }

    /// No entry for the range is held any more. The GMMU is told so when the requests that went there have left the SM.
    pub fn invalidate(&mut self, (address, bytes, id): (u64, u64, u32), now: &mut Moment) {
        let mut dropped = 0;
        for level in [&mut self.first, &mut self.second] {
            dropped += level.invalidate(address, bytes, |page, used| report(now, page, used));
        }
        now.counters.tlb_shootdowns += 1;
        now.counters.tlb_entries_invalidated += dropped;
        self.way_out.say(Behind::Invalidated { id }, &mut now.at(now.cycle.max(self.last)));
    }

    /// The requests to the range that wait for the GMMU.
    pub fn waiting_within(&self, address: u64, bytes: u64) -> impl Iterator<Item = &MemoryRequest> {
        self.waiting.within(address, bytes)
    }
}

/// The follower of a page is told how often it was used, if it was.
fn report(now: &mut Moment, page: &Translation, Use { requests, written, .. }: Use) {
    if requests > 0 {
        now.tell(TranslationMessage::Used { page: page.page, requests, written });
    }
}
