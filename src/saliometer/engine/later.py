"""Numbers on a GPU that are wanted soon, read without waiting for what is launched after them."""

import torch
from torch import Tensor


class Later:
    """A small tensor's values, under way to the host."""

    def __init__(self, values: Tensor) -> None:
        self._values, self._event = values, None
        if values.is_cuda:
            self._values, self._event = values.to("cpu", non_blocking=True), torch.cuda.Event()
            self._event.record(torch.cuda.current_stream(values.device))

    def read(self) -> list[float]:
        if self._event is not None:
            self._event.synchronize()
        return self._values.tolist()
