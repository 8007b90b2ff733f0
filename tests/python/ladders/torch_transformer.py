"""PyTorch: a transformer of two layers in half precision, forward and backward, against the host in single precision."""

import copy
import sys

import torch
from ladder import end, step

WIDTH, HEADS, FORWARD, TOKENS, BATCH = 128, 4, 256, 32, 2

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, FORWARD, dropout=0.0, batch_first=True)
host = torch.nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
device = copy.deepcopy(host).half().cuda()
tokens = torch.randn(BATCH, TOKENS, WIDTH)
name = torch.cuda.get_device_name(0)
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {name}", flush=True)


def is_near(result, expected):
    """Whether numbers of half precision differ from those of the host by less than a hundredth of their size."""
    difference = (result.detach().float().cpu() - expected.detach()).norm() / expected.detach().norm()
    print(f"  relative difference {difference:.5f}", file=sys.stderr)
    return difference < 1e-2


expected = host(tokens)
expected.square().mean().backward()
result = device(tokens.half().cuda())
step("forward", lambda: is_near(result, expected))
result.float().square().mean().backward()
pairs = list(zip(device.parameters(), host.parameters()))
step("backward", lambda: all([is_near(own.grad, its.grad) for own, its in pairs if its.grad.norm() > 1e-4]))
end()
