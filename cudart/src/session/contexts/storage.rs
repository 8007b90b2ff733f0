//! Values that libraries keep for each context, under keys of their own.

use crate::session::contexts::context::{self, ContextHandle};
use balar_host::CudaError;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Called with context, key and value at the end of the context.
pub type Destructor = unsafe extern "C" fn(ContextHandle, usize, usize);

#[derive(Clone, Copy)]
struct Kept {
    value: usize,
    destructor: Option<Destructor>,
}

static STORAGE: Mutex<BTreeMap<(ContextHandle, usize), Kept>> = Mutex::new(BTreeMap::new());

fn storage() -> MutexGuard<'static, BTreeMap<(ContextHandle, usize), Kept>> {
    STORAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a value for a context, or for the current one where it is 0.
pub fn put(context: ContextHandle, key: usize, value: usize, destructor: Option<Destructor>) -> Result<(), CudaError> {
    let context = context::check(context)?;
    storage().insert((context, key), Kept { value, destructor });
    Ok(())
}

/// Forgets a value.
pub fn delete(context: ContextHandle, key: usize) -> Result<(), CudaError> {
    let context = context::check(context)?;
    storage().remove(&(context, key)).map(drop).ok_or(CudaError::InvalidResourceHandle)
}

/// The value that is kept.
pub fn get(context: ContextHandle, key: usize) -> Result<usize, CudaError> {
    let context = context::check(context)?;
    storage().get(&(context, key)).map(|kept| kept.value).ok_or(CudaError::InvalidResourceHandle)
}

/// The context ends: so does all that is kept for it.
pub fn context_ends(context: ContextHandle) {
    let ended: Vec<(usize, Kept)> = {
        let mut storage = storage();
        let its: Vec<usize> = storage.range((context, 0)..=(context, usize::MAX)).map(|((_, key), _)| *key).collect();
        its.into_iter().filter_map(|key| Some((key, storage.remove(&(context, key))?))).collect()
    };
    // A destructor may use the storage.
    for (key, Kept { value, destructor }) in ended {
        if let Some(destructor) = destructor {
            // SAFETY: what the library gave for these arguments.
            unsafe { destructor(context, key, value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static DESTROYED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn destroy(context: ContextHandle, key: usize, value: usize) {
        assert_eq!((context, key), (context::primary(77), 5));
        DESTROYED.fetch_add(value, Ordering::Relaxed);
    }

    #[test]
    fn values_are_kept_for_each_context_until_it_ends() {
        let [one, other] = [77, 78].map(context::primary);
        assert_eq!(get(one, 5), Err(CudaError::InvalidResourceHandle));
        for (context, key, value) in [(one, 5, 40), (one, 5, 50), (one, 6, 60), (other, 5, 70)] {
            put(context, key, value, (context == one && key == 5).then_some(destroy as Destructor)).expect("kept");
        }
        assert_eq!([get(one, 5), get(one, 6), get(other, 5)], [Ok(50), Ok(60), Ok(70)]);
        assert_eq!((delete(one, 6), delete(one, 6)), (Ok(()), Err(CudaError::InvalidResourceHandle)));
        context_ends(one);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 50, "once, with the value kept last");
        assert_eq!([get(one, 5), get(other, 5)], [Err(CudaError::InvalidResourceHandle), Ok(70)]);
        assert!(put(12345, 5, 1, None).is_err(), "there is no such context");
    }
}
