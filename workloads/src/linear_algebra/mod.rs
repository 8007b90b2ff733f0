//! Matrices and vectors: sums, products, decompositions, systems of equations.

pub(crate) mod atax;
pub(crate) mod gaussian;
pub(crate) mod gemm;
pub(crate) mod lud;
pub(crate) mod row_walk;
pub(crate) mod spmv;
pub(crate) mod tensor_gemm;
pub(crate) mod transpose;
pub(crate) mod vectoradd;
