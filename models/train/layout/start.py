"""Where the detector's training starts: the weights of a YOLOv8-n, as others trained it on DocLayNet or as we ship it.

DocLayNet (80,863 pages, 11 classes) knows our labels but `code`, which starts as a copy of `text`. Read are ONNX
exports that keep the names of the weights, as ultralytics' and export.py's do.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gravityocr_models.layout import LABELS
from gravityocr_models.yolo import Yolo

DOCLAYNET = (
    *("caption", "footnote", "formula", "list", "footer", "header"),
    *("picture", "heading", "table", "text", "title"),
)


def started(export: Path) -> Yolo:
    """Our network with the weights of an ONNX export. Raises KeyError or RuntimeError where they are others."""
    import onnx

    names = (
        (each.name.removeprefix("network.").removesuffix(".half"), onnx.numpy_helper.to_array(each))
        for each in onnx.load(str(export)).graph.initializer
    )
    stored = {name: torch.from_numpy(values.astype(np.float32)) for name, values in names if values.ndim}
    network = Yolo(len(LABELS))
    network.load_state_dict(ours(stored, network.state_dict()))
    return network


def ours(stored: dict[str, Tensor], like: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights named in `like`, in its shapes: DocLayNet's classes in our order, three colours summed to grey."""
    order = torch.tensor([DOCLAYNET.index(label if label != "code" else "text") for label in LABELS])
    state = {}
    for name, value in like.items():
        weights = stored[name]
        if value.shape[0] == len(LABELS) != len(weights):
            weights = weights[order]
        if value.ndim == 4 and value.shape[1] == 1 != weights.shape[1]:
            weights = weights.sum(1, keepdim=True)
        state[name] = weights
    return state
