"""The CIFAR ResNets of He et al. 2016, section 4.2, with shortcuts without weights: as most checkpoints have them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PlainShortcutBlock(nn.Module):
    """Two 3x3 convolutions; where the shape changes, the shortcut drops every other pixel and adds zero channels."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        if self.added:
            shortcut = F.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return torch.relu(out + shortcut)


class CifarResNet(nn.Module):
    def __init__(self, classes: int, channels: int, width: int, blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._stage(width, width, blocks, 1)
        self.layer2 = self._stage(width, 2 * width, blocks, 2)
        self.layer3 = self._stage(2 * width, 4 * width, blocks, 2)
        self.linear = nn.Linear(4 * width, classes)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight)

    @staticmethod
    def _stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
        first = PlainShortcutBlock(inputs, outputs, stride)
        return nn.Sequential(first, *(PlainShortcutBlock(outputs, outputs, 1) for _ in range(blocks - 1)))

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.bn1(self.conv1(images)))
        features = self.layer3(self.layer2(self.layer1(features)))
        return self.linear(features.mean(dim=(2, 3)))


def cifar_resnet(*, depth: int = 20, classes: int = 10, channels: int = 3, width: int = 16) -> nn.Module:
    """ResNet-20, 32, 44, 56, 110: depth 6n + 2 with n blocks in each of three stages."""
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"depth must be 6n + 2, such as 20, 32, 44 or 56, got {depth}")
    for name, value in (("classes", classes), ("channels", channels), ("width", width)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return CifarResNet(classes, channels, width, (depth - 2) // 6)
