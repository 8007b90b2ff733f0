//! Asynchronous copies to pageable memory that are not waited for at once: nodes of graphs. Each launch of one is a transfer, whose
//! bytes come with a later reply.

use crate::session::connection::host_rows::HostRows;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

static TRANSFERS: Mutex<Transfers> = Mutex::new(Transfers { last: 0, destinations: BTreeMap::new() });

struct Transfers {
    last: u32,
    destinations: BTreeMap<u32, HostRows>,
}

/// Expects bytes for these rows; returns the number that the copy's call names.
pub fn expect(destination: HostRows) -> u32 {
    let mut transfers = TRANSFERS.lock().unwrap_or_else(PoisonError::into_inner);
    transfers.last = transfers.last.wrapping_add(1);
    let number = transfers.last;
    transfers.destinations.insert(number, destination);
    number
}

/// A transfer's bytes have come.
pub fn deliver(transfer: u32, data: &[u8]) {
    let destination = TRANSFERS.lock().unwrap_or_else(PoisonError::into_inner).destinations.remove(&transfer);
    if let Some(rows) = destination {
        rows.write(0, data);
    }
}
