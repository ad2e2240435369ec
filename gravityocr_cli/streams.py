"""The standard streams as they may be: closed by the caller, full, cut off, or a terminal that obeys what it is sent.

Standard output carries the product, so a fault there is an error. Standard error only tells how things go: where nobody
listens any more, the work goes on.
"""

import contextlib
import os
import re
import sys

# Escape sequences act on a terminal, line ends forge lines, and the others turn the order of letters round.
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def fill_closed() -> None:
    """Puts the null device where the caller closed a stream (`2>&-`), before any file is opened.

    Else an output would get the number of standard error, and whatever a library prints with it. Standard output is
    opened for reading alone: a product written to a closed one is an error, not lost in silence.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")


def say(line: str) -> None:
    """A line to standard error, if anybody is there."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(2)


def discard(number: int) -> None:
    """Sends nowhere what a stream still holds and what is to come: it would fail again when the process ends."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def printable(text: str) -> str:
    """The text with every character that would act on a terminal written out: names of files come from strangers."""
    return _ACTING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
