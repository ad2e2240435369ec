"""What stands where on a page, by its pixels alone: the layout detector, its label set and its answer.

    detector = Detector(WEIGHTS)
    for found in detector.find(pixels): ...

The network is yolo.Yolo, exported with its decoding by train/layout/export.py. It runs in onnxruntime: PyMuPDF's layout
analysis has loaded that anyway in the processes that take pages apart, where torch would cost seconds and memory.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WEIGHTS = Path(__file__).parent / "weights" / "layout" / "layout.onnx"
LABELS = (
    "title",
    "heading",
    "text",
    "list",
    "caption",
    "footnote",
    "code",
    "table",
    "formula",
    "picture",
    "header",
    "footer",
)
"""The order is that of the weights' class outputs: append only."""
STEP = 32  # the network halves its input five times
LEAST_SCORE = 0.25
SAME = 0.6  # intersection over union above which two boxes say one region


@dataclass(frozen=True)
class Found:
    """One region that the detector found.

    label: one of LABELS. box: left, top, right, bottom, in pixels of the image given. score: 0..1.
    """

    label: str
    box: tuple[float, float, float, float]
    score: float


def unspun(options: Any) -> Any:
    """onnxruntime's SessionOptions, with threads that sleep while they wait: others read meanwhile."""
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def fused(network: bytes) -> bytes:
    """An ONNX network with PRelu of a single slope as LeakyRelu, which onnxruntime does within the convolution before.

    A pass over all features less each time, a quarter of such a network's time; the results are the same.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.ModelProto.FromString(network)
    slopes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    left = set()
    for node in model.graph.node:
        if node.op_type == "PRelu" and node.input[1] in slopes and slopes[node.input[1]].size == 1:
            left.add(name := node.input.pop())
            node.op_type = "LeakyRelu"
            node.attribute.append(helper.make_attribute("alpha", slopes[name].item()))
    left -= {name for node in model.graph.node for name in node.input}
    kept = [each for each in model.graph.initializer if each.name not in left]  # onnxruntime warns of what nobody uses
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return bytes(model.SerializeToString())


class Detector:
    """The network, ready to run on one thread. Raises ValueError or OSError where the file is none of ours."""

    def __init__(self, weights: Path) -> None:
        import onnxruntime

        if not weights.is_file():
            raise FileNotFoundError(f"no such file: {weights}")
        options = unspun(onnxruntime.SessionOptions())
        try:
            self._session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own have no base but this
            raise ValueError(f"{weights}: no network that onnxruntime can run ({error})") from error
        facts = self._session.get_modelmeta().custom_metadata_map
        if facts.get("labels") != " ".join(LABELS) or not facts.get("long_side", "").isdigit():
            raise ValueError(f"{weights}: not a layout detector with the labels {' '.join(LABELS)}")
        self._long_side = int(facts["long_side"])

    def find(self, pixels: NDArray[np.uint8], least: float = LEAST_SCORE) -> tuple[Found, ...]:
        """The regions on a page with a score of `least` or more, surest first. pixels: uint8 [H, W, 3].

        One page at a time: what is found on it must not depend on the pages beside it, and a CPU gains nothing.
        """
        image, scale = network_input(pixels, self._long_side)
        boxes, scores = self.cells(image)
        return distinct(boxes / scale, scores, (pixels.shape[1], pixels.shape[0]), least)

    def cells(self, image: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What every cell says of a `network_input`: boxes [cells, 4], in its pixels; scores [cells, labels]."""
        boxes, scores = self._session.run(None, {"pages": image[None, None]})
        return boxes[0], scores[0]


def network_input(pixels: NDArray[np.uint8], long_side: int) -> tuple[NDArray[np.float32], float]:
    """What the network takes, and its pixels for one of the page's.

    uint8 [H, W, 3] -> float32 [h, w], 0 black to 1 white; scaled so that the longer side is `long_side`, with white to
    the right and below up to multiples of STEP.
    """
    height, width, _ = pixels.shape
    scale = long_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    grey = Image.fromarray(pixels).convert("L").resize(size, Image.Resampling.BILINEAR)
    padded = np.ones((-(-size[1] // STEP) * STEP, -(-size[0] // STEP) * STEP), np.float32)
    padded[: size[1], : size[0]] = np.asarray(grey, np.float32) / 255
    return padded, scale


def distinct(
    boxes: NDArray[np.float32], scores: NDArray[np.float32], size: tuple[int, int], least: float = LEAST_SCORE
) -> tuple[Found, ...]:
    """Each region once, surest first.

    boxes: [cells, 4], left, top, right, bottom. scores: [cells, len(LABELS)]. size: width and height of the page, to
    which boxes are clipped. Of boxes that cover one another the surest stands, whatever the labels: a region has one.
    """
    best = scores.max(axis=1)
    order = np.argsort(-best, kind="stable")
    order = order[best[order] >= least]
    limits = np.array([*size, *size], np.float32)
    found: list[Found] = []
    while len(order):
        first, order = order[0], order[1:]
        x0, y0, x1, y1 = (float(edge) for edge in np.clip(boxes[first], 0, limits))
        if x0 < x1 and y0 < y1:
            found.append(Found(LABELS[int(scores[first].argmax())], (x0, y0, x1, y1), float(best[first])))
        order = order[_shared(boxes[first], boxes[order]) < SAME]
    return tuple(found)


def _shared(box: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Intersection over union of a box with each of [n, 4]."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(common / np.maximum(areas - common, 1e-6))
