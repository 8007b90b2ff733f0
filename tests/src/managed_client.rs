//! A program that uses managed memory by its pointers, to test `balar-actors run` where there is no CUDA: it loads libcuda.so.1 by its
//! name. Its argument names its work; it checks its values and prints "passed".

use std::ffi::{CStr, CString, c_int, c_void};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::ExitCode;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

type Failure = String;

const PAGE: usize = 4096;
/// Bytes of a leaf of the driver's tree: 16 pages.
const LEAF: usize = 64 << 10;
/// Bytes of a block.
const BLOCK: usize = 2 << 20;
const LEAF_WORDS: usize = LEAF / 4;

/// Adds 1 to `count` words from `data` on, `stride` bytes apart.
const TEXT: &CStr = c"
.version 6.0
.target sm_60
.address_size 64
.visible .entry bump(.param .u64 data, .param .u32 count, .param .u32 stride)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [stride];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r6, %r2;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r7, [%rd3];
    add.u32 %r8, %r7, 1;
    st.global.u32 [%rd3], %r8;
DONE:
    ret;
}
.visible .global .attribute(.managed) .align 4 .u32 counter = 40;
";

/// The driver library, with a context and the kernel.
struct Driver {
    library: *mut c_void,
    module: u64,
    function: u64,
}

// SAFETY: the library may be called by any thread.
unsafe impl Sync for Driver {}

/// Managed memory as words.
#[derive(Clone, Copy)]
struct Words {
    address: u64,
    count: usize,
}

impl Words {
    fn at(self, index: usize) -> *mut u32 {
        assert!(index < self.count, "word {index} of {}", self.count);
        (self.address as *mut u32).wrapping_add(index)
    }

    fn get(self, index: usize) -> u32 {
        // SAFETY: a word of the allocation; others write it with calls between alone.
        unsafe { self.at(index).read_volatile() }
    }

    fn set(self, index: usize, value: u32) {
        // SAFETY: as in `get`.
        unsafe { self.at(index).write_volatile(value) };
    }

    fn fill(self, value: u32) {
        (0..self.count).for_each(|index| self.set(index, value));
    }

    fn expect(self, index: usize, value: u32) -> Result<(), Failure> {
        let found = self.get(index);
        if found == value { Ok(()) } else { Err(format!("word {index} is {found}, expected {value}")) }
    }
}

impl Driver {
    fn load() -> Result<Driver, Failure> {
        // SAFETY: the library's initialisers are those of the simulator's.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err("there is no libcuda.so.1".to_owned());
        }
        let mut driver = Driver { library, module: 0, function: 0 };
        driver.call("cuInit", &[0])?;
        let device = driver.get("cuDeviceGet", &[0])?;
        driver.get("cuCtxCreate_v2", &[0, device])?;
        driver.module = driver.get("cuModuleLoadData", &[TEXT.as_ptr() as u64])?;
        driver.function = driver.get("cuModuleGetFunction", &[driver.module, c"bump".as_ptr() as u64])?;
        Ok(driver)
    }

    /// Calls a function whose arguments are a register or word each; gives its code.
    fn code(&self, name: &str, arguments: &[u64]) -> Result<c_int, Failure> {
        let symbol = CString::new(name).map_err(|error| error.to_string())?;
        let mut a = [0_u64; 11];
        a[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: the functions take integers and addresses alone: further arguments than theirs are ignored.
        unsafe {
            let function = libc::dlsym(self.library, symbol.as_ptr());
            if function.is_null() {
                return Err(format!("{name} is missing"));
            }
            let function: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> c_int =
                std::mem::transmute(function);
            Ok(function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]))
        }
    }

    fn expect(&self, code: c_int, name: &str, arguments: &[u64]) -> Result<(), Failure> {
        let found = self.code(name, arguments)?;
        if found == code { Ok(()) } else { Err(format!("{name} gives {found}, expected {code}")) }
    }

    fn call(&self, name: &str, arguments: &[u64]) -> Result<(), Failure> {
        self.expect(0, name, arguments)
    }

    /// Calls a function that writes its result to its first argument.
    fn get(&self, name: &str, arguments: &[u64]) -> Result<u64, Failure> {
        let mut result = 0_u64;
        let mut all = vec![&raw mut result as u64];
        all.extend(arguments);
        self.call(name, &all)?;
        Ok(result)
    }

    fn allocate(&self, bytes: usize) -> Result<Words, Failure> {
        let address = self.get("cuMemAllocManaged", &[bytes as u64, 1])?;
        Ok(Words { address, count: bytes / 4 })
    }

    /// Adds 1 to the first word of each so many bytes.
    fn bump(&self, words: Words, stride: usize) -> Result<(), Failure> {
        let (count, stride) = ((words.count * 4 / stride) as u32, stride as u32);
        let arguments = [&raw const words.address as u64, &raw const count as u64, &raw const stride as u64];
        let blocks = u64::from(count.div_ceil(128));
        self.call("cuLaunchKernel", &[self.function, blocks, 1, 1, 128, 1, 1, 0, 0, arguments.as_ptr() as u64, 0])
    }

    fn synchronise(&self) -> Result<(), Failure> {
        self.call("cuCtxSynchronize", &[])
    }
}

fn main() -> ExitCode {
    let scenario = std::env::args().nth(1).unwrap_or_default();
    let (text, code) = match run(&scenario) {
        Ok(()) => ("passed".to_owned(), ExitCode::SUCCESS),
        Err(failure) => (failure, ExitCode::FAILURE),
    };
    // Nobody minds where nobody reads it.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

fn run(scenario: &str) -> Result<(), Failure> {
    let driver = Driver::load()?;
    match scenario {
        "block" => block(&driver),
        "first_touch" => first_touch(&driver),
        "again" => again(&driver),
        "read_then_write" => read_then_write(&driver),
        "system_calls" => system_calls(&driver),
        "signals" => signals(&driver),
        "fork" => fork(&driver),
        "threads" => threads(&driver),
        "host_function" => host_function(&driver),
        "freed" => freed(&driver),
        "copies" => copies(&driver),
        "variable" => variable(&driver),
        "mistakes" => mistakes(&driver),
        "batches" => batches(&driver),
        "bad_batches" => bad_batches(&driver),
        "illegal" => illegal(&driver),
        "for_ever" => for_ever(&driver),
        other => Err(format!("there is no scenario {other}")),
    }
}

/// A block goes to the GPU; the host reads six leaves of it, backwards.
fn block(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(BLOCK)?;
    words.fill(5);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    for leaf in [16, 8, 4, 2, 1, 0] {
        words.expect(leaf * LEAF_WORDS, 6)?;
        words.expect(leaf * LEAF_WORDS + 1, 5)?;
    }
    Ok(())
}

/// The host writes the first leaf of a block; the kernel uses all of it.
fn first_touch(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(BLOCK)?;
    (0..LEAF_WORDS).for_each(|index| words.set(index, 7));
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 8)?;
    words.expect(LEAF_WORDS * 20, 1)
}

/// A leaf goes back and forth, and is used twice by the host each time.
fn again(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(LEAF)?;
    words.fill(0);
    for round in 1..=2 {
        driver.bump(words, PAGE)?;
        driver.synchronise()?;
        words.expect(0, round)?;
        words.expect(PAGE / 4, round)?;
        driver.synchronise()?;
        words.expect(0, round)?;
    }
    Ok(())
}

/// The host reads a page that a kernel has used, and then writes it.
fn read_then_write(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(LEAF)?;
    words.fill(0);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 1)?;
    words.set(0, 10);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 11)
}

/// The kernel of the system reads and writes managed memory for the program.
fn system_calls(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(2 * LEAF)?;
    words.fill(1);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are this process's own.
    let (mut reader, mut writer) = unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return Err("no pipe".to_owned());
        }
        (std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1]))
    };
    // SAFETY: pages of the two halves of the allocation, which nothing else uses now.
    let (from, to) = unsafe {
        (
            std::slice::from_raw_parts(words.at(0).cast::<u8>(), LEAF / 2),
            std::slice::from_raw_parts_mut(words.at(LEAF_WORDS).cast::<u8>(), LEAF / 2),
        )
    };
    writer.write_all(from).map_err(|error| format!("write: {error}"))?;
    reader.read_exact(to).map_err(|error| format!("read: {error}"))?;
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 3)?;
    words.expect(LEAF_WORDS, 3)?;
    words.expect(LEAF_WORDS + 1, 1)
}

static ALARMS: AtomicU32 = AtomicU32::new(0);
static MAPPED: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_alarm(_: c_int) {
    ALARMS.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn on_fault(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the system calls this with a fault's address, whose page is mapped here.
    let mapped = unsafe {
        let address = (*info).si_addr() as usize & !(PAGE - 1);
        libc::mprotect(address as *mut c_void, PAGE, libc::PROT_READ | libc::PROT_WRITE)
    };
    MAPPED.fetch_add(u32::from(mapped == 0), Ordering::SeqCst);
}

/// The program has handlers of its own: of faults, and of a timer that interrupts it all the time.
fn signals(driver: &Driver) -> Result<(), Failure> {
    // SAFETY: handlers that do what handlers may; pages of this program's own.
    let own = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSEGV, &raw const action, null_mut());
        action.sa_sigaction = on_alarm as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, null_mut());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0).cast::<u32>()
    };
    let words = driver.allocate(4 * LEAF)?;
    words.fill(0);
    let every = libc::timeval { tv_sec: 0, tv_usec: 200 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the timer's value outlives the call.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
    for round in 1..=10 {
        driver.bump(words, PAGE)?;
        driver.synchronise()?;
        (0..4).try_for_each(|leaf| words.expect(leaf * LEAF_WORDS, round))?;
    }
    let off = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: off, it_value: off };
    // SAFETY: as above; the page is the program's, and its handler makes it accessible.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
        own.write_volatile(words.get(0));
    }
    match (ALARMS.load(Ordering::SeqCst), MAPPED.load(Ordering::SeqCst)) {
        (1.., 1) => Ok(()),
        (alarms, mapped) => Err(format!("{alarms} alarms and {mapped} faults")),
    }
}

/// A child has the memory, too, and sees and changes it.
fn fork(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(LEAF)?;
    words.fill(1);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    // SAFETY: the child does nothing but access memory and end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_right = words.get(0) == 2 && words.get(1) == 1;
        words.set(2, 9);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    let mut status = -1;
    // SAFETY: a child of this process.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if status != 0 {
        return Err(format!("the child ended with {status}"));
    }
    words.expect(0, 2)?;
    words.expect(2, 9)?;
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 3)
}

/// Threads that make no call use what kernels use, each a leaf.
fn threads(driver: &Driver) -> Result<(), Failure> {
    const THREADS: usize = 4;
    let words = driver.allocate(THREADS * LEAF)?;
    for round in 0..3 {
        let failures: Vec<Failure> = std::thread::scope(|scope| {
            let work = |thread: usize| {
                move || -> Result<(), Failure> {
                    let first = thread * LEAF_WORDS;
                    words.expect(first, 2 * round)?;
                    (0..LEAF / PAGE).for_each(|page| words.set(first + page * PAGE / 4, 2 * round + 1));
                    Ok(())
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("does not panic").err()).collect()
        });
        if let Some(failure) = failures.first() {
            return Err(failure.clone());
        }
        driver.bump(words, PAGE)?;
        driver.synchronise()?;
    }
    (0..THREADS * LEAF / PAGE).try_for_each(|page| words.expect(page * PAGE / 4, 6))
}

extern "C" fn add_one(word: *mut c_void) {
    // SAFETY: a word of managed memory, which nobody else uses now.
    unsafe { *word.cast::<u32>() += 1 };
}

/// A stream calls a function that uses what the kernel before it has used.
fn host_function(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(LEAF)?;
    words.fill(1);
    driver.bump(words, PAGE)?;
    driver.call("cuLaunchHostFunc", &[0, add_one as *const () as u64, words.address])?;
    driver.bump(words, PAGE)?;
    driver.call("cuStreamSynchronize", &[0])?;
    words.expect(0, 4)?;
    words.expect(PAGE / 4, 3)
}

/// What is freed is given away again, and is nowhere then.
fn freed(driver: &Driver) -> Result<(), Failure> {
    let mut first = 0;
    for round in 0..4 {
        let words = driver.allocate(LEAF)?;
        if round == 0 {
            first = words.address;
        } else if words.address != first {
            return Err("the same place is not given again".to_owned());
        }
        words.fill(round);
        driver.bump(words, PAGE)?;
        driver.call("cuCtxSynchronize", &[])?;
        words.expect(0, round + 1)?;
        driver.call("cuMemFree_v2", &[words.address])?;
    }
    Ok(())
}

/// Fills and copies use managed memory where the GPU is; the host has it back afterwards.
fn copies(driver: &Driver) -> Result<(), Failure> {
    let bytes = LEAF as u64;
    let (words, others) = (driver.allocate(LEAF)?, driver.allocate(LEAF)?);
    driver.call("cuMemsetD32_v2", &[words.address, 11, LEAF_WORDS as u64])?;
    words.expect(LEAF_WORDS - 1, 11)?;
    words.set(3, 12);
    driver.call("cuMemcpyDtoD_v2", &[others.address, words.address, bytes])?;
    driver.synchronise()?;
    others.expect(3, 12)?;
    others.expect(4, 11)?;
    let local = vec![13_u32; LEAF_WORDS];
    driver.call("cuMemcpyHtoD_v2", &[words.address, local.as_ptr() as u64, bytes])?;
    words.expect(LEAF_WORDS / 2, 13)?;
    words.set(0, 14);
    let mut back = vec![0_u32; LEAF_WORDS];
    driver.call("cuMemcpyDtoH_v2", &[back.as_mut_ptr() as u64, words.address, bytes])?;
    if back[..2] != [14, 13] {
        return Err(format!("{:?} came back", &back[..2]));
    }
    Ok(())
}

/// A managed variable of a module.
fn variable(driver: &Driver) -> Result<(), Failure> {
    let mut bytes = 0_u64;
    let address =
        driver.get("cuModuleGetGlobal_v2", &[&raw mut bytes as u64, driver.module, c"counter".as_ptr() as u64])?;
    let words = Words { address, count: bytes as usize / 4 };
    words.expect(0, 40)?;
    let stream = driver.get("cuStreamCreate", &[1])?;
    let batch = Batch { pointers: vec![address], sizes: vec![bytes], locations: vec![DEVICE], firsts: vec![0] };
    driver.call("cuMemPrefetchBatchAsync", &batch.prefetch(0, stream))?;
    driver.call("cuStreamSynchronize", &[stream])?;
    words.set(0, 50);
    driver.bump(words, 4)?;
    driver.synchronise()?;
    words.expect(0, 51)
}

/// What CUDA refuses.
fn mistakes(driver: &Driver) -> Result<(), Failure> {
    const INVALID_VALUE: c_int = 1;
    const OUT_OF_MEMORY: c_int = 2;
    const INVALID_DEVICE: c_int = 101;
    let mut place = 0_u64;
    let allocate = |bytes: u64, flags: u64, place: &mut u64| [std::ptr::from_mut(place) as u64, bytes, flags];
    driver.expect(INVALID_VALUE, "cuMemAllocManaged", &allocate(0, 1, &mut place))?;
    driver.expect(INVALID_VALUE, "cuMemAllocManaged", &allocate(64, 0, &mut place))?;
    driver.expect(INVALID_VALUE, "cuMemAllocManaged", &allocate(64, 4, &mut place))?;
    driver.expect(INVALID_VALUE, "cuMemAllocManaged", &allocate(64, 3, &mut place))?;
    driver.expect(OUT_OF_MEMORY, "cuMemAllocManaged", &allocate(1 << 50, 1, &mut place))?;
    let words = driver.allocate(LEAF)?;
    let bytes = LEAF as u64;
    let plain = driver.get("cuMemAlloc_v2", &[bytes])?;
    driver.expect(INVALID_VALUE, "cuMemPrefetchAsync", &[plain, bytes, 0, 0])?;
    driver.expect(INVALID_VALUE, "cuMemPrefetchAsync", &[&raw const place as u64, 8, 0, 0])?;
    driver.expect(INVALID_VALUE, "cuMemPrefetchAsync", &[words.address, bytes + 1, 0, 0])?;
    driver.expect(INVALID_VALUE, "cuMemPrefetchAsync", &[words.address, 0, 0, 0])?;
    driver.expect(INVALID_DEVICE, "cuMemPrefetchAsync", &[words.address, bytes, 9, 0])?;
    driver.expect(INVALID_VALUE, "cuMemAdvise", &[words.address, bytes + 1, 1, 0])?;
    driver.expect(INVALID_VALUE, "cuMemAdvise", &[plain, bytes, 1, 0])?;
    driver.expect(INVALID_VALUE, "cuMemAdvise", &[words.address, bytes, 9, 0])?;
    driver.expect(INVALID_DEVICE, "cuMemAdvise", &[words.address, bytes, 3, 9])?;
    // Nothing of that has harmed anything.
    words.fill(1);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(0, 2)
}

/// Arrays as batches take them: ranges with their bytes, and locations (a kind and a number) with the ranges from which on they hold.
#[derive(Clone, Default)]
struct Batch {
    pointers: Vec<u64>,
    sizes: Vec<u64>,
    locations: Vec<[u32; 2]>,
    firsts: Vec<u64>,
}

const DEVICE: [u32; 2] = [1, 0];
const HOST: [u32; 2] = [2, 0];

impl Batch {
    fn prefetch(&self, flags: u64, stream: u64) -> [u64; 8] {
        let Batch { pointers, sizes, locations, firsts } = self;
        let (count, kinds) = (pointers.len() as u64, firsts.len() as u64);
        let (locations, firsts) = (locations.as_ptr() as u64, firsts.as_ptr() as u64);
        [pointers.as_ptr() as u64, sizes.as_ptr() as u64, count, locations, firsts, kinds, flags, stream]
    }

    fn discard(&self, flags: u64, stream: u64) -> [u64; 5] {
        [self.pointers.as_ptr() as u64, self.sizes.as_ptr() as u64, self.pointers.len() as u64, flags, stream]
    }
}

/// Ranges of two allocations go to two places with one call, and one of them comes back with another.
fn batches(driver: &Driver) -> Result<(), Failure> {
    let (words, others) = (driver.allocate(2 * LEAF)?, driver.allocate(LEAF)?);
    words.fill(1);
    others.fill(2);
    let stream = driver.get("cuStreamCreate", &[1])?;
    let leaf = LEAF as u64;
    let there = Batch {
        pointers: vec![words.address, words.address + leaf, others.address],
        sizes: vec![leaf; 3],
        locations: vec![DEVICE, HOST],
        firsts: vec![0, 2],
    };
    driver.call("cuMemPrefetchBatchAsync", &there.prefetch(0, stream))?;
    driver.call("cuStreamSynchronize", &[stream])?;
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    let back = Batch { pointers: vec![words.address], sizes: vec![leaf], locations: vec![HOST], firsts: vec![0] };
    driver.call("cuMemPrefetchBatchAsync", &back.prefetch(0, stream))?;
    driver.call("cuStreamSynchronize", &[stream])?;
    words.expect(0, 2)?;
    words.expect(1, 1)?;
    others.expect(0, 2)?;
    // Discarded memory is written before it is read.
    driver.call("cuMemDiscardBatchAsync", &there.discard(0, stream))?;
    driver.call("cuMemDiscardAndPrefetchBatchAsync", &back.prefetch(0, stream))?;
    driver.call("cuStreamSynchronize", &[stream])?;
    words.fill(7);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    words.expect(PAGE / 4, 8)?;
    driver.call("cuStreamDestroy_v2", &[stream])
}

/// Batches that CUDA refuses. None of them does a part of what it says.
fn bad_batches(driver: &Driver) -> Result<(), Failure> {
    const INVALID_VALUE: c_int = 1;
    const INVALID_DEVICE: c_int = 101;
    const INVALID_HANDLE: c_int = 400;
    let (words, leaf) = (driver.allocate(2 * LEAF)?, LEAF as u64);
    words.fill(1);
    let plain = driver.get("cuMemAlloc_v2", &[leaf])?;
    let freed = driver.allocate(LEAF)?;
    driver.call("cuMemFree_v2", &[freed.address])?;
    let stream = driver.get("cuStreamCreate", &[1])?;
    let ended = driver.get("cuStreamCreate", &[1])?;
    driver.call("cuStreamDestroy_v2", &[ended])?;
    let good = Batch {
        pointers: vec![words.address, words.address + leaf],
        sizes: vec![leaf; 2],
        locations: vec![DEVICE, HOST],
        firsts: vec![0, 1],
    };
    let prefetches = ["cuMemPrefetchBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"];
    let refused = |code: c_int, batch: &Batch| {
        prefetches.iter().try_for_each(|name| driver.expect(code, name, &batch.prefetch(0, stream)))
    };

    // The second range, which is no managed memory, or goes beyond it.
    for (pointer, bytes) in [
        (plain, leaf),
        (words.address + leaf, leaf + 1),
        (words.address, 0),
        (freed.address, leaf),
        (0x1000, 8),
        (0, 8),
    ] {
        let mut bad = good.clone();
        (bad.pointers[1], bad.sizes[1]) = (pointer, bytes);
        refused(INVALID_VALUE, &bad)?;
        driver.expect(INVALID_VALUE, "cuMemDiscardBatchAsync", &bad.discard(0, stream))?;
    }
    for firsts in [&[][..], &[1], &[0, 0], &[0, 2], &[1, 0], &[0, 1, 1]] {
        refused(INVALID_VALUE, &Batch { firsts: firsts.to_vec(), locations: vec![DEVICE; 3], ..good.clone() })?;
    }
    for (code, location) in
        [(INVALID_VALUE, [0, 0]), (INVALID_VALUE, [9, 0]), (INVALID_DEVICE, [1, 9]), (INVALID_DEVICE, [1, u32::MAX])]
    {
        refused(code, &Batch { locations: vec![DEVICE, location], ..good.clone() })?;
    }
    // Streams: the default one has two names, and there are none of the others.
    for (code, stream) in [(INVALID_VALUE, 0), (INVALID_VALUE, 1), (INVALID_HANDLE, ended)] {
        prefetches.iter().try_for_each(|name| driver.expect(code, name, &good.prefetch(0, stream)))?;
        driver.expect(code, "cuMemDiscardBatchAsync", &good.discard(0, stream))?;
    }
    for flags in [1, 1 << 32] {
        prefetches.iter().try_for_each(|name| driver.expect(INVALID_VALUE, name, &good.prefetch(flags, stream)))?;
        driver.expect(INVALID_VALUE, "cuMemDiscardBatchAsync", &good.discard(flags, stream))?;
    }
    // Each array is missing in turn, and then there is nothing to do.
    for missing in [0, 1, 3, 4] {
        let mut arguments = good.prefetch(0, stream);
        arguments[missing] = 0;
        prefetches.iter().try_for_each(|name| driver.expect(INVALID_VALUE, name, &arguments))?;
    }
    let nothing = Batch::default();
    refused(INVALID_VALUE, &nothing)?;
    driver.expect(INVALID_VALUE, "cuMemDiscardBatchAsync", &nothing.discard(0, stream))?;
    for missing in [0, 1] {
        let mut arguments = good.discard(0, stream);
        arguments[missing] = 0;
        driver.expect(INVALID_VALUE, "cuMemDiscardBatchAsync", &arguments)?;
    }

    driver.call("cuMemPrefetchBatchAsync", &good.prefetch(0, stream))?;
    driver.call("cuMemDiscardBatchAsync", &good.discard(0, 2))?;
    driver.call("cuStreamSynchronize", &[stream])?;
    words.expect(LEAF_WORDS, 1)
}

/// A kernel uses what was freed: the context fails, and what the program has it still has.
fn illegal(driver: &Driver) -> Result<(), Failure> {
    const ILLEGAL_ADDRESS: c_int = 700;
    let (words, others) = (driver.allocate(LEAF)?, driver.allocate(4 * BLOCK)?);
    words.fill(1);
    driver.bump(words, PAGE)?;
    driver.synchronise()?;
    driver.call("cuMemFree_v2", &[others.address])?;
    driver.bump(others, BLOCK)?;
    driver.expect(ILLEGAL_ADDRESS, "cuCtxSynchronize", &[])?;
    words.expect(0, 2)?;
    words.set(1, 5);
    words.expect(1, 5)
}

/// Goes on until it is killed, or no process is left to make calls to.
fn for_ever(driver: &Driver) -> Result<(), Failure> {
    let words = driver.allocate(4 * LEAF)?;
    words.fill(0);
    loop {
        driver.bump(words, PAGE)?;
        driver.synchronise()?;
        (0..4).for_each(|leaf| words.set(leaf * LEAF_WORDS, 0));
    }
}
