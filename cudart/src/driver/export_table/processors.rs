//! Where the SMs of a GPU are. cuBLASLt asks for it on Hopper, where the clusters of a kernel have to fit the GPU's clusters of processors (GPCs);
//! it does without, and takes the heuristics of a GPU whose SMs lie anywhere (own finding, from the calls of cuBLASLt 13.4).

use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::driver::early;
use crate::export_slots;
use balar_host::CudaError;
use std::ffi::c_int;

/// The table. How many slots that of NVIDIA's driver has is not known; one of them is called.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[9],
    identifier: 0x1734dc26_800d_4745_8726_c0f1e7dd8bca,
    slots: &const {
        export_slots![9; 32;
            0 => Slot::number(32 * size_of::<Slot>()),
            4 => Slot::function(clusters_of_pairs as *const ()),
        ]
    },
};

/// A byte for each pair of SMs, the number of its cluster of processors: the simulated driver does not tell.
unsafe extern "C" fn clusters_of_pairs(_numbers: Out<u64>, _count: Out<u64>) -> c_int {
    early(&mut || Err(CudaError::NotSupported))
}
