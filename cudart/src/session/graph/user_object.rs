//! Objects of the program that live as long as graphs refer to them.

use crate::session::state::handles::{Handles, Kind};
use balar_host::CudaError;
use std::ffi::c_void;

/// `cudaUserObjectNoDestructorSync`, which must be given.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// The function that ends an object.
pub type Destructor = unsafe extern "C" fn(*mut c_void);

#[derive(Clone, Copy)]
struct UserObject {
    address: u64,
    destructor: Destructor,
    references: u64,
}

static OBJECTS: Handles<UserObject> = Handles::new(Kind::UserObject);

/// Makes an object with some references.
pub fn create(address: u64, destructor: Option<Destructor>, references: u32, flags: u32) -> Result<u64, CudaError> {
    let destructor = destructor.filter(|_| flags == NO_DESTRUCTOR_SYNC).ok_or(CudaError::InvalidValue)?;
    if references == 0 || references > i32::MAX as u32 {
        return Err(CudaError::InvalidValue);
    }
    Ok(OBJECTS.insert(UserObject { address, destructor, references: u64::from(references) }))
}

/// Adds references.
pub fn retain(object: u64, count: u32) -> Result<(), CudaError> {
    if count == 0 {
        return Err(CudaError::InvalidValue);
    }
    OBJECTS.with(object, |object| object.references += u64::from(count)).map_err(|_| CudaError::InvalidValue)
}

/// Removes references; the object ends with the last.
pub fn release(object: u64, count: u32) -> Result<(), CudaError> {
    let left = OBJECTS.with(object, |object| {
        if count == 0 || u64::from(count) > object.references {
            return Err(CudaError::InvalidValue);
        }
        object.references -= u64::from(count);
        Ok(object.references)
    });
    if left.map_err(|_| CudaError::InvalidValue)?? == 0 {
        let UserObject { address, destructor, .. } = OBJECTS.remove(object).map_err(|_| CudaError::InvalidValue)?;
        // SAFETY: the program gave the function for this address, to be called once.
        unsafe { destructor(address as *mut c_void) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ENDED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn end(_: *mut c_void) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn an_object_ends_with_its_last_reference() {
        let object = create(0, Some(end), 1, NO_DESTRUCTOR_SYNC).expect("one reference");
        retain(object, 2).expect("it is there");
        assert_eq!(release(object, 4), Err(CudaError::InvalidValue));
        release(object, 2).expect("there are three");
        assert_eq!(ENDED.load(Ordering::Relaxed), 0);
        release(object, 1).expect("there is one");
        assert_eq!(ENDED.load(Ordering::Relaxed), 1);
        assert_eq!(release(object, 1), Err(CudaError::InvalidValue));
    }
}
