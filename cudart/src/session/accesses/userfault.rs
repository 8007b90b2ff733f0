//! Faults of the program's threads, as the kernel tells of them (`userfaultfd`, Linux 5.13 and later).

use crate::session::pages::PAGE;
use rustix::io::Errno;
use std::ffi::c_ulong;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `UFFD_API`.
const API: u64 = 0xaa;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_THREAD_ID: u64 = 1 << 8;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_WRITE_PROTECTION_SHMEM: u64 = 1 << 12;
const FEATURES: u64 = FEATURE_MISSING_SHMEM | FEATURE_MINOR_SHMEM | FEATURE_THREAD_ID;

const REGISTER_MISSING: u64 = 1;
const REGISTER_WRITE_PROTECTION: u64 = 1 << 1;
const REGISTER_MINOR: u64 = 1 << 2;
const CONTINUE_PROTECTED: u64 = 1 << 1;

const EVENT_PAGE_FAULT: u8 = 0x12;
const FAULT_WRITE: u64 = 1;
const FAULT_PROTECTED: u64 = 1 << 1;

// The numbers of the kernel's header: direction, bytes of the argument, 0xaa, function.
const USERFAULTFD_NEW: c_ulong = 0x0000_aa00;
const UFFDIO_API: c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: c_ulong = 0xc020_aa00;
const UFFDIO_UNREGISTER: c_ulong = 0x8010_aa01;
const UFFDIO_WAKE: c_ulong = 0x8010_aa02;
const UFFDIO_WRITEPROTECT: c_ulong = 0xc018_aa06;
const UFFDIO_CONTINUE: c_ulong = 0xc020_aa07;

/// A range and a word about it: the arguments of all requests are the first words of this.
#[repr(C)]
struct Request {
    start: u64,
    bytes: u64,
    mode: u64,
    /// The kernel's answer: possible requests, or bytes that it has mapped, or an error below zero.
    given: i64,
}

/// An event, as the kernel writes it.
#[repr(C)]
#[derive(Clone, Copy)]
struct FaultEvent {
    kind: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u32,
    padding: u32,
}

/// A thread waits for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address of the page.
    pub address: u64,
    /// The thread, as the kernel numbers it.
    pub thread: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Whether the page is mapped, and only its writes are refused.
    pub is_protected: bool,
}

/// Where faults of registered ranges go.
#[derive(Debug)]
pub struct Userfault {
    descriptor: OwnedFd,
    /// Whether pages can be mapped so that only writes to them are faults.
    can_protect: bool,
}

impl Userfault {
    /// Asks the kernel for it: faults of system calls included.
    ///
    /// # Errors
    ///
    /// The kernel's error: it may refuse this process or know nothing of it.
    pub fn open() -> Result<Userfault, Errno> {
        // A descriptor takes one answer about its features: it is asked for anew.
        let attempt = |features| -> Result<OwnedFd, Errno> {
            let descriptor = descriptor()?;
            let mut wanted = [API, features, 0_u64];
            // SAFETY: the kernel reads and writes three words.
            check(unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, wanted.as_mut_ptr()) })?;
            Ok(descriptor)
        };
        match attempt(FEATURES | FEATURE_WRITE_PROTECTION_SHMEM) {
            Ok(descriptor) => Ok(Userfault { descriptor, can_protect: true }),
            Err(Errno::INVAL) => Ok(Userfault { descriptor: attempt(FEATURES)?, can_protect: false }),
            Err(error) => Err(error),
        }
    }

    /// Has the kernel tell of accesses to a range, a mapping of whole pages of a shared file.
    pub fn register(&self, range: &Range<u64>) -> Result<(), Errno> {
        let protection = if self.can_protect { REGISTER_WRITE_PROTECTION } else { 0 };
        let mode = REGISTER_MISSING | REGISTER_MINOR | protection;
        self.request(UFFDIO_REGISTER, range, mode).map(|_| ())
    }

    /// Ends that. Threads that wait for a page of it go on.
    pub fn unregister(&self, range: &Range<u64>) -> Result<(), Errno> {
        self.request(UFFDIO_UNREGISTER, range, 0).map(|_| ())
    }

    /// Lets threads repeat the accesses that wait.
    pub fn wake(&self, range: &Range<u64>) {
        let _ = self.request(UFFDIO_WAKE, range, 0);
    }

    /// Maps pages that the file has, and lets threads that wait for them go on. `protected` ones are faults again when they are written.
    /// Pages that are mapped stay so.
    ///
    /// # Errors
    ///
    /// `FAULT` where the file has no such page.
    pub fn map(&self, range: &Range<u64>, protected: bool) -> Result<(), Errno> {
        let mode = if protected && self.can_protect { CONTINUE_PROTECTED } else { 0 };
        let mut start = range.start;
        while start < range.end {
            let mut request = Request { start, bytes: range.end - start, mode, given: 0 };
            // SAFETY: a request of the kernel's shape.
            let outcome = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), UFFDIO_CONTINUE, &raw mut request) };
            if outcome == 0 {
                return Ok(());
            }
            let error = last_error();
            start += u64::try_from(request.given).unwrap_or(0);
            match error {
                // Another thread has it already; who waits for it is told.
                Errno::EXIST => {
                    self.wake(&(start..start + PAGE));
                    start += PAGE;
                }
                Errno::AGAIN => {}
                error => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets the pages of a range be written that were mapped as protected.
    pub fn allow_writes(&self, range: &Range<u64>) -> Result<(), Errno> {
        loop {
            match self.request(UFFDIO_WRITEPROTECT, range, 0) {
                Err(Errno::AGAIN) => {}
                outcome => return outcome.map(|_| ()),
            }
        }
    }

    /// Waits for the next fault.
    pub fn next(&self) -> Result<Fault, Errno> {
        loop {
            let mut event = MaybeUninit::<FaultEvent>::zeroed();
            // SAFETY: there is room for one event.
            let read =
                unsafe { libc::read(self.descriptor.as_raw_fd(), event.as_mut_ptr().cast(), size_of::<FaultEvent>()) };
            if read != size_of::<FaultEvent>() as isize {
                match last_error() {
                    Errno::INTR | Errno::AGAIN if read < 0 => continue,
                    error => return Err(if read < 0 { error } else { Errno::IO }),
                }
            }
            // SAFETY: zeroed, then written by the kernel; any bytes are an event.
            let FaultEvent { kind, flags, address, thread, .. } = unsafe { event.assume_init() };
            if kind == EVENT_PAGE_FAULT {
                let is_protected = flags & FAULT_PROTECTED != 0;
                let is_write = flags & FAULT_WRITE != 0 || is_protected;
                return Ok(Fault { address: address & !(PAGE - 1), thread, is_write, is_protected });
            }
        }
    }

    fn request(&self, function: c_ulong, range: &Range<u64>, mode: u64) -> Result<i64, Errno> {
        let mut request = Request { start: range.start, bytes: range.end - range.start, mode, given: 0 };
        // SAFETY: a request of the kernel's shape, or longer.
        check(unsafe { libc::ioctl(self.descriptor.as_raw_fd(), function, &raw mut request) })?;
        Ok(request.given)
    }
}

/// A new descriptor, by the system call or the device: a system may allow one or the other.
fn descriptor() -> Result<OwnedFd, Errno> {
    // SAFETY: makes a descriptor and changes no memory.
    let number = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) } as i32;
    let refused = match check(number) {
        // SAFETY: the descriptor just made, which nobody else has.
        Ok(number) => return Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        Err(refused) => refused,
    };
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let device = rustix::fs::open(c"/dev/userfaultfd", flags, rustix::fs::Mode::empty()).map_err(|_| refused)?;
    // SAFETY: the request's argument is flags.
    let number = unsafe { libc::ioctl(device.as_raw_fd(), USERFAULTFD_NEW, libc::O_CLOEXEC) };
    // SAFETY: as above.
    check(number).map(|number| unsafe { OwnedFd::from_raw_fd(number) })
}

fn check(outcome: i32) -> Result<i32, Errno> {
    if outcome < 0 { Err(last_error()) } else { Ok(outcome) }
}

fn last_error() -> Errno {
    // SAFETY: the calling thread's `errno`.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
