//! Times, sizes and rates as a picture writes them, and where a unit's parameters give them.

use crate::topology::ExpandedUnit;
use crate::topology::syntax::{self, Value, ValueKind};
use balar_protocol::SimTime;

pub(super) fn nanoseconds(time: SimTime) -> String {
    format!("{} ns", decimals(time.0, 1000))
}

/// `value / scale` with at most three decimals, without trailing zeros.
pub(super) fn decimals(value: u64, scale: u64) -> String {
    let thousandths = u128::from(value) * 1000 / u128::from(scale);
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// 6291456 as "6 MiB".
pub(super) fn bytes(count: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| count >= *scale) {
        Some((unit, scale)) => format!("{} {unit}", decimals(count, *scale)),
        None => format!("{count} B"),
    }
}

/// Bytes a second as "898 GB/s".
pub(super) fn rate(bytes_per_second: u128) -> String {
    let tenths = (bytes_per_second + 50_000_000) / 100_000_000;
    let text = format!("{}.{}", tenths / 10, tenths % 10);
    format!("{} GB/s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A parameter's value without quotes.
pub(super) fn parameter(unit: &ExpandedUnit, name: &str) -> Option<String> {
    let text = unit.parameter(name)?.trim();
    let plain = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    Some(plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn find_string(value: &Value, name: &str) -> Option<String> {
    match &value.kind {
        ValueKind::Call(_, items) | ValueKind::Tuple(items) => items.iter().find_map(|item| {
            let is_it = item.key.as_ref().is_some_and(|key| key.text == name);
            let own = is_it.then(|| item.value.string().map(str::to_owned)).flatten();
            own.or_else(|| find_string(&item.value, name))
        }),
        _ => None,
    }
}

/// What a unit names `bandwidth`, as a parameter or inside of one.
pub(super) fn bandwidth(unit: &ExpandedUnit) -> Option<String> {
    let inside =
        || unit.parameters.iter().find_map(|given| find_string(&syntax::parse(&given.text).ok()?, "bandwidth"));
    parameter(unit, "bandwidth").or_else(inside)
}
