"""The trained layout detector -> the file that it is run from: network and decoding as ONNX, weights in half precision.

python -m gravityocr_models.train.layout.export WEIGHTS.safetensors layout.onnx --long-side 640
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from gravityocr_models.layout import LABELS
from gravityocr_models.yolo import Yolo, decode


class Readable(nn.Module):
    """The network with its decoding: pages -> boxes, scores (yolo.decode)."""

    def __init__(self, network: Yolo) -> None:
        super().__init__()
        self.network = network.eval().requires_grad_(False)

    def forward(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        return decode(self.network(pages))


def export(network: Yolo, path: Path, long_side: int) -> None:
    """Writes the network for pages of any size. Changes its argument."""
    write_onnx(Readable(network), path, long_side)


def write_onnx(reader: nn.Module, path: Path, long_side: int) -> None:
    """Writes what makes of float [N, 1, H, W] boxes [N, cells, 4] and scores [N, cells, len(LABELS)]."""
    for parameter in reader.parameters():
        parameter.detach_()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter calls itself old; the new one wants a fixed size
        torch.onnx.export(
            reader,
            (torch.ones(1, 1, 160, 128),),
            path,
            dynamo=False,
            input_names=["pages"],
            output_names=["boxes", "scores"],
            dynamic_axes={"pages": {0: "count", 2: "height", 3: "width"}},
        )
    _halve(path, {"labels": " ".join(LABELS), "long_side": str(long_side)})


def _halve(path: Path, facts: dict[str, str]) -> None:
    """Rewrites the file with its large weights in half precision, cast back when it is loaded, and the facts added."""
    import onnx

    model = onnx.load(str(path))
    casts = []
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 1000:
            name = tensor.name
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
            casts.append(onnx.helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("--long-side", type=int, required=True)
    options = parser.parse_args()
    network = Yolo(len(LABELS))
    network.load_state_dict({name: value.float() for name, value in load_file(options.weights).items()})
    export(network, options.onnx, options.long_side)


if __name__ == "__main__":
    main()
