//! The clusters of launches: which CTAs form one, and how many of them a GPU runs at once.

use crate::code::tables::KernelInfo;
use crate::outcome::Failure;
use balar_host::CudaError;
use balar_isa::program::ClusterNeeds;
use balar_protocol::cluster::{MAXIMUM_CLUSTER, PORTABLE_CLUSTER};
use balar_protocol::cuda::KernelLaunch;
use balar_protocol::{CtaNeeds, GpuDescription};

/// The first compute capability with clusters (CUDA C++ Programming Guide, "Thread Block Clusters").
const FIRST_WITH_CLUSTERS: (u32, u32) = (9, 0);

/// The CTAs of the clusters of a launch of this grid, as the program (`named`) or the kernel names them.
pub(crate) fn named_cluster(
    kernel: &KernelInfo,
    grid: [u32; 3],
    named: Option<[u32; 3]>,
) -> Result<Option<[u32; 3]>, Failure> {
    let ClusterNeeds { required, is_explicit, maximum_size } = kernel.resources.clusters;
    let refused = |text: String| Err((CudaError::InvalidClusterSize, format!("kernel {}: {text}", kernel.name)));
    let Some(cluster) = named.or(required) else {
        return match is_explicit {
            true => refused("its launches must name their clusters".to_owned()),
            false => Ok(None),
        };
    };
    if let Some(required) = required.filter(|required| *required != cluster) {
        return refused(format!("clusters of {cluster:?} blocks, the kernel is compiled for {required:?}"));
    }
    let size: u64 = cluster.iter().map(|&extent| u64::from(extent)).product();
    let most = maximum_size.unwrap_or(MAXIMUM_CLUSTER).min(MAXIMUM_CLUSTER);
    if size == 0 || size > u64::from(most) {
        return refused(format!("clusters of {cluster:?} blocks, expected 1 to {most} in all"));
    }
    if let Some(axis) = (0..3).find(|&axis| !grid[axis].is_multiple_of(cluster[axis])) {
        let (name, grid, extent) = (["x", "y", "z"][axis], grid[axis], cluster[axis]);
        return refused(format!("grid.{name} is {grid}, expected a multiple of the {extent} blocks of a cluster"));
    }
    Ok(Some(cluster))
}

/// Does the GPU run clusters such as those of the launch?
pub(crate) fn check_clusters(
    launch: &KernelLaunch,
    needs: &ClusterNeeds,
    gpu: &GpuDescription,
    non_portable: bool,
) -> Result<(), Failure> {
    let Some(cluster) = launch.cluster else { return Ok(()) };
    let refused = |error: CudaError, text: String| Err((error, format!("kernel {}: {text}", launch.name)));
    let (size, (major, minor)) = (launch.cluster_size(), gpu.compute_capability);
    if size > 1 && gpu.compute_capability < FIRST_WITH_CLUSTERS {
        let text = format!(
            "clusters of {cluster:?} blocks on a GPU of compute capability {major}.{minor}, expected 9.0 or higher"
        );
        return refused(CudaError::InvalidClusterSize, text);
    }
    let is_allowed = non_portable || needs.maximum_size.is_some_and(|most| most > PORTABLE_CLUSTER);
    if size > PORTABLE_CLUSTER && !is_allowed {
        let text = format!(
            "clusters of {cluster:?} blocks, expected {PORTABLE_CLUSTER} in all at most where the program has not allowed \
             others (cudaFuncAttributeNonPortableClusterSizeAllowed)"
        );
        return refused(CudaError::InvalidClusterSize, text);
    }
    if size > 1 && gpu.cluster_groups.is_none() {
        let text =
            format!("clusters of {cluster:?} blocks, and {} has no SmNetwork, which would join its SMs", gpu.part);
        return refused(CudaError::NotSupported, text);
    }
    if size > 1 && active_clusters(&CtaNeeds::of_cta(launch), size, gpu) == 0 {
        let text =
            format!("a cluster of {cluster:?} blocks is too large for the SMs of {} that it could be on", gpu.part);
        return refused(CudaError::LaunchOutOfResources, text);
    }
    Ok(())
}

/// Clusters of so many CTAs that the GPU runs at once. 0 where it runs none.
pub(crate) fn active_clusters(wanted: &CtaNeeds, size: u32, gpu: &GpuDescription) -> u32 {
    let Some(groups) = &gpu.cluster_groups else { return 0 };
    let mut sms = gpu.sms.iter();
    let clusters = groups.iter().map(|&count| {
        let of_group = sms.by_ref().take(count as usize);
        of_group.map(|sm| sm.room_for(wanted)).sum::<u32>() / size.max(1)
    });
    clusters.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{gpu_description, kernel_launch};

    fn named(clusters: ClusterNeeds, grid: [u32; 3], cluster: Option<[u32; 3]>) -> Result<Option<[u32; 3]>, String> {
        let mut kernel = KernelInfo { name: "k".into(), ..KernelInfo::default() };
        kernel.resources.clusters = clusters;
        named_cluster(&kernel, grid, cluster).map_err(|(error, text)| {
            assert_eq!(error, CudaError::InvalidClusterSize);
            text
        })
    }

    #[test]
    fn the_launch_or_the_kernel_names_the_clusters() {
        let none = ClusterNeeds::default();
        let required = ClusterNeeds { required: Some([2, 2, 1]), ..none };
        let grid = [8, 4, 1];
        assert_eq!(named(none, grid, None), Ok(None));
        assert_eq!(named(none, grid, Some([4, 1, 1])), Ok(Some([4, 1, 1])));
        assert_eq!(named(required, grid, None), Ok(Some([2, 2, 1])));
        assert_eq!(named(required, grid, Some([2, 2, 1])), Ok(Some([2, 2, 1])));
        let explicit = ClusterNeeds { is_explicit: true, ..none };
        let limited = ClusterNeeds { maximum_size: Some(4), ..none };
        for (needs, grid, cluster, text) in [
            (required, grid, Some([4, 1, 1]), "compiled for [2, 2, 1]"),
            (explicit, grid, None, "must name their clusters"),
            (limited, grid, Some([8, 1, 1]), "expected 1 to 4 in all"),
            (none, grid, Some([0, 1, 1]), "expected 1 to 16 in all"),
            (none, [32, 1, 1], Some([32, 1, 1]), "expected 1 to 16 in all"),
            (none, [9, 1, 1], Some([2, 1, 1]), "grid.x is 9, expected a multiple of the 2 blocks"),
        ] {
            let found = named(needs, grid, cluster).expect_err(text);
            assert!(found.contains(text), "{found}");
        }
    }

    #[test]
    fn gpus_run_clusters_within_their_groups() {
        let hopper = GpuDescription {
            compute_capability: (9, 0),
            cluster_groups: Some(vec![1]),
            sms: gpu_description().sms.into_iter().take(1).collect(),
            ..gpu_description()
        };
        let check = |gpu: &GpuDescription, cluster: [u32; 3], non_portable| {
            let launch = KernelLaunch { cluster: Some(cluster), grid: [16, 1, 1], ..kernel_launch() };
            check_clusters(&launch, &ClusterNeeds::default(), gpu, non_portable).map_err(|(error, _)| error)
        };
        assert_eq!(check(&hopper, [8, 1, 1], false), Ok(()));
        assert_eq!(check(&hopper, [16, 1, 1], false), Err(CudaError::InvalidClusterSize));
        assert_eq!(check(&hopper, [16, 1, 1], true), Ok(()));
        let volta = GpuDescription { compute_capability: (7, 0), ..hopper.clone() };
        assert_eq!(check(&volta, [2, 1, 1], false), Err(CudaError::InvalidClusterSize));
        assert_eq!(check(&volta, [1, 1, 1], false), Ok(()));
        let alone = GpuDescription { cluster_groups: None, ..hopper.clone() };
        assert_eq!(check(&alone, [2, 1, 1], false), Err(CudaError::NotSupported));
        let room = hopper.sms[0].room_for(&CtaNeeds::of_threads(1024, 32, 0));
        assert_eq!(active_clusters(&CtaNeeds::of_threads(1024, 32, 0), 2, &hopper), room / 2);
    }
}
