"""Painted signs and boxes: what formulas are told from, be they painted by a PDF or seen on a crop."""

from collections.abc import Iterable
from dataclasses import dataclass

UNSOUND = "\ufffd"
"""What a sign is that nobody knows."""


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, right, bottom."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (self.x0 <= self.x1 and self.y0 <= self.y1):
            raise ValueError(f"box is inside out: {self}")

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def x(self) -> float:
        """Its middle."""
        return (self.x0 + self.x1) / 2

    @property
    def y(self) -> float:
        return (self.y0 + self.y1) / 2

    def overlaps(self, other: "Box") -> bool:
        """Whether they share an area."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def holds(self, other: "Box") -> bool:
        """Whether the other's middle lies inside."""
        return self.x0 <= other.x <= self.x1 and self.y0 <= other.y <= self.y1


def hull_of(boxes: Iterable[Box]) -> Box:
    """The smallest box around boxes, of which there is one at least."""
    x0, y0, x1, y1 = zip(*((box.x0, box.y0, box.x1, box.y1) for box in boxes), strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))


@dataclass(frozen=True)
class Sign:
    """A painted sign of a formula. text: one character, U+FFFD where unknown. box: of its ink.

    origin: x, and y of its baseline. size: of its font. alphabet: LaTeX's command for the alphabet that a
        letter is set in, or "".
    """

    text: str
    box: Box
    origin: tuple[float, float]
    size: float
    alphabet: str = ""
