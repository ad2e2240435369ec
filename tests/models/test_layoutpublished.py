"""A checkpoint of doclayout-yolo's own making, small and random: read safely, and said in our labels."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gravityocr_models.layout import LABELS, Detector
from gravityocr_models.train.layout.export import write_onnx
from gravityocr_models.train.layout.published import CLASSES, Relabelled, load

pytest.importorskip("onnx", reason="the exporter's, of the [train] extra")
pytestmark = pytest.mark.filterwarnings("ignore")  # the package's own, at import and while it builds a network


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import doclayout_yolo
    from doclayout_yolo.nn.tasks import YOLOv10DetectionModel

    plan = Path(doclayout_yolo.__file__).parent / "cfg" / "models" / "v10" / "yolov10n.yaml"
    torch.manual_seed(0)
    network = YOLOv10DetectionModel(str(plan), nc=len(CLASSES), verbose=False)
    network.names = dict(enumerate(CLASSES))
    path = tmp_path_factory.mktemp("published") / "published.pt"
    torch.save({"model": network.half(), "ema": None, "train_args": {"imgsz": 1024}}, path)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_reads_as_its_own_package_reads_it(checkpoint: Path, tmp_path: Path) -> None:
    page = torch.rand(1, 1, 96, 64)
    with torch.no_grad():
        cells = load(checkpoint, digest(checkpoint))(page.expand(-1, 3, -1, -1))["one2one"][0][0]
    write_onnx(Relabelled(load(checkpoint, digest(checkpoint))), tmp_path / "layout.onnx", 1024)
    boxes, scores = Detector(tmp_path / "layout.onnx").cells(page[0, 0].numpy())
    np.testing.assert_allclose((boxes[:, :2] + boxes[:, 2:]) / 2, cells[:2].T, atol=0.5)
    for name, ours in (("plain text", "text"), ("table", "table"), ("isolate_formula", "formula")):
        theirs = cells[4 + list(CLASSES).index(name)]
        assert (scores[:, LABELS.index(ours)] >= theirs.numpy() - 2e-3).all()
    assert scores[:, LABELS.index("code")].max() == 0


def test_another_file_is_refused(checkpoint: Path) -> None:
    with pytest.raises(ValueError, match="its sha256 is"):
        load(checkpoint, "0" * 64)


def test_nothing_but_the_named_classes_comes_out_of_it(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "went-off",))

    torch.save({"model": Bomb()}, tmp_path / "bomb.pt")
    with pytest.raises(Exception, match=r"weights_only|Unsupported"):
        load(tmp_path / "bomb.pt", digest(tmp_path / "bomb.pt"))
    assert not (tmp_path / "went-off").exists()
