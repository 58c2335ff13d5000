"""Trains TextBox models until the acceptance rule holds, and keeps weights with a card that says what they rely on."""

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from saliometer import registry
from saliometer.files import put
from saliometer.models.fit import LOSSES, Recipe, fit
from saliometer.registry import one_of
from saliometer.seeds import fork, scoped
from saliometer.tasks.textbox import LABELLINGS, OBJECTS, VERSION, counterfactuals, cycle, draw, labels_of, reasonings
from saliometer.types import Watch

CLASSES, CHANNELS = 2, 3
RESTARTS = 20
PER_BUCKET_TRAIN = {"simple": 2000, "complex-fr": 2000, "complex": 15000}
PER_BUCKET_HELD_OUT = {"simple": 500, "complex-fr": 500, "complex": 400}
EPOCHS = {"simple": 40, "complex-fr": 60, "complex": 20}
PAIRS = 200  # counterfactual pairs per bucket and edit
OVERALL = {"simple": 0.98, "complex": 0.95}
BUCKET, ALL_PAIRS, PAIR_CELL = 0.90, 0.95, 0.85


def size(table: dict[str, Any], setting: str) -> Any:
    return table.get(setting, table[setting.split("-")[0]])


def architecture(setting: str) -> str:
    return "simple_cnn" if setting.startswith("simple") else "complex_cnn"


def build(setting: str) -> nn.Module:
    net: nn.Module = registry.models[architecture(setting)].function(CLASSES, CHANNELS)
    return net


def train(
    setting: str,
    out: Path,
    *,
    seed: int = 0,
    device: str = "cpu",
    loss: str = "cross_entropy",
    labelling: str = "paper",
    sampler: str = "disjoint",
    epochs: int = 0,
    batch: int = Recipe.batch,
    rate: float = Recipe.rate,
    limit: int = 0,
    restarts: int = RESTARTS,
    watch: Watch = lambda share, text: None,
) -> dict[str, Any]:
    """Train from fresh initialisations until one is accepted; the best is kept either way and its card returned.

    `limit` caps the training images, `epochs` 0 takes the setting's own number.
    """
    one_of("loss", loss, LOSSES)
    one_of("labelling", labelling, LABELLINGS)
    if batch < 1 or not rate > 0:
        raise ValueError(f"batch is {batch} and rate {rate}: wanted 1 or more, and more than 0")
    if restarts < 1 or epochs < 0 or limit < 0:
        came = f"restarts {restarts}, epochs {epochs}, limit {limit}"
        raise ValueError(f"{came}: wanted restarts of 1 or more, epochs and limit of 0 or more (0: the usual)")
    out.mkdir(parents=True, exist_ok=True)
    count = len(cycle(setting, "train")) * size(PER_BUCKET_TRAIN, setting)
    count = min(count, limit) if limit else count
    recipe = Recipe(epochs or size(EPOCHS, setting), batch, rate, loss)
    scene = draw(setting, "train", torch.arange(count, device=device), seed, sampler)
    labels = labels_of(setting, scene.buckets, labelling)
    settled = {"setting": setting, "seed": seed, "labelling": labelling, "sampler": sampler, "images": count}
    best, tried = _so_far(out / f"{setting}.json", settled | vars(recipe))
    for attempt in range(tried, restarts):
        if best.get("accepted"):
            break
        with scoped("textbox weights", setting, seed, attempt):
            net = build(setting).to(device)

        def told(share: float, text: str, attempt: int = attempt) -> None:
            watch(share, f"{setting}, try {attempt + 1}, {text} of {recipe.epochs}")

        checkpoint = out / f"{setting}.{_digest(repr((settled, attempt)))[:8]}.checkpoint"
        final = fit(
            net, lambda chosen: scene[chosen].images(), labels, recipe, fork(seed, attempt), checkpoint=checkpoint,
            watch=told,
        )  # fmt: skip
        card = settled | vars(recipe) | {"attempt": attempt, "final_loss": final, "trained_on": device}
        card |= examine(net, setting, seed=seed, labelling=labelling, sampler=sampler)
        if not best or (card["accepted"], card["accuracy"]) > (best["accepted"], best["accuracy"]):
            best = save(net, out / f"{setting}.safetensors", card)
        best = best | {"tried": attempt + 1}
        _write_card(out / f"{setting}.json", best)
        checkpoint.unlink(missing_ok=True)
    return best


def _so_far(path: Path, wanted: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The best model of an earlier call with the same request, and how many tries it has had."""
    try:
        card = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}, 0
    same = all(card.get(name) == value for name, value in wanted.items())
    return (card, card.get("tried", 0)) if same and path.with_suffix(".safetensors").exists() else ({}, 0)


def examine(
    net: nn.Module, setting: str, *, seed: int = 0, labelling: str = "paper", sampler: str = "disjoint"
) -> dict[str, Any]:
    """What the acceptance rule asks, measured on the weights as they are stored: rounded to float16."""
    device = str(next(net.parameters()).device)
    stored = build(setting).to(device).eval()
    stored.load_state_dict({name: value.half().float() for name, value in net.state_dict().items()})
    accuracy = _accuracy(stored, setting, seed, labelling, sampler, device)
    changed, right = _pairs(stored, setting, seed, labelling, device)
    overall = sum(accuracy.values()) / len(accuracy)  # buckets are equally large
    cells = {thing: {b: sum(v) / len(v) for b, v in row.items()} for thing, row in right.items()}
    pairs = [value for row in right.values() for values in row.values() for value in values]
    rule = {
        "overall accuracy": (overall, size(OVERALL, setting)),
        "worst bucket's accuracy": (min(accuracy.values()), BUCKET),
        "counterfactual pairs right": (sum(pairs) / len(pairs), ALL_PAIRS),
        "worst counterfactual cell right": (min(min(row.values()) for row in cells.values()), PAIR_CELL),
    }
    return {
        "accepted": all(got >= wanted for got, wanted in rule.values()),
        "accuracy": overall,
        "acceptance": {name: {"got": got, "wanted": wanted} for name, (got, wanted) in rule.items()},
        "accuracy_per_bucket": accuracy,
        "reliance": {thing: {b: sum(v) / len(v) for b, v in row.items()} for thing, row in changed.items()},
        "counterfactuals_right": cells,
        "counterfactual_pairs": len(pairs),
    }


def _predict(net: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([net(part).argmax(1) for part in images.split(512)])


def _accuracy(net: nn.Module, setting: str, seed: int, labelling: str, sampler: str, device: str) -> dict[str, float]:
    """Per bucket, on images that neither training nor the benchmark uses."""
    count = size(PER_BUCKET_HELD_OUT, setting) * len(cycle(setting, "test"))
    scene = draw(setting, "test", torch.arange(count, device=device), fork("held out", seed), sampler)
    predicted = torch.cat([_predict(net, scene[slice(i, i + 512)].images()) for i in range(0, count, 512)])
    right = (predicted == labels_of(setting, scene.buckets, labelling)).double()
    return {str(number): right[scene.buckets == number].mean().item() for number in reasonings(setting)}


Cells = dict[str, dict[str, list[bool]]]  # object -> bucket -> one value per pair


def _pairs(net: nn.Module, setting: str, seed: int, labelling: str, device: str) -> tuple[Cells, Cells]:
    """Whether the prediction changed, and whether that is what the rule says, for every counterfactual pair."""
    changed: Cells = {thing: {} for thing in OBJECTS}
    right: Cells = {thing: {} for thing in OBJECTS}
    for number in reasonings(setting):
        for thing, before, after in counterfactuals(setting, number, PAIRS, seed, device):
            flips = _predict(net, before.images()) != _predict(net, after.images())
            wanted = labels_of(setting, before.buckets, labelling) != labels_of(setting, after.buckets, labelling)
            changed[thing].setdefault(str(number), []).extend(flips.tolist())
            right[thing].setdefault(str(number), []).extend((flips == wanted).tolist())
    return changed, {thing: row for thing, row in right.items() if row}


def save(net: nn.Module, path: Path, card: dict[str, Any]) -> dict[str, Any]:
    """Weights as float16 safetensors and the card beside them, each written whole or not at all; the full card."""
    halves = {name: value.detach().half().cpu().contiguous() for name, value in net.state_dict().items()}
    data = safetensors.torch.save(halves)
    full = {
        "model": architecture(card["setting"]),
        "task": VERSION,
        "sha256": _digest(data),
        "parameters": sum(value.numel() for value in halves.values()),
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    } | card
    put(path, data)
    _write_card(path.with_suffix(".json"), full)
    return full


def _write_card(path: Path, card: dict[str, Any]) -> None:
    put(path, (json.dumps(card, indent=1) + "\n").encode())


def _digest(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
