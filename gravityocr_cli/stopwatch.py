"""Seconds by stage, taken from outside: nothing in the program knows that it is watched."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch


class Stopwatch:
    """seconds: by stage. What a stage calls of another stage counts for that one alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def watching(self, functions: dict[str, str]) -> Iterator[None]:
        """While it lasts, calls of these functions are timed: "module:name" or "module:Class.name" -> stage."""
        self.seconds |= dict.fromkeys(functions.values(), 0.0)
        with ExitStack() as patches:
            for place, stage in functions.items():
                module, _, path = place.partition(":")
                *owners, name = path.split(".")
                owner: Any = import_module(module)
                for part in owners:
                    owner = getattr(owner, part)
                patches.enter_context(patch.object(owner, name, self._timed(getattr(owner, name), stage)))
            yield

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*values: Any, **named: Any) -> Any:
            self._lap()
            self._running.append(stage)
            try:
                return function(*values, **named)
            finally:
                self._lap()
                self._running.pop()

        return timed

    def _lap(self) -> None:
        """The time since the last change goes to the innermost stage that runs."""
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now
