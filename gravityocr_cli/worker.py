"""The other side of `workers.py`: a process that opens PDFs and prepares pages until its standard input ends.

Requests and answers are pickles on standard input and output.
Before each request it asks the kernel for an alarm at the request's time limit. Nothing handles that signal, so that it
ends the process even in the middle of C code, and even when whoever started it has gone.
"""

import os
import pickle
import resource
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from gravityocr_cli.checkpoints import refuse_network
from gravityocr_cli.errors import GravityOcrError
from gravityocr_cli.prepare import LocalPages
from gravityocr_cli.prepared import Answer, Request
from gravityocr_models.memory import peak_mib

MOST_MEMORY = 8 * 2**30  # bytes; what a page inflates beyond this is a failed allocation, and a lost page


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    refuse_network()  # no document has business with it
    serve(sys.stdin.buffer, answers)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers every request with an Answer or the error that came of it. Keeps the last document open."""
    held: tuple[Path, LocalPages] | None = None
    while True:
        try:
            request: Request = pickle.load(requests)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, request.limit)
        answer: Answer | GravityOcrError
        try:
            if held is None or held[0] != request.path:
                if held is not None:
                    held[1].__exit__()
                held = None
                held = request.path, LocalPages(request.path, request.settings, request.name)
            answer = _answer(request, held[1])
        except GravityOcrError as error:
            answer = error
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
        except BrokenPipeError:
            return


def _answer(request: Request, pages: LocalPages) -> Answer:
    prepared = None
    if request.page is not None and request.plan is not None:
        number = request.page or request.settings.pages.of(pages.facts.count)[0]
        (prepared,) = pages.prepared((number,), request.plan)
    return Answer(pages.facts, prepared, peak_mib())
