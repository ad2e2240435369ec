"""A published DocLayout-YOLO checkpoint (DocStructBench) -> a layout.onnx that `--layout-model` takes.

    python -m gravityocr_models.train.layout.published docstructbench.pt layout.onnx --sha256 HEX

Such a file is a pickle of the package's own classes. It is read with torch's protection on: the classes that `allowed`
names may come out of it and nothing else, and its digest must be the one that its publisher states. In the file that is
written its ten classes have become our labels, so that reading pages knows one kind of file.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gravityocr_models.layout import LABELS
from gravityocr_models.train.layout.export import write_onnx

CLASSES = {
    "title": "heading",
    "plain text": "text",
    "abandon": "header",  # running heads, feet, page numbers: regions.py sees at which edge they stand
    "figure": "picture",
    "figure_caption": "caption",
    "table": "table",
    "table_caption": "caption",
    "table_footnote": "footnote",
    "isolate_formula": "formula",
    "formula_caption": "text",
}
_PARTS = """Attention Bottleneck C2f C2fCIB CIB Concat Conv DFL DilatedBlock DilatedBottleneck G2L_CRM PSA RepVGGDW
SCDown SPPF v10Detect"""
_TORCH = (nn.Sequential, nn.ModuleList, nn.Conv2d, nn.BatchNorm2d, nn.SiLU, nn.MaxPool2d, nn.Upsample, nn.Identity)


def allowed() -> list[Any]:
    """The classes that a checkpoint is made of."""
    from doclayout_yolo.nn import tasks
    from doclayout_yolo.nn.modules import block, conv, head
    from doclayout_yolo.utils import IterableSimpleNamespace

    found = [getattr(module, name, None) for name in _PARTS.split() for module in (block, conv, head)]
    return [*filter(None, found), *_TORCH, tasks.YOLOv10DetectionModel, IterableSimpleNamespace]


def load(path: Path, sha256: str) -> nn.Module:
    """The checkpoint's network, ready to read. ValueError where the file is another one or holds other things."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256.lower():
        raise ValueError(f"{path}: its sha256 is {digest}, not {sha256}")
    with torch.serialization.safe_globals(allowed()):
        stored = torch.load(path, map_location="cpu", weights_only=True)
    network: nn.Module = (stored.get("ema") or stored["model"]).float().eval()
    names = set(dict(network.names).values())  # type: ignore[arg-type]
    if names - CLASSES.keys():
        raise ValueError(f"{path}: classes that are not DocStructBench's: {', '.join(sorted(names - CLASSES.keys()))}")
    return network


class Relabelled(nn.Module):
    """Grey pages [N, 1, H, W] -> boxes [N, cells, 4], scores [N, cells, len(LABELS)], as yolo.decode gives them."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network.fuse(verbose=False)
        network.model[-1].dynamic = True  # pages of any size
        into = torch.zeros(len(network.names), len(LABELS))
        for index, name in dict(network.names).items():
            into[index, LABELS.index(CLASSES[name])] = 1
        self.register_buffer("into", into)

    def forward(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        cells = self.network(pages.expand(-1, 3, -1, -1))["one2one"][0].transpose(1, 2)
        centre, size, scores = cells[..., :2], cells[..., 2:4], cells[..., 4:]
        # The surer of two classes that share a label: a sum could exceed one.
        relabelled = (scores.unsqueeze(-1) * self.into).amax(dim=-2)
        return torch.cat((centre - size / 2, centre + size / 2), -1), relabelled


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("--sha256", required=True, help="as its publisher states it")
    parser.add_argument("--long-side", type=int, default=1024)
    options = parser.parse_args()
    write_onnx(Relabelled(load(options.checkpoint, options.sha256)), options.onnx, options.long_side)


if __name__ == "__main__":
    main()
