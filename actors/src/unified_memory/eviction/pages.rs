//! Eviction of single pages.

use super::policy::{EvictionOptions, EvictionPolicy, MemoryView, Victim, saved_by_serde};
use super::recency::RecencyOrder;
use crate::unified_memory::{Access, BlockId, PageSet, uniform};
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

/// A page of a block.
type Page = (BlockId, u16);

/// Pages by their last access or arrival.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PageOrder {
    options: EvictionOptions,
    order: RecencyOrder<Page>,
}

impl PageOrder {
    fn new(options: EvictionOptions) -> PageOrder {
        PageOrder { options, order: RecencyOrder::default() }
    }

    fn touch(&mut self, block: BlockId, pages: impl Iterator<Item = usize>) {
        pages.for_each(|page| self.order.touch((block, page as u16), 1));
    }

    fn remove(&mut self, block: BlockId, pages: PageSet) {
        pages.iter().for_each(|page| self.order.remove((block, page as u16)));
    }

    fn spared(&self) -> usize {
        self.options.spared(self.order.total())
    }

    /// The first page that may go, at a place or after it.
    fn victim_from(&self, place: usize, memory: &dyn MemoryView) -> Option<Victim> {
        let pages = self.order.from(place).map(|((block, page), _)| (block, usize::from(page)));
        let mut evictable = pages.filter(|&(block, page)| memory.evictable(block).contains(page));
        evictable.next().map(|(block, page)| Victim { block, pages: PageSet::range(page..page + 1) })
    }
}

/// How the policies of single pages follow events.
macro_rules! keeps_page_order {
    () => {
        fn accessed(&mut self, block: BlockId, page: usize, _: Access) {
            self.0.touch(block, std::iter::once(page));
        }

        fn arrived(&mut self, block: BlockId, pages: PageSet) {
            self.0.touch(block, pages.iter());
        }

        fn left(&mut self, block: BlockId, pages: PageSet) {
            self.0.remove(block, pages);
        }
    };
}

/// Evicts the page least recently accessed (UVMSmart, bafab5d). A page that arrives counts as accessed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeastRecentPage(PageOrder);

impl LeastRecentPage {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> LeastRecentPage {
        LeastRecentPage(PageOrder::new(options))
    }
}

impl EvictionPolicy for LeastRecentPage {
    keeps_page_order!();

    fn victim(&mut self, memory: &dyn MemoryView, _: &mut Pcg32) -> Option<Victim> {
        self.0.victim_from(self.0.spared(), memory)
    }

    saved_by_serde!();
}

/// Evicts the first page that may go from a random place of the list of pages by recency on (UVMSmart, bafab5d). From the list's end it
/// goes on at its start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RandomPage(PageOrder);

impl RandomPage {
    /// The policy for an empty memory.
    pub fn new(options: EvictionOptions) -> RandomPage {
        RandomPage(PageOrder::new(options))
    }
}

impl EvictionPolicy for RandomPage {
    keeps_page_order!();

    fn victim(&mut self, memory: &dyn MemoryView, random: &mut Pcg32) -> Option<Victim> {
        let spared = self.0.spared();
        let start = spared + uniform(random, self.0.order.total() - spared);
        self.0.victim_from(start, memory).or_else(|| self.0.victim_from(spared, memory))
    }

    saved_by_serde!();
}
