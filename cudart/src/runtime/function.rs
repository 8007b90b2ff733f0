//! What the program asks of and about kernels.

use crate::core::arguments::Out;
use crate::core::registry;
use crate::cuda_api;

cuda_api! {
    fn cudaGetFuncBySymbol(function: Out<u64>, symbol: usize) {
        function.set(registry::kernel(symbol)?.handle())
    }

    fn cudaGetKernel(kernel: Out<u64>, symbol: usize) {
        kernel.set(registry::kernel(symbol)?.handle())
    }
}
