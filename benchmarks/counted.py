"""What a call asks of a machine, counted on any: its operations, the bytes they move, how often a host waits.

Times of a GPU need one; these numbers do not, and they are the same on a busy machine. Beside convolutions and matrix
products, operations take as long as their memory traffic does, and a host that asks for a value on a GPU waits for all
that was launched before.
"""

from collections import Counter
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = ("convolution", "addmm", "mm", "bmm", "baddbmm")  # bound by arithmetic, not by memory
WAITS = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "unique", "is_nonzero")
READ_BACK = ("tolist", "cpu", "numpy", "item", "__bool__", "__float__", "__int__")  # some are seen only from above
FREE = ("empty", "empty_like", "empty_strided", "new_empty", "detach", "alias")


class Counted(TorchDispatchMode):
    """Counts all that runs inside, below autograd: `with Counted() as counted: ...`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: Counter[str] = Counter()  # how often each convolution or product ran
        self.others: Counter[str] = Counter()  # the same for all else that touches memory
        self.moved: Counter[str] = Counter()  # bytes that those read and write
        self._above = _ReadBack()

    def __enter__(self) -> "Counted":
        self._above.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._above.__exit__(*error)

    @property
    def waits(self) -> int:
        """How often the host asks for a value."""
        return self._above.count + sum(self.others[name] for name in WAITS if name != "_local_scalar_dense")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name.startswith(PRODUCTS):
            self.products[name] += 1
        elif name not in FREE and not _is_view(func):
            self.others[name] += 1
            given = {value.data_ptr(): _bytes(value) for value in _tensors((*args, *(kwargs or {}).values()))}
            self.moved[name] += sum(given.values()) + sum(_bytes(value) for value in _tensors(result))
        return result

    def row(self, name: str, images: int) -> str:
        """A line of a table."""
        moved = sum(self.moved.values()) / images / 1e6
        cells = name, images, sum(self.products.values()), sum(self.others.values()), f"{moved:.0f}", self.waits
        return "| " + " | ".join(map(str, cells)) + " |"


class _ReadBack(TorchFunctionMode):
    """Values that come back to Python, which the dispatcher does not always see."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += getattr(func, "__name__", "") in READ_BACK
        return func(*args, **(kwargs or {}))


def _is_view(func: Any) -> bool:
    """Whether an operation only looks at memory in another way."""
    aliases = [given.alias_info for given in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _bytes(value: Tensor) -> int:
    """What a tensor takes; one that was expanded, what lies behind it."""
    return min(value.nbytes, value.untyped_storage().nbytes())


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [] if isinstance(values, FakeTensor) else [values]  # as a network is captured, nothing runs
    return [one for value in values for one in _tensors(value)] if isinstance(values, tuple | list) else []
