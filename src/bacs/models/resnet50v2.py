"""The ImageNet network of the paper: pre-activation bottlenecks in the manner of dm-haiku's ResNet50 v2."""

import torch
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """norm-relu before each of three convolutions; the stride sits on the 3x3, the projection has no norm."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, project: bool) -> None:
        super().__init__()
        inner = outputs // 4
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, inner, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, outputs, 1, bias=False)
        self.projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if project else None

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.norm1(x))
        shortcut = x if self.projection is None else self.projection(active)
        out = self.conv1(active)
        out = self.conv2(torch.relu(self.norm2(out)))
        out = self.conv3(torch.relu(self.norm3(out)))
        return out + shortcut


class ResNet50V2(nn.Module):
    def __init__(self, classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 7, 2, padding=3, bias=False)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        blocks, inputs = [], width
        for index, count in enumerate((3, 4, 6, 3)):
            outputs = 4 * width * 2**index
            for position in range(count):
                stride = 2 if position == 0 and index > 0 else 1
                blocks.append(Bottleneck(inputs, outputs, stride, project=position == 0))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        self.head = nn.Linear(inputs, classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                # haiku's default: a normal of variance 1 / fan_in, cut at two deviations.
                deviation = (layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]) ** -0.5
                nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        features = torch.relu(self.norm(self.blocks(self.pool(self.conv(images)))))
        return self.head(features.mean(dim=(2, 3)))


def resnet50v2(*, classes: int = 1000, channels: int = 3, width: int = 64) -> nn.Module:
    """ResNet50 v2 with bottlenecks 3-4-6-3; `width` is the stem's, 64 in the paper."""
    for name, value in (("classes", classes), ("channels", channels), ("width", width)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return ResNet50V2(classes, channels, width)
