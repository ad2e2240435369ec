"""The entry point: the program is imported inside `main`, so that Ctrl-C and exit codes hold while it loads."""

import signal
import sys
from types import FrameType

from gravityocr_cli.errors import INTERRUPTED, TERMINATED


def main() -> int:
    """Runs the command line on sys.argv; returns the exit code of the process."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from gravityocr_cli.cli import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        print("gravityocr: interrupted", file=sys.stderr)
        return INTERRUPTED


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
