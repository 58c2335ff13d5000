"""Names of weights as others call them, in torchvision's words: DINO, MoCo v3, iBOT, SparK, Swin, ConvNeXt and timm."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor

from saliometer.engine.weights import State

PREFIXES = (
    "module.", "_orig_mod.", "model.", "backbone.",
    "base_encoder.",  # MoCo v3's student; beside it are its teacher and predictor
    "sparse_encoder.sp_cnn.",  # SparK with its decoder
)  # fmt: skip
BESIDE = re.compile(  # what only pre-training uses: heads, projectors, teachers, decoders
    r"^(heads?|head_dist|fc|fc_norm|linear|classifier|predictor|projector|projection_head|momentum_encoder|"
    r"dense_decoder|decoder\w*|densify_\w+|mask_tokens?|masked_embed|queue\w*|imn_[ms]|norm_black)(\.|$)"
)
COUNTED = re.compile(r"(relative_position_index|relative_coords_table|attn_mask|num_batches_tracked)$")  # no weights
Rule = tuple[str, str | Callable[[re.Match[str]], str]]


@dataclass(frozen=True)
class Style:
    """How one family of code names its layers."""

    family: str  # of torchvision's networks
    mark: str  # a key that it always has
    rules: tuple[Rule, ...]

    def renamed(self, key: str) -> str:
        for pattern, instead in self.rules:
            key, found = re.subn(pattern, instead, key)
            if found:
                break
        return key


def _block(rest: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"features.{2 * int(found[1]) + 1}.{found[2]}.{rest}"


def _between(rest: str, offset: int) -> Callable[[re.Match[str]], str]:
    return lambda found: f"features.{2 * int(found[1]) + offset}.{rest}"


_LAYER = r"encoder.layers.encoder_layer_\1."
STYLES = (
    Style(
        "vit", "blocks.0.attn.qkv.weight",
        (
            (r"^cls_token$", "class_token"),
            (r"^pos_embed$", "encoder.pos_embedding"),
            (r"^patch_embed\.proj\.", "conv_proj."),
            (r"^blocks\.(\d+)\.norm([12])\.", _LAYER + r"ln_\2."),
            (r"^blocks\.(\d+)\.attn\.qkv\.", _LAYER + "self_attention.in_proj_"),
            (r"^blocks\.(\d+)\.attn\.proj\.", _LAYER + "self_attention.out_proj."),
            (r"^blocks\.(\d+)\.mlp\.fc1\.", _LAYER + "mlp.0."),
            (r"^blocks\.(\d+)\.mlp\.fc2\.", _LAYER + "mlp.3."),
            (r"^norm\.", "encoder.ln."),
        ),
    ),
    Style(
        "swin", "layers.0.blocks.0.attn.qkv.weight",
        (
            (r"^patch_embed\.proj\.", "features.0.0."),
            (r"^patch_embed\.norm\.", "features.0.2."),
            (r"^layers\.(\d+)\.blocks\.(\d+)\.mlp\.fc1\.", _block("mlp.0.")),
            (r"^layers\.(\d+)\.blocks\.(\d+)\.mlp\.fc2\.", _block("mlp.3.")),
            (r"^layers\.(\d+)\.blocks\.(\d+)\.", _block("")),
            (r"^layers\.(\d+)\.downsample\.", _between("", 2)),
        ),
    ),
    Style(
        "convnext", "downsample_layers.0.0.weight",
        (
            (r"^downsample_layers\.0\.", "features.0."),
            (r"^downsample_layers\.(\d+)\.([01])\.", lambda found: f"features.{2 * int(found[1])}.{found[2]}."),
            (r"^stages\.(\d+)\.(\d+)\.dwconv\.", _block("block.0.")),
            (r"^stages\.(\d+)\.(\d+)\.norm\.", _block("block.2.")),
            (r"^stages\.(\d+)\.(\d+)\.pwconv1\.", _block("block.3.")),
            (r"^stages\.(\d+)\.(\d+)\.pwconv2\.", _block("block.5.")),
            (r"^stages\.(\d+)\.(\d+)\.gamma$", _block("layer_scale")),
            (r"^norm\.", "classifier.0."),
        ),
    ),
)  # fmt: skip


def bare(state: State) -> State:
    """Without the prefixes of what a network was wrapped in."""
    for _ in PREFIXES:
        for prefix in PREFIXES:
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    return state


def style_of(keys: Iterable[str]) -> Style | None:
    """None where they are torchvision's own, or of nobody we know."""
    known = set(keys)
    return next((style for style in STYLES if style.mark in known), None)


def in_our_words(state: State) -> State:
    """Under torchvision's names and in its shapes."""
    style = style_of(state)
    renamed = {style.renamed(key) if style else key: value for key, value in state.items()}
    return {key: _shaped(key, value) for key, value in renamed.items() if not COUNTED.search(key)}


def _shaped(key: str, value: Tensor) -> Tensor:
    return value.view(-1, 1, 1) if key.endswith("layer_scale") and value.ndim == 1 else value
