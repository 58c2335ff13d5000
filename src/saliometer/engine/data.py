"""What is trained on, in a word: a folder, arrays, a data set of torchvision's, or a setting of TextBox."""

from saliometer.images.labelled import Data

__all__ = ["Data", "data_given"]


def data_given(text: str, side: int = 0, *, test: str = "", resize: int = 0, seed: int = 0) -> Data:
    """The data set that `text` names: `folder/`, `train.npz`, `cifar10:ROOT`, `textbox:complex-fr`.

    `test` is a place of its own for the test part. Pictures of one size up to `side` stay as they are; others are
    resized (shorter side to `resize` or `side`) and their middle cut out. `seed` is for splits that nobody gives.
    """
    raise NotImplementedError
