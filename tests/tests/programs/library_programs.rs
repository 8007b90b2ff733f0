//! Programs that use NVIDIA's libraries, whose kernels are machine code alone and whose CUDA runtime is linked statically.
//!
//! The libraries are among the Python packages that `tools/cuda-toolchain --python FOLDER` installs; `BALAR_CUDA_TOOLCHAIN` names the folder.

use crate::cuda_toolchain::Toolchain;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PRODUCTS: &str =
    "PASS single precision: 0 of 4096 elements differ\nPASS half precision: 0 of 4096 elements differ\n";

/// cuBLAS 12.4, the last that PyTorch came with for a V100: every order of sums gives the same bits.
#[test]
#[ignore = "needs Python packages: tools/cuda-toolchain --python"]
fn products_of_cublas_have_the_bits_of_the_host() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the packages");
    let packages = toolchain.python_packages().join("site/nvidia");
    let libraries = [("cublas/lib", "libcublas.so.12"), ("cuda_runtime/lib", "libcudart.so.12")];
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cublas_products");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries/products.c"));
    for (folder, library) in libraries {
        let folder = packages.join(folder);
        compiler.arg(folder.join(library)).arg(format!("-Wl,-rpath,{}", folder.display()));
    }
    let built = compiler.output().expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for topology in ["v100_node", "t4_node"] {
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_command-line-under-test"))
            .args(["run", "--quiet", "--topology", topology, "--"])
            .arg(&program)
            .timeout(Duration::from_secs(240))
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), PRODUCTS, "{topology}: {said}");
        assert_eq!(output.status.code(), Some(0), "{topology}: {said}");
    }
}
