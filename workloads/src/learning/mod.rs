//! Clusters of points, and a neural network.

pub(crate) mod backprop;
pub(crate) mod clustering;
pub(crate) mod kmeans;
