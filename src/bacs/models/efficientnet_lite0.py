"""EfficientNet-Lite0: inverted residuals without squeeze-and-excitation, ReLU6 throughout, TensorFlow's padding."""

import torch.nn.functional as F
from torch import Tensor, nn

STAGES = (
    # expansion, channels, blocks, stride, kernel
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class SameConv2d(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) pixels; an odd number of padding pixels is right and below."""

    def forward(self, input: Tensor) -> Tensor:
        pads: list[int] = []
        for axis in (1, 0):  # F.pad begins with the last axis
            size, kernel, stride = input.shape[2 + axis], self.kernel_size[axis], self.stride[axis]
            missing = max(0, (-(-size // stride) - 1) * stride + kernel - size)
            pads += [missing // 2, missing - missing // 2]
        return super().forward(F.pad(input, pads))


def _with_norm(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels, eps=1e-3, momentum=0.01)]


class InvertedResidual(nn.Module):
    """1x1 to `expansion` times the channels, depthwise, 1x1 back; the input is added where the shape stays."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, kernel: int) -> None:
        super().__init__()
        inner = inputs * expansion
        widen = [*_with_norm(nn.Conv2d(inputs, inner, 1, bias=False)), nn.ReLU6()] if expansion > 1 else []
        depthwise = SameConv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        narrow = nn.Conv2d(inner, outputs, 1, bias=False)
        self.layers = nn.Sequential(*widen, *_with_norm(depthwise), nn.ReLU6(), *_with_norm(narrow))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class EfficientNetLite0(nn.Module):
    def __init__(self, classes: int, channels: int, dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_with_norm(SameConv2d(channels, 32, 3, 2, bias=False)), nn.ReLU6()]
        inputs = 32
        for expansion, outputs, blocks, stride, kernel in STAGES:
            for position in range(blocks):
                first = position == 0
                layers.append(InvertedResidual(inputs, outputs, expansion, stride if first else 1, kernel))
                inputs = outputs
        self.features = nn.Sequential(*layers, *_with_norm(nn.Conv2d(inputs, 1280, 1, bias=False)), nn.ReLU6())
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(1280, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(images).mean(dim=(2, 3))))


def efficientnet_lite0(*, classes: int = 1000, channels: int = 3, dropout: float = 0.2) -> nn.Module:
    """EfficientNet-Lite0 for pictures of 224 px, 4.7 million parameters; its layers have the published order."""
    for name, value in (("classes", classes), ("channels", channels)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
    return EfficientNetLite0(classes, channels, dropout)
