"""PyTorch: the forward pass of a ResNet-18 for one image of 224 x 224, against the host."""

import copy

import torch
from ladder import end, step
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name(0)}", flush=True)


class Block(nn.Module):
    """Two convolutions of 3 x 3 and what goes past them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.past = nn.Identity()
        if inputs != outputs:
            self.past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, image):
        inner = functional.relu(self.first_norm(self.first(image)))
        return functional.relu(self.second_norm(self.second(inner)) + self.past(image))


def resnet18():
    """The network of "Deep Residual Learning for Image Recognition" (He and others, 2015), table 1."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for inputs, outputs, stride in [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]:
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).eval()


network, image = resnet18(), torch.randn(1, 3, 224, 224)


def forward():
    with torch.no_grad():
        result, expected = copy.deepcopy(network).cuda()(image.cuda()).cpu(), network(image)
    return torch.allclose(result, expected, rtol=1e-3, atol=1e-3)


step("forward", forward)
end()
