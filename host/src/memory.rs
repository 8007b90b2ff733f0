//! The memory map of a node: one flat address space that programs, devices and the simulator share.
//!
//! An address alone says whose memory it is (CUDA's unified addressing). The ranges lie where Linux places nothing of a program
//! by itself, so that a program can map pinned and managed memory at the addresses that devices use.

/// The first device address: where GPU 0's memory begins.
pub const BASE: u64 = 0x7000_0000_0000;
/// From one GPU's memory to the next.
pub const GPU_STRIDE: u64 = 1 << 40;
/// GPUs that a node can have.
pub const MAXIMUM_GPUS: u64 = 8;
/// Where the host window begins: pinned host memory and managed memory, which the host and every device access.
pub const HOST_BASE: u64 = BASE + MAXIMUM_GPUS * GPU_STRIDE;
/// Bytes of the host window.
pub const HOST_BYTES: u64 = GPU_STRIDE;
/// Where managed memory begins in the host window; pinned memory lies below.
pub const MANAGED_BASE: u64 = HOST_BASE + HOST_BYTES / 2;
/// The first address after all of it.
pub const END: u64 = HOST_BASE + HOST_BYTES;

/// Whose memory an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The memory of this GPU.
    Device(u32),
    /// Pinned host memory or managed memory.
    HostWindow,
    /// Memory that only the host knows: pageable memory of the program.
    Elsewhere,
}

/// Whose memory `address` is.
pub fn place_of(address: u64) -> Place {
    match address {
        BASE..HOST_BASE => Place::Device(((address - BASE) / GPU_STRIDE) as u32),
        HOST_BASE..END => Place::HostWindow,
        _ => Place::Elsewhere,
    }
}

/// Is `address` pinned host memory, which devices reach over their links?
#[inline(always)]
pub const fn is_pinned(address: u64) -> bool {
    address.wrapping_sub(HOST_BASE) < MANAGED_BASE - HOST_BASE
}

/// The first address of a GPU's memory.
pub fn gpu_base(gpu: usize) -> u64 {
    BASE + gpu as u64 * GPU_STRIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_whose_memory_it_is() {
        assert_eq!(place_of(BASE - 1), Place::Elsewhere);
        assert_eq!(place_of(BASE), Place::Device(0));
        assert_eq!(place_of(gpu_base(3) + 17), Place::Device(3));
        assert_eq!(place_of(HOST_BASE - 1), Place::Device(7));
        assert_eq!(place_of(HOST_BASE), Place::HostWindow);
        assert_eq!(place_of(END), Place::Elsewhere);
        let pinned = [HOST_BASE - 1, HOST_BASE, MANAGED_BASE - 1, MANAGED_BASE, END].map(is_pinned);
        assert_eq!(pinned, [false, true, true, false, false]);
    }
}
