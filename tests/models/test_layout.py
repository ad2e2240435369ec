"""The detector as it is run: what goes in, what comes out, and that the exported file says what the network says."""

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from PIL import Image, ImageDraw

from gravityocr_models import layout
from gravityocr_models.layout import LABELS, Detector, Found, distinct, fused, network_input
from gravityocr_models.train.layout.export import export
from gravityocr_models.yolo import Yolo, decode


def network(seed: int = 0) -> Yolo:
    """Random weights, their norms as far from the identity as training leaves them."""
    torch.manual_seed(seed)
    made = Yolo(len(LABELS))
    for part in made.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.weight, 0.5, 1.5)
            torch.nn.init.normal_(part.bias, std=0.2)
            torch.nn.init.uniform_(part.running_var, 0.5, 1.5)  # type: ignore[arg-type]
    return made.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "layout.onnx"
    export(network(), path, 160)
    return path


def page(height: int, width: int) -> NDArray[np.uint8]:
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for y in range(20, height - 20, 12):
        draw.line((20, y, width - 20, y), "black", 5)
    return np.asarray(image)


@pytest.mark.parametrize(("height", "width"), [(160, 120), (300, 410), (97, 640)])
def test_the_exported_file_says_what_the_network_says(exported: Path, height: int, width: int) -> None:
    image, _ = network_input(page(height, width), 160)
    boxes, scores = decode(network()(torch.from_numpy(image)[None, None]))
    ours = Detector(exported).cells(image)
    np.testing.assert_allclose(ours[0], boxes[0], atol=0.5)  # pixels; weights are stored in half precision
    np.testing.assert_allclose(ours[1], scores[0], atol=5e-3)


def test_what_is_found_lies_on_the_page(exported: Path) -> None:
    found = Detector(exported).find(page(300, 410))
    assert found
    assert all(0 <= x0 < x1 <= 410 and 0 <= y0 < y1 <= 300 for x0, y0, x1, y1 in (each.box for each in found))
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    surest = found[0].score
    assert {each.score for each in Detector(exported).find(page(300, 410), surest)} == {surest}


def test_the_input_keeps_the_page_at_its_top_left() -> None:
    pixels = np.zeros((300, 200, 3), np.uint8)
    image, scale = network_input(pixels, 150)
    assert (image.shape, scale) == ((160, 128), 0.5)
    assert image[:150, :100].max() == 0
    assert image[150:].min() == image[:, 100:].min() == 1


def test_every_region_is_said_once_and_clipped_to_the_page() -> None:
    boxes = np.array([(10, 10, 90, 30), (11, 10, 91, 31), (10, 50, 90, 90), (-20, 95, 500, 120)], np.float32)
    scores = np.full((4, len(LABELS)), 0.01, np.float32)
    scores[0, LABELS.index("text")], scores[1, LABELS.index("heading")] = 0.6, 0.9
    scores[2, LABELS.index("table")], scores[3, LABELS.index("footer")] = 0.5, 0.3
    found = distinct(boxes, scores, (100, 100))
    assert [(each.label, round(each.score, 1)) for each in found] == [("heading", 0.9), ("table", 0.5), ("footer", 0.3)]
    assert found[2].box == (0, 95, 100, 100)
    assert distinct(boxes, scores, (100, 100), least=0.95) == ()


def test_what_is_no_detector_of_ours_is_refused(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        Detector(tmp_path / "none.onnx")
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    with pytest.raises(ValueError, match="no network"):
        Detector(tmp_path / "junk.onnx")
    monkeypatch.setattr(layout, "LABELS", LABELS[:-1])
    with pytest.raises(ValueError, match="labels"):
        Detector(exported)


def test_an_answer_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Found("text", (0, 0, 1, 1), 0.5).score = 1.0  # type: ignore[misc]


def test_activations_with_one_slope_are_fused_and_others_are_left() -> None:
    """The same numbers come out, the slopes that nobody needs any more are gone, one that is still needed is not."""
    rng = np.random.default_rng(0)
    tensors = {
        "weight": rng.normal(size=(4, 3, 3, 3)), "one": np.full((1, 1, 1, 1), 0.2), "two": np.full((1,), -0.3),
        "each": rng.uniform(size=(4, 1, 1)),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "weight"], ["a"]), helper.make_node("PRelu", ["a", "one"], ["b"]),
        helper.make_node("PRelu", ["b", "each"], ["c"]), helper.make_node("PRelu", ["c", "two"], ["d"]),
        helper.make_node("Mul", ["d", "two"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in tensors.items()],
    )  # fmt: skip
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    made = onnx.ModelProto.FromString(fused(given))
    assert [node.op_type for node in made.graph.node] == ["Conv", "LeakyRelu", "PRelu", "LeakyRelu", "Mul"]
    assert [each.name for each in made.graph.initializer] == ["weight", "two", "each"]
    pixels = {"x": rng.normal(size=(1, 3, 8, 8)).astype(np.float32)}
    before, after = (onnxruntime.InferenceSession(net).run(None, pixels)[0] for net in (given, fused(given)))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
