"""JAX with its default settings: XLA's kernels, cuBLAS, cuDNN, gradients."""

import jax
import jax.numpy as jnp
import numpy
from ladder import end, step

print(f"jax {jax.__version__}, {jax.devices()}", flush=True)
a = numpy.random.RandomState(0).randn(64, 64).astype(numpy.float32)
A = jnp.asarray(a)


def close(result, expected, tolerance=1e-2):
    return bool(numpy.allclose(numpy.asarray(result), expected, rtol=tolerance, atol=tolerance))


def convolution():
    image, weight = a[:16, :48].reshape(1, 3, 16, 16), numpy.ones((8, 3, 3, 3), numpy.float32)
    result = numpy.asarray(jax.lax.conv(image, weight, (1, 1), "SAME"))
    padded = numpy.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = sum(padded[:, :, i : i + 16, j : j + 16].sum(1) for i in range(3) for j in range(3))
    return close(result[:, 0], expected)


step("a GPU is found", lambda: jax.devices()[0].platform == "gpu")
step("device_put", lambda: bool((numpy.asarray(jax.device_put(a)) == a).all()))
step("addition", lambda: bool((numpy.asarray(A + 1) == a + 1).all()))
step("sum", lambda: close(A.sum(), a.sum()))
step("matmul", lambda: close(A @ A, a @ a))
step("softmax", lambda: close(jax.jit(jax.nn.softmax)(A).sum(1), 1))
step("grad", lambda: close(jax.grad(lambda x: (jnp.sin(x) ** 2).sum())(A), numpy.sin(2 * a)))
step("sort", lambda: bool((numpy.asarray(jnp.sort(A.ravel())) == numpy.sort(a.ravel())).all()))
step("convolution", convolution)
step("random", lambda: 0.4 < float(jax.random.uniform(jax.random.key(0), (1000,)).mean()) < 0.6)
end()
