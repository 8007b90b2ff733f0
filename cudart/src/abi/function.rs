//! The facts that programs are told about kernels.

use balar_host::call::FunctionAttributes;
use std::ffi::c_int;

/// `cudaFuncAttributes` of CUDA 11 and before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes11 {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    maximum_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    maximum_dynamic_shared_bytes: c_int,
    carveout: c_int,
}

/// `cudaFuncAttributes` from CUDA 12 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    base: Attributes11Fields,
    cluster_must_be_set: c_int,
    cluster: [c_int; 3],
    cluster_scheduling: c_int,
    non_portable_clusters: c_int,
    reserved: [c_int; 16],
}

/// [`Attributes11`] without the padding at its end, which later fields take.
type Attributes11Fields = [u32; 13];

impl Attributes {
    /// The attributes of a kernel on a device, with what the program has said of them.
    pub fn of(attributes: &FunctionAttributes, carveout: c_int, settings: ClusterSettings) -> Attributes {
        let cluster = attributes.cluster.unwrap_or(settings.required);
        Attributes {
            base: Attributes11::of(attributes, carveout).fields(),
            cluster_must_be_set: c_int::from(attributes.cluster_must_be_set),
            cluster: cluster.map(|extent| extent.min(i32::MAX as u32) as c_int),
            cluster_scheduling: settings.scheduling,
            non_portable_clusters: c_int::from(settings.non_portable),
            ..Attributes::default()
        }
    }
}

impl Attributes11 {
    /// The attributes of a kernel on a device, and the preferred share of shared memory.
    pub fn of(attributes: &FunctionAttributes, carveout: c_int) -> Attributes11 {
        let int = |value: u32| value.min(i32::MAX as u32) as c_int;
        Attributes11 {
            shared_bytes: attributes.shared_bytes as usize,
            constant_bytes: attributes.constant_bytes as usize,
            local_bytes: attributes.local_bytes as usize,
            maximum_threads: int(attributes.maximum_threads),
            registers: int(attributes.registers),
            ptx_version: int(attributes.ptx_version),
            binary_version: int(attributes.binary_version),
            cache_mode: 0,
            maximum_dynamic_shared_bytes: int(attributes.maximum_dynamic_shared_bytes),
            carveout,
        }
    }

    fn fields(&self) -> Attributes11Fields {
        let size = |value: usize| [value as u32, (value as u64 >> 32) as u32];
        let [shared, constant, local] = [self.shared_bytes, self.constant_bytes, self.local_bytes].map(size);
        [
            shared[0],
            shared[1],
            constant[0],
            constant[1],
            local[0],
            local[1],
            self.maximum_threads as u32,
            self.registers as u32,
            self.ptx_version as u32,
            self.binary_version as u32,
            self.cache_mode as u32,
            self.maximum_dynamic_shared_bytes as u32,
            self.carveout as u32,
        ]
    }
}

/// What a program has said of the clusters of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Blocks of a cluster in each dimension; 0 where it has not said any (`cudaFuncAttributeRequiredClusterWidth` and the like).
    pub required: [u32; 3],
    /// Clusters may be larger than every GPU with clusters runs (`cudaFuncAttributeNonPortableClusterSizeAllowed`).
    pub non_portable: bool,
    /// How they would be scheduled: a hint.
    pub scheduling: i32,
}

impl ClusterSettings {
    /// The clusters of a launch that names these, or none.
    pub fn of_launch(&self, named: Option<[u32; 3]>) -> Option<[u32; 3]> {
        let set = self.required.iter().any(|extent| *extent != 0).then(|| self.required.map(|extent| extent.max(1)));
        named.or(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<Attributes11>(56, 8);
        assert_eq!(size_of::<Attributes>(), 140);
        assert_eq!(offset_of!(Attributes11, registers), 28);
        assert_eq!(offset_of!(Attributes11, carveout), 48);
        assert_eq!(offset_of!(Attributes, cluster_must_be_set), 52);
        assert_eq!(offset_of!(Attributes, non_portable_clusters), 72);
    }

    #[test]
    fn both_layouts_begin_alike() {
        let known = FunctionAttributes { local_bytes: 24, registers: 37, ..FunctionAttributes::default() };
        let attributes = Attributes11::of(&known, -1);
        let fields = attributes.fields();
        assert_eq!((fields[4], fields[5], fields[7], fields[12]), (24, 0, 37, u32::MAX));
    }
}
