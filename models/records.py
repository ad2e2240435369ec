"""What goes into the engine and what comes out of it: frozen records, no tensors.

`Crop -> Decoded` is the whole seam between the pipeline and the model. This file imports nothing heavy, so that the
command line can name its types without loading torch.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Task(StrEnum):
    """What a crop is read as. The value is the prompt of the GLM-OCR family, word for word."""

    TEXT = "Text Recognition:"
    TABLE = "Table Recognition:"
    FORMULA = "Formula Recognition:"


class LayerUse(StrEnum):
    """What a draft from the PDF's text layer may do.

    AUTO: kept whole where the model agrees with it, else only a draft. DRAFT: only ever a draft, so the output equals
    OFF. OFF: not looked at.
    """

    AUTO = "auto"
    DRAFT = "draft"
    OFF = "off"


class Rounds(StrEnum):
    """How answers are decoded; the text is the same for all three, the number of forwards is not."""

    PLAIN = "plain"
    TWO_FORWARD = "two-forward"
    FUSED = "fused"
    READING = "reading"


@dataclass(frozen=True)
class Crop:
    """One region, cut out and ready to be read.

    pixels: uint8 [H, W, 3], RGB, at the dpi that the model was trained for (`Engine.dpi`).
    draft: the crop's painted text with line breaks as painted, or None where the page has none.
    region: crops with the same key are parts of one region; their text layers are judged together. None: alone.
    font: key of the font that the draft is set in, on its page: where some crops' layer is true, that of the others in
        the same font is. None: unknown.
    """

    pixels: NDArray[np.uint8]
    task: Task = Task.TEXT
    draft: str | None = None
    region: tuple[int, int] | None = None
    font: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 3 or self.pixels.shape[2] != 3:
            raise ValueError(f"crop pixels must be uint8 [H, W, 3], got {self.pixels.dtype} {self.pixels.shape}")


@dataclass(frozen=True)
class Decoded:
    """The answer to one crop.

    text: the answer; the draft itself, unchanged, where `kept_layer` is true.
    ids: token ids, without the end token.
    committed: tokens committed by each forward, prefill first; `sum(committed)` counts the end token.
    confidence: the share of the answer that is expected to be right, 0..1: by the encoder's odds of the glyphs that it
        names where it reads, whose bonus makes the decoder sure of anything; else the tokens' mean probability.
    agreement: share of the tokens of the region's drafts that are the model's own choice given the pixels; None
        without a verdict (no draft, or a draft in a script that the model does not read).
    truncated: the token cap or the loop guard ended the answer: a failure to report, not an answer.
    """

    text: str
    ids: tuple[int, ...]
    committed: tuple[int, ...]
    confidence: float
    agreement: float | None = None
    kept_layer: bool = False
    truncated: bool = False

    @property
    def forwards(self) -> int:
        """Forwards that this crop took part in, prefill counted."""
        return len(self.committed)
