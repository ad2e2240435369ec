"""The entry point: the program is imported inside `main`, so that Ctrl-C and exit codes hold while it loads."""

import os
import signal
import sys
from types import FrameType

from gravityocr_cli.errors import INTERRUPTED, TERMINATED


def main() -> int:
    """Runs the command line on sys.argv; returns the exit code of the process."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        from gravityocr_cli.cli import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        print("gravityocr: interrupted", file=sys.stderr)
        return INTERRUPTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The first Ctrl-C ends the run in order; one that comes while that is going on ends the process."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
