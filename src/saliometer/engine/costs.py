"""What the maps of each method took, where many are made together: seconds and passes, told apart by who asks."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from types import GeneratorType
from typing import Any

import torch
from torch import Tensor

from saliometer.engine.answer import Answers, Seen
from saliometer.engine.battery import Cost
from saliometer.engine.score import Method
from saliometer.types import Asking, Question


class Metered(Answers):
    """Answers that keep what each asker took; a pass that several share counts for the one that asked first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spent: defaultdict[str, Cost] = defaultdict(Cost)  # by asker

    @contextmanager
    def charged(self, asker: str) -> Iterator[None]:
        start, passes = time.perf_counter(), self.passes
        try:
            yield
        finally:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)  # or the next asker would wait for this one's work
            self.spent[asker].seconds += time.perf_counter() - start
            self.spent[asker].passes += self.passes - passes

    def metered(self, method: Method) -> Method:
        """The same method, charged also for what it does between its questions."""
        function = method.entry.function

        @wraps(function)
        def counted(*args: Any, **params: Any) -> Any:
            with self.charged(method.label):
                begun = function(*args, **params)
            return self._steps(method.label, begun) if isinstance(begun, GeneratorType) else begun

        return replace(method, entry=replace(method.entry, function=counted))

    def _steps(self, asker: str, asking: Asking) -> Asking:
        go_on = partial(next, asking)
        while True:
            try:
                with self.charged(asker):
                    question = go_on()
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            try:
                go_on = partial(asking.send, (yield question))
            except Exception as error:  # its question has no answer, and it may have something to say to that
                go_on = partial(asking.throw, error)

    def _answer(self, question: Question, targets: Tensor, seen: list[Seen], places: list[str]) -> Tensor:
        with self.charged(self.doing):
            return super()._answer(question, targets, seen, places)
