//! What is new with Hopper, on a whole GPU.

mod matrix_groups;
