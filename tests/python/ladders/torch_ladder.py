"""PyTorch: tensors, cuBLAS, cuDNN, cuFFT, cuSOLVER, cuSPARSE, sorting, random numbers, training."""

import copy

import torch
from ladder import end, step
from torch.nn import functional

torch.manual_seed(0)
device = "cuda"
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name(0)}", flush=True)


def close(result, expected, tolerance=1e-4):
    return torch.allclose(result.float().cpu(), expected.float(), rtol=tolerance, atol=tolerance)


def same(function, *tensors, tolerance=1e-4):
    """Whether a function gives on the device what it gives on the host."""
    return close(function(*[tensor.to(device) for tensor in tensors]), function(*tensors), tolerance)


x, y = torch.randn(64, 64), torch.randn(64, 64)
image, weight = torch.randn(2, 3, 16, 16), torch.randn(8, 3, 3, 3)

step("fill", lambda: bool((torch.ones(1000, device=device).cpu() == 1).all()))
step("copies", lambda: bool((x.to(device).cpu() == x).all()))
step("addition", lambda: same(torch.add, x, y))
step("sum", lambda: same(torch.sum, x, tolerance=1e-3))
step("gelu of exp of sin", lambda: same(lambda v: functional.gelu(torch.exp(v.sin())), x))
step("softmax", lambda: same(lambda v: v.softmax(-1), x))
step("layer_norm", lambda: same(lambda v: functional.layer_norm(v, (64,)), x))
step("batch_norm", lambda: same(lambda v: functional.batch_norm(v, None, None, training=True), image, tolerance=1e-3))
step("matmul in fp32", lambda: same(torch.matmul, x, y, tolerance=1e-3))
step("matmul in fp16", lambda: close(x.half().to(device) @ y.half().to(device), x @ y, 1e-1))
step("bmm", lambda: same(torch.bmm, x.view(4, 16, 64), y.view(4, 64, 16), tolerance=1e-3))
step("einsum", lambda: same(lambda a, b: torch.einsum("ij,kj->ik", a, b), x, y, tolerance=1e-3))
step("sort", lambda: same(lambda v: v.flatten().sort()[0], x))
step("cumsum", lambda: same(lambda v: v.cumsum(0), x, tolerance=1e-3))
step("argmax and topk", lambda: same(lambda v: v.argmax(1), x) and same(lambda v: v.topk(5, 1)[0], x))
step("index_select", lambda: same(lambda v: v.index_select(0, torch.tensor([3, 1, 2], device=v.device)), x))
step("scatter_add", lambda: same(lambda v: torch.zeros_like(v).scatter_add(0, v.argsort(0), v), x))
step("embedding", lambda: same(lambda v: functional.embedding(torch.tensor([1, 5], device=v.device), v), x))
step("nonzero and masks", lambda: same(lambda v: v[v > 0], x))
step("random numbers", lambda: 0.4 < torch.rand(10000, device=device).mean().item() < 0.6)
step("dropout", lambda: 0.3 < (functional.dropout(torch.ones(10000, device=device), 0.5) == 0).float().mean().item() < 0.7)
step("conv2d", lambda: same(lambda v, w: functional.conv2d(v, w, padding=1), image, weight, tolerance=1e-3))


def convolution_without_cudnn():
    with torch.backends.cudnn.flags(enabled=False):
        return same(lambda v, w: functional.conv2d(v, w, padding=1), image, weight, tolerance=1e-3)


step("conv2d without cuDNN", convolution_without_cudnn)
step("max_pool2d", lambda: same(lambda v: functional.max_pool2d(v, 2), image))
step("interpolate", lambda: same(lambda v: functional.interpolate(v, scale_factor=2, mode="bilinear"), image))
step("attention", lambda: same(functional.scaled_dot_product_attention, *torch.randn(3, 1, 2, 16, 32).unbind(0), tolerance=1e-3))


def gradients(model, sample, tolerance):
    """Whether outputs and all gradients of a model are on the device what they are on the host."""
    other = copy.deepcopy(model).to(device)
    result, expected = other(sample.to(device)), model(sample)
    result.square().mean().backward()
    expected.square().mean().backward()
    pairs = zip(other.parameters(), model.parameters())
    return close(result, expected, tolerance) and all(close(a.grad, b.grad, tolerance) for a, b in pairs)


def transformer():
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    return gradients(torch.nn.TransformerEncoder(layer, 2), torch.randn(1, 8, 32), 1e-3)


def convolutions():
    layers = [torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1024, 4)]
    return gradients(torch.nn.Sequential(*layers), image, 1e-3)


def lstm():
    model = torch.nn.LSTM(16, 32)
    other, sample = copy.deepcopy(model).to(device), torch.randn(5, 2, 16)
    return close(other(sample.to(device))[0], model(sample)[0], 1e-3)


def training(optimizer):
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(device)
    optimizer = optimizer(model.parameters())
    sample, target = torch.randn(16, 32, device=device), torch.randint(0, 4, (16,), device=device)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(sample), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0]


step("transformer, forward and backward", transformer)
step("convolutional network, forward and backward", convolutions)
step("lstm", lstm)
step("training with SGD", lambda: training(lambda parameters: torch.optim.SGD(parameters, lr=0.1)))
step("training with Adam", lambda: training(lambda parameters: torch.optim.Adam(parameters, lr=0.01)))
step("fft", lambda: same(lambda v: torch.fft.fft(v).real, x, tolerance=1e-3))
step("linalg.solve", lambda: same(torch.linalg.solve, x, y, tolerance=1e-1))
step("linalg.eigvalsh", lambda: same(lambda v: torch.linalg.eigvalsh(v @ v.T), x, tolerance=1e-1))
step("sparse product", lambda: close(torch.sparse.mm(x.to_sparse_csr().to(device), y.to(device)), x @ y, 1e-2))


def graph():
    static = x.to(device)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        static * 2
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        doubled = static * 2
    static.copy_(y)
    captured.replay()
    return close(doubled, y * 2)


step("CUDA graph", graph)
end()
