"""The command line with everything slow or unpredictable taken out, as a program: for tests that kill it.

    python tests/fake_program.py convert in/ -o out/      the model answers with the text layer, or with "read"
    python tests/fake_program.py --worker                 a worker without layout analysis, with faults on order

A page whose text holds HANG, CRASH, BLOAT or CONNECT makes the worker do just that. GO_SLOW in the environment: seconds
that every read takes.
"""

import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from gravityocr_models.records import Crop, Decoded

WORKER = [sys.executable, __file__, "--worker"]


class FakeReader:
    dpi, token_px, max_crop_tokens, max_crop_lines = 144.0, 16, 1024, 6

    def read(self, crops: Sequence[Crop], **options: Any) -> list[Decoded]:
        time.sleep(float(os.environ.get("GO_SLOW", "0")))
        return [Decoded(crop.draft or "read", (1,), (2,), 0.9, None, crop.draft is not None) for crop in crops]


def faulty_layout(page: Any) -> tuple[tuple[()], tuple[str, ...]]:
    text = page.get_text()
    if "HANG" in text:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        while True:
            sum(range(10_000_000))  # one call into C after the other
    if "CRASH" in text:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "BLOAT" in text:
        bytearray(64 * 2**30)
    if "CONNECT" in text:
        try:
            socket.create_connection(("127.0.0.1", 9))
        except OSError as error:
            return (), (str(error),)
    return (), ()


FAKES: dict[str, Any] = {
    "gravityocr_cli.pdf._layout": faulty_layout,
    "gravityocr_cli.workers.COMMAND": WORKER,
    "gravityocr_cli.checkpoints.identity": lambda folder: "fake",  # the trainer may be writing the real one
    "gravityocr_cli.run.load_reader": lambda settings: FakeReader(),
}
"""What stands in for what; tests that run the command line in their own process take the same."""


def work() -> None:
    from gravityocr_cli import pdf, worker

    pdf._layout = faulty_layout
    worker.main()


def main() -> int:
    from gravityocr_cli import __main__

    for name, fake in FAKES.items():
        module, attribute = name.rsplit(".", 1)
        setattr(importlib.import_module(module), attribute, fake)
    return __main__.main()


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        work()
    else:
        sys.exit(main())
