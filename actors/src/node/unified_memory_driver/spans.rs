//! A span of tracing for each batch of faults, from when its faults have come to its end.

use super::record::BatchRecord;
use tracing::field::Empty;
use tracing::{Span, debug_span};

/// The span of a batch that begins; none where no log wants it.
pub(super) fn batch_begins(gpu: u8, began_picoseconds: u64, record: &BatchRecord) -> Span {
    debug_span!(
        "fault_batch",
        gpu,
        faults = record.entries,
        pages = record.pages,
        blocks = Empty,
        pages_moved = Empty,
        pages_prefetched = Empty,
        begin_picoseconds = began_picoseconds,
        end_picoseconds = Empty,
    )
}

/// It is over.
pub(super) fn batch_ends(span: &Span, record: &BatchRecord) {
    span.record("blocks", record.blocks);
    span.record("pages_moved", record.pages_moved);
    span.record("pages_prefetched", record.pages_prefetched);
    span.record("end_picoseconds", record.ended.0);
}
