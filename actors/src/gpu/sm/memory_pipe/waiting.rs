//! Requests of an SM that wait for the GMMU, by page: while they wait they cost nothing.

use crate::gpu::tlb::{covers, page_of};
use balar_protocol::memory::{MemoryKind, MemoryRequest};
use balar_protocol::translation::{PageAccess, Translation, TranslationMessage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Binary logarithm of the bytes of the smallest page.
const SMALLEST_PAGE_BITS: u8 = 12;

/// Requests that wait for one answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    /// The page or the region in which they lie, and the binary logarithm of its bytes.
    page: u64,
    bits: u8,
    /// The page can fault: the GMMU wants to know of each request.
    is_counted: bool,
    /// In the order in which they came; the GMMU was asked for the page of the first.
    requests: Vec<MemoryRequest>,
}

/// Requests that wait for the GMMU. Requests of one region, as large as an entry of the first TLB covers, are asked for together until the
/// GMMU tells smaller pages of it apart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting {
    region_bits: u8,
    /// Groups, by the number of the translation.
    groups: BTreeMap<u32, Group>,
    /// The number by the page and the binary logarithm of its bytes.
    numbers: BTreeMap<(u64, u8), u32>,
    /// Regions whose last answer was about a smaller page, with the binary logarithm of its bytes.
    divided: BTreeMap<u64, u8>,
    next: u32,
}

impl Waiting {
    /// Nothing waits. A region has `region_bytes`, a power of two.
    pub fn new(region_bytes: u64) -> Waiting {
        Waiting {
            region_bits: region_bytes.trailing_zeros() as u8,
            groups: BTreeMap::new(),
            numbers: BTreeMap::new(),
            divided: BTreeMap::new(),
            next: 0,
        }
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A request waits from now on. Gives the question or the message to the GMMU.
    pub fn add(&mut self, request: MemoryRequest) -> Option<TranslationMessage> {
        let (address, access) = (request.line, access_of(request.kind));
        let (id, is_new) = self.join(request);
        if is_new { Some(TranslationMessage::Request { address, id, access }) } else { self.joined(id, 1) }
    }

    /// The message to the GMMU about the last `requests` of a group: that they wait, too, if their page can fault.
    fn joined(&self, id: u32, requests: usize) -> Option<TranslationMessage> {
        let group = self.groups.get(&id).filter(|group| requests > 0 && group.is_counted)?;
        let access = group.requests.iter().rev().take(requests).map(|request| access_of(request.kind)).max();
        Some(TranslationMessage::Joined {
            address: group.page,
            id,
            requests: requests as u32,
            access: access.unwrap_or_default(),
        })
    }

    /// Puts a request into the group of its page; gives the group's number, and whether it is a new one.
    fn join(&mut self, request: MemoryRequest) -> (u32, bool) {
        let region = page_of(request.line, self.region_bits);
        let bits = self.divided.get(&region).copied().unwrap_or(self.region_bits);
        let page = page_of(request.line, bits);
        if let Some(&id) = self.numbers.get(&(page, bits))
            && let Some(group) = self.groups.get_mut(&id)
        {
            group.requests.push(request);
            return (id, false);
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.numbers.insert((page, bits), id);
        self.groups.insert(id, Group { page, bits, is_counted: bits < self.region_bits, requests: vec![request] });
        (id, true)
    }

    /// The GMMU has answered. Gives the requests that may go on, in the order in which they came; `None` where nothing waits under this
    /// number. The others wait on, and `ask` gets the questions to the GMMU for them.
    pub fn answered(
        &mut self,
        id: u32,
        translation: &Translation,
        ask: impl FnMut(TranslationMessage),
    ) -> Option<Vec<MemoryRequest>> {
        let Group { page, bits, mut requests, .. } = self.groups.remove(&id)?;
        self.numbers.remove(&(page, bits));
        self.divide(page, translation.valid_bits);
        let may_go = |request: &MemoryRequest| {
            covers(translation, request.line) && (translation.writable || !request.kind.carries_data())
        };
        let rest = requests.extract_if(.., |request| !may_go(request)).collect();
        self.ask_again(rest, ask);
        Some(requests)
    }

    /// The page of `2^bits` bytes around `address` is not resident. Requests of other pages no longer wait for this answer, and `ask` gets
    /// the questions to the GMMU for them.
    pub fn faulted(&mut self, id: u32, address: u64, bits: u8, mut ask: impl FnMut(TranslationMessage)) {
        let bits = bits.max(SMALLEST_PAGE_BITS);
        let Some(group) = self.groups.get_mut(&id) else { return };
        let was_counted = std::mem::replace(&mut group.is_counted, true);
        if bits >= group.bits {
            if !was_counted {
                self.joined(id, self.groups[&id].requests.len() - 1).into_iter().for_each(ask);
            }
            return;
        }
        let region = group.page;
        self.numbers.remove(&(group.page, group.bits));
        (group.page, group.bits) = (page_of(address, bits), bits);
        let page = group.page;
        let rest = group.requests.extract_if(.., |request| page_of(request.line, bits) != page).collect();
        self.numbers.insert((page, bits), id);
        self.divide(region, bits);
        let others = self.groups[&id].requests.len() - 1;
        self.joined(id, others).into_iter().for_each(&mut ask);
        self.ask_again(rest, ask);
    }

    /// The GMMU has told of a page of `2^bits` bytes in the region of `page`.
    fn divide(&mut self, page: u64, bits: u8) {
        let region = page_of(page, self.region_bits);
        if bits < self.region_bits {
            let before = self.divided.entry(region).or_insert(bits);
            *before = bits.min(*before).max(SMALLEST_PAGE_BITS);
        } else {
            self.divided.remove(&region);
        }
    }

    fn ask_again(&mut self, requests: Vec<MemoryRequest>, ask: impl FnMut(TranslationMessage)) {
        requests.into_iter().filter_map(|request| self.add(request)).for_each(ask);
    }

    /// The requests inside the range that wait.
    pub fn within(&self, address: u64, bytes: u64) -> impl Iterator<Item = &MemoryRequest> {
        let last = address.saturating_add(bytes.saturating_sub(1));
        let numbers = self.numbers.range((page_of(address, self.region_bits), 0)..=(last, u8::MAX));
        let requests = numbers.filter_map(|(_, id)| self.groups.get(id)).flat_map(|group| &group.requests);
        requests.filter(move |request| (address..=last).contains(&request.line))
    }
}

/// The access of a request to its page.
fn access_of(kind: MemoryKind) -> PageAccess {
    match kind {
        MemoryKind::Load => PageAccess::Read,
        MemoryKind::Store => PageAccess::Write,
        MemoryKind::Atomic | MemoryKind::Reduction => PageAccess::Atomic,
    }
}
