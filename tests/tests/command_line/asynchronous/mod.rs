//! What goes on while its warps do, on a whole GPU: copies to shared memory, and products of groups of warps.

mod bulk_copies;
mod copies;
mod matrix_groups;
mod vector_kernel;
