"""The entry point: the program is imported inside `main`, so that Ctrl-C and exit codes hold while it loads."""

import os
import signal
import sys
from types import FrameType

from gravityocr_cli.errors import INTERRUPTED, TERMINATED
from gravityocr_cli.streams import discard, fill_closed, say


def main() -> int:
    """Runs the command line on sys.argv; returns the exit code of the process."""
    fill_closed()
    # PyTorch's threads wait for each other spinning; where others share the cores, a page then took four times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, _terminate)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        from gravityocr_cli.cli import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `gravityocr models list | head`
        discard(1)
        return 0
    except KeyboardInterrupt:
        say("gravityocr: interrupted")
        return INTERRUPTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The first Ctrl-C ends the run in order; one that comes while that is going on ends the process."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    """TERM, or a terminal that was closed, which may say so more than once."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
