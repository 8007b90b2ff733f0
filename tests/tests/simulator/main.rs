//! Units, the topology language and kernels' requests to a node, by the library.

mod bad_topologies;
mod barriers;
mod clusters;
mod constants;
mod detail;
mod device_runtime;
mod host_memory;
mod managed_memory;
mod own_units;
mod queues;
mod residency;
mod row_counts;
mod sm_resources;
mod textures;
mod topologies;
mod topology_picture;
mod topology_shown;
mod toy_units;
mod virtual_memory;
