"""A user's pictures: folders, CSV, arrays and torchvision's data sets, read when they are looked at."""

from saliometer.images.decode import decoded, rgb
from saliometer.images.pictures import Pictures
from saliometer.images.preprocess import Preprocessing
from saliometer.images.read import read_images

__all__ = ["Pictures", "Preprocessing", "decoded", "read_images", "rgb"]
