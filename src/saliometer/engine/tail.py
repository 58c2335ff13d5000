"""The part of a network behind one layer: from what the layer gives out to logits."""

from functools import cached_property

import torch
from torch import Tensor

from saliometer.engine.known import Known
from saliometer.engine.layers import replaced
from saliometer.engine.memory import made
from saliometer.graph import Graph, Network
from saliometer.types import At, Model

ROWS = 3  # a row itself, what it is made of, and its gradient
CLOSE = 1e-3  # what one image's logits may differ by between the two ways, relative to the largest


class Tail:
    """Logits of rows of a layer's outputs; row r belongs to image r modulo N, for whatever passes the layer by.

    Only the operations behind the layer run, where they can be captured and nothing passes it by; else the whole
    network does, with the layer's output replaced.
    """

    def __init__(self, model: Model, at: At) -> None:
        self.model, self.at = model, at
        self.layer = model.net.get_submodule(at.layer)
        self.network = Network(model.net, model.logits)
        self._ways: dict[int, tuple[Graph, int, list[int]] | None] = {}  # for each count of rows: the steps to run
        self._trusted: bool | None = None  # whether the short way was found to give what the long way gives

    def __call__(self, features: Tensor, rows: slice) -> Tensor:
        if self._trusted is not False:
            short = self._short(features)
            if short is not None and self._trusted is None:
                long = self._long(features[:1].detach(), slice(rows.start, rows.start + 1))
                error, size = (short[:1].detach() - long).abs().max(), long.abs().max()
                self._trusted = bool(error <= CLOSE * size)
            if short is not None and self._trusted:
                return short
        return self._long(features, rows)

    @property
    def lightness(self) -> int:
        """How many rows take no more memory here than one image does in the whole network."""
        return self._probed[1]

    @cached_property
    def _probed(self) -> tuple[int, int]:
        """How often the layer is called for an image, and how light a row is; found once for a network."""
        return Known(self.model.net, self.at.images[:1])(f"behind {self.at.layer}", self._found_out)

    def _found_out(self) -> tuple[int, int]:
        heard: list[Tensor] = []
        handle = self.layer.register_forward_hook(lambda _module, _inputs, output: heard.append(output))
        try:
            whole = made(self.model.logits, self.at.images[:1])
        finally:
            handle.remove()
        if self._way(1) is None:
            return len(heard), 1
        behind = made(self._short, heard[-1]) + ROWS * heard[-1].nbytes
        return len(heard), max(1, whole // behind)

    def _short(self, features: Tensor) -> Tensor | None:
        way = self._way(len(features))
        if way is None:
            return None
        graph, place, behind = way
        values = {place: features}
        for number in behind:
            values[number] = graph.steps[number](values)
        return values[graph.output]

    def _way(self, rows: int) -> tuple[Graph, int, list[int]] | None:
        """The captured network, the layer's step and those behind it; None where there is no such way."""
        if rows not in self._ways:
            self._ways[rows] = self._found(rows)
        return self._ways[rows]

    def _found(self, rows: int) -> tuple[Graph, int, list[int]] | None:
        try:
            graph = self.network.graph(self.at.images[:1].expand(rows, -1, -1, -1))
        except ValueError:  # cannot be captured
            return None
        if self.at.layer not in graph.layers:
            return None
        place = graph.layers[self.at.layer]
        behind = graph.behind(place)
        return (graph, place, behind) if graph.is_only_way(place) else None

    def _long(self, features: Tensor, rows: slice) -> Tensor:
        places = torch.arange(rows.start, rows.stop, device=features.device) % len(self.at.images)
        filled = torch.cat((places, places[:1].expand(len(features) - len(places))))
        with replaced(self.layer, self._probed[0], lambda _: features.clone()):
            return self.model.logits(self.at.images[filled])
