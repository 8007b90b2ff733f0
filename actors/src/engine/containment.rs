//! Panics of units are caught, and described instead of printed.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    static DESCRIPTION: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Makes the process's panic hook silent for code that [`contain`] runs. Other panics reach the hook that was there before.
pub(super) fn install() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CONTAINED.get() {
                DESCRIPTION.with_borrow_mut(|description| *description = Some(describe(info)));
            } else {
                before(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without text");
    match info.location() {
        Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
        None => text.to_owned(),
    }
}

/// As [`contain`], outside a run of the engine: for building a unit of a user's own.
pub(crate) fn contain_outside<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    install();
    contain(work)
}

/// Runs `work`; the text of its panic where it panics.
#[inline]
pub(super) fn contain<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    let outer = CONTAINED.replace(true);
    // The caller never touches again what the panic may have left half-done, except to drop it.
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    result.map_err(|_| {
        DESCRIPTION.with_borrow_mut(Option::take).unwrap_or_else(|| "a panic without description".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_text() {
        install();
        assert_eq!(contain(|| 3), Ok(3));
        let text = contain(|| panic!("queue {} is full", 7)).expect_err("it panics");
        assert!(text.starts_with("queue 7 is full ("), "{text}");
        assert!(text.contains("containment.rs"), "{text}");
        assert!(!CONTAINED.get());
    }
}
