"""The layout detector's network: YOLOv8-n in plain torch, so that reading a page does not import a training framework.

Three maps of features (strides 8, 16, 32) come out of a convolutional trunk and a neck that mixes them up and down; on
each, every cell says how far away the four sides of its region are and what the region is. Module names and shapes are
those of doclayout-yolo's `yolov8n` (its loss and assigner train this network), with one grey channel in and every batch
norm folded into the convolution before it: weights that begin trained need none, and it is faster both ways.
"""

import torch
from torch import Tensor, nn

STRIDES = (8, 16, 32)
BINS = 16  # a side's distance is the mean of a distribution over 0..15 cells


class Conv(nn.Module):
    """Convolution, SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.silu(self.conv(x), inplace=True)


class Bottleneck(nn.Module):
    """Two 3x3 convolutions, added to their input where `add`."""

    def __init__(self, width: int, add: bool) -> None:
        super().__init__()
        self.cv1, self.cv2, self.add = Conv(width, width, 3), Conv(width, width, 3), add

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.cv2(self.cv1(x))
        return x + y if self.add else y


class C2f(nn.Module):
    """Half of the channels through a chain of bottlenecks, every link's output kept."""

    def __init__(self, inputs: int, outputs: int, links: int, add: bool) -> None:
        super().__init__()
        half = outputs // 2
        self.cv1, self.cv2 = Conv(inputs, outputs), Conv((2 + links) * half, outputs)
        self.m = nn.ModuleList(Bottleneck(half, add) for _ in range(links))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.cv1(x).chunk(2, 1))
        for link in self.m:
            parts.append(link(parts[-1]))
        y: Tensor = self.cv2(torch.cat(parts, 1))
        return y


class SPPF(nn.Module):
    """The surroundings of every cell: three poolings, one after the other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width // 2), Conv(width * 2, width)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.m(parts[-1]))
        y: Tensor = self.cv2(torch.cat(parts, 1))
        return y


class Detect(nn.Module):
    """Per cell: 4 x BINS logits of the distances to the sides, then a logit for each class."""

    def __init__(self, classes: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.nc, self.reg_max, self.no = classes, BINS, classes + 4 * BINS
        self.stride = torch.tensor([float(stride) for stride in STRIDES])
        self.cv2 = nn.ModuleList(_branch(width, 4 * BINS, 4 * BINS) for width in widths)
        self.cv3 = nn.ModuleList(_branch(width, max(widths[0], classes), classes) for width in widths)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        branches = zip(maps, self.cv2, self.cv3, strict=True)
        return [torch.cat((sides(x), kinds(x)), 1) for x, sides, kinds in branches]


def _branch(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(Conv(inputs, width, 3), Conv(width, width, 3), nn.Conv2d(width, outputs, 1))


class Yolo(nn.Module):
    """Grey pages -> three maps of cells. All modules stand in `model`, in the order of doclayout-yolo's yolov8.yaml."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        up, join = nn.Upsample(scale_factor=2), nn.Identity()  # places of the list that hold no weights
        self.model = nn.ModuleList(
            [
                *(Conv(1, 16, 3, 2), Conv(16, 32, 3, 2), C2f(32, 32, 1, True)),
                *(Conv(32, 64, 3, 2), C2f(64, 64, 2, True)),
                *(Conv(64, 128, 3, 2), C2f(128, 128, 2, True)),
                *(Conv(128, 256, 3, 2), C2f(256, 256, 1, True), SPPF(256)),
                *(up, join, C2f(384, 128, 1, False)),
                *(up, join, C2f(192, 64, 1, False)),
                *(Conv(64, 64, 3, 2), join, C2f(192, 128, 1, False)),
                *(Conv(128, 128, 3, 2), join, C2f(384, 256, 1, False)),
                Detect(classes, (64, 128, 256)),
            ]
        )

    def forward(self, pages: Tensor) -> list[Tensor]:
        """float [N, 1, H, W], 0 black to 1 white, H and W multiples of 32 -> [N, 4 * BINS + classes, H / s, W / s]."""
        m = self.model
        x = pages
        for part in m[:5]:
            x = part(x)
        fine = x
        middle = m[6](m[5](fine))
        coarse = m[9](m[8](m[7](middle)))
        middle = m[12](torch.cat((m[10](coarse), middle), 1))
        fine = m[15](torch.cat((m[13](middle), fine), 1))
        middle = m[18](torch.cat((m[16](fine), middle), 1))
        coarse = m[21](torch.cat((m[19](middle), coarse), 1))
        maps: list[Tensor] = m[22]([fine, middle, coarse])
        return maps


def decode(maps: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Boxes [N, cells, 4] (left, top, right, bottom in pixels) and scores [N, cells, classes] of the network's maps.

    Several cells say the same region: what suppresses the doubles is the caller's.
    """
    boxes, scores = [], []
    bins = torch.arange(BINS, dtype=torch.float32, device=maps[0].device)
    for stride, cells in zip(STRIDES, maps, strict=True):
        height, width = cells.shape[2:]
        cells = cells.flatten(2).transpose(1, 2).float()
        sides = cells[..., : 4 * BINS].unflatten(2, (4, BINS)).softmax(3) @ bins
        y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
        centre = torch.stack((x, y), -1).reshape(-1, 2).to(sides.device)
        boxes.append(torch.cat((centre - sides[..., :2], centre + sides[..., 2:]), -1) * stride)
        scores.append(cells[..., 4 * BINS :].sigmoid())
    return torch.cat(boxes, 1), torch.cat(scores, 1)
