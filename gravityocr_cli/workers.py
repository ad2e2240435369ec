"""PDFs taken apart in processes of their own, so that one that hangs or crashes costs a page and not the run.

    with Pool(2) as pool, pool.open(path, settings) as pages:
        for page in pages.prepared(numbers, plan): ...

A thread stands for each process (`worker.py`): it writes a request, waits for the answer, and starts another process
where this one died or has grown. Pages are asked for a few ahead of the reader, and no more: that bounds memory.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from gravityocr_cli.errors import CrashedOnInput, GravityOcrError, TimeLimit
from gravityocr_cli.prepared import OUT_OF_TIME, Answer, Facts, Plan, Prepared, Request
from gravityocr_cli.settings import Settings

AHEAD = 8  # pages that may wait for the reader, beside one for every process
RECYCLE_AFTER = 250  # requests; MuPDF and the layout model leave a little behind with each
RECYCLE_ABOVE = 1500.0  # MiB
# -P: nothing is imported from the current folder, which may be a stranger's.
COMMAND = [sys.executable, "-P", "-c", "from gravityocr_cli.worker import main; main()"]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerDied(Exception):
    """The process went away instead of answering. late: it was ended at its time limit."""

    def __init__(self, code: int, limit: float) -> None:
        self.late = code == -signal.SIGALRM
        how = f"crashed ({signal.Signals(-code).name})" if code < 0 else f"failed (exit code {code})"
        super().__init__(f"took longer than {limit:g} s" if self.late else how)


def default_jobs() -> int:
    """Processes for this machine: half of its cores, the model has the others; at least one, at most four."""
    return max(1, min(4, (os.cpu_count() or 1) // 2))


class Pool:
    """A few worker processes, started when they are first needed. Use as a context: leaving it ends them all."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="pdf")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *fault: object) -> None:
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in list(self._running):
            self._end(process)

    def open(self, path: Path, settings: Settings, name: str = "", plan: Plan | None = None) -> "RemotePages":
        """Has the document opened, without waiting for it. With a plan its first page is prepared as well."""
        return RemotePages(self, Request(path, name, settings, settings.page_timeout, 0 if plan else None, plan))

    def ask(self, request: Request, until: float | None = None) -> "Future[Answer]":
        """The answer to come. until: of time.perf_counter; cuts the request's limit short.

        The future raises the error that the worker met, or WorkerDied.
        """
        return self._threads.submit(self._ask, request, until)

    def _ask(self, request: Request, until: float | None) -> Answer:
        if until is not None:
            request = replace(request, limit=min(request.limit, max(until - time.perf_counter(), 0.001)))
        process: subprocess.Popen[bytes] = getattr(self._own, "process", None) or self._start()
        self._own.process, self._own.count = process, getattr(self._own, "count", 0) + 1
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            answer: Answer | GravityOcrError = pickle.load(process.stdout)
        except Exception:  # the pipe broke, or what came through it is no answer
            raise WorkerDied(self._end(process), request.limit) from None
        if self._own.count >= RECYCLE_AFTER or (isinstance(answer, Answer) and answer.peak > RECYCLE_ABOVE):
            self._end(process)
        if isinstance(answer, GravityOcrError):
            raise answer
        return answer

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._closed:
                raise WorkerDied(-signal.SIGKILL, 0)
            process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,  # Ctrl-C is this process's to handle
            )
            self._running.add(process)
        self._own.count = 0
        return process

    def _end(self, process: "subprocess.Popen[bytes]") -> int:
        """Ends a process that is dead or idle; returns its exit code, negative for a signal."""
        self._own.process = None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        with self._lock:
            self._running.discard(process)
        return code


class RemotePages:
    """A document that workers take apart: `prepare.Pages`."""

    def __init__(self, pool: Pool, request: Request) -> None:
        self._pool, self._request = pool, request
        self._opening = pool.ask(request)
        self._facts: Facts | None = None
        self._first: Prepared | None = None
        self._pending: deque[tuple[int, Future[Answer]]] = deque()
        self._until: float | None = None

    def __enter__(self) -> "RemotePages":
        settings = self._request.settings
        self._until = time.perf_counter() + settings.timeout if settings.timeout else None
        return self

    def __exit__(self, *fault: object) -> None:
        self._opening.cancel()
        for _, future in self._pending:
            future.cancel()

    @property
    def facts(self) -> Facts:
        """See `prepare.Pages`. CrashedOnInput or TimeLimit where the worker died of it."""
        if self._facts is None:
            try:
                answer = self._opening.result()
                self._facts, self._first = answer.facts, answer.page
            except WorkerDied as death:
                if self._request.page is None:
                    raise self._cannot_open(death) from death
                self._facts = self._facts_without_the_first_page()
                number = self._request.settings.pages.of(self._facts.count)[0]
                self._first = Prepared(number, lost=_reason(death))
        return self._facts

    def _facts_without_the_first_page(self) -> Facts:
        try:
            return self._pool.ask(replace(self._request, page=None), self._until).result().facts
        except WorkerDied as death:
            raise self._cannot_open(death) from death

    def _cannot_open(self, death: WorkerDied) -> GravityOcrError:
        name = self._request.name or self._request.path
        if death.late:
            return TimeLimit(f"{name}: the file cannot be opened: that {death}")
        return CrashedOnInput(name, str(death))

    def prepared(self, numbers: Sequence[int], plan: Plan) -> Iterator[Prepared]:
        """See `prepare.Pages`."""
        assert self.facts.count > 0  # and it is open
        first, self._first = self._first, None
        if first is not None and (not numbers or first.number != numbers[0]):
            first = None
        left = iter(numbers if first is None else numbers[1:])
        self._ask_ahead(left, plan)
        if first is not None:
            yield first
        while self._pending:
            page = self._next()
            self._ask_ahead(left, plan)
            yield page

    @property
    def ready(self) -> bool:
        """See `prepare.Pages`."""
        return not self._pending or self._pending[0][1].done()

    def _ask_ahead(self, left: Iterator[int], plan: Plan) -> None:
        while len(self._pending) < self._pool.jobs + AHEAD and (number := next(left, None)) is not None:
            request = replace(self._request, page=number, plan=plan)
            self._pending.append((number, self._pool.ask(request, self._until)))

    def _next(self) -> Prepared:
        number, future = self._pending.popleft()
        try:
            page = future.result().page
        except WorkerDied as death:
            out_of_time = death.late and self._until is not None and time.perf_counter() >= self._until
            return Prepared(number, lost=OUT_OF_TIME if out_of_time else _reason(death))
        except GravityOcrError as error:  # the file has gone or changed since it was opened
            return Prepared(number, lost=f"cannot be rendered: {error}")
        return page or Prepared(number, lost="cannot be rendered")


def _reason(death: WorkerDied) -> str:
    return f"the process that rendered it {death}"
