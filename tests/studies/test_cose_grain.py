"""Methods beside noise as fine as their maps, on rows that are worked out by hand."""

import math

import pyarrow as pa
import pytest

from cose_study_toys import block, pairs_for, trained
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_evidence import Evidence
from saliometer.studies._cose_grain import answer, beside, every, noises
from saliometer.studies._cose_paper import CONV, METHODS, TRANSFORMER

NOISE = {0.0: (0.5, 10.0), 1.0: (2.0, 30.0), 2.0: (4.0, 50.0)}  # sigma -> grain, COSE


def rows(methods: dict[str, tuple[float, float]], noise: dict[float, tuple[float, float]] = NOISE, images: int = 4):
    """A model's: methods and noise with their grain and COSE."""
    some = [block(m, pairs_for(value, value), how, grain) for m, (grain, value) in methods.items() for how in HOWS]
    some += [
        block(f"smooth_noise(sigma={sigma:g})", pairs_for(value, value), how, grain, images)
        for sigma, (grain, value) in noise.items()
        for how in HOWS
    ]
    return [pa.concat_tables(some).unify_dictionaries()]


HOWS = ("published", "default")
CONVNET, VIT = trained("toys", "resnet20"), trained("toys", "vit_tiny")


def evidence(conv: dict[str, tuple[float, float]], vit: dict[str, tuple[float, float]]) -> Evidence:
    return Evidence([CONVNET, VIT], {("toys", CONVNET.label): rows(conv), ("toys", VIT.label): rows(vit)})


def test_between_two_noises_cose_is_on_the_line():
    e = evidence({"GradCAM": (3.0, 60.0), "IG": (0.5, 20.0)}, {})
    assert [grain for grain, _ in noises(e, CONVNET)] == [0.5, 2.0, 4.0]
    one = beside(e, CONVNET, "GradCAM")
    assert one.noise[0] == pytest.approx(40, abs=1e-3)
    assert one.excess[0] == pytest.approx(20, abs=1e-3)
    assert not one.beyond
    assert beside(e, CONVNET, "IG").excess[0] == pytest.approx(10, abs=1e-3)


@pytest.mark.parametrize(("grain", "noise"), [(0.2, 10), (9.0, 50)])
def test_beyond_the_noise_the_nearest_is_taken_and_told(grain, noise):
    one = beside(evidence({"GradCAM": (grain, 60.0)}, {}), CONVNET, "GradCAM")
    assert one.beyond
    assert one.noise[0] == pytest.approx(noise, abs=1e-3)


def test_noise_without_any_consistency_counts_as_0():
    tables = {("toys", CONVNET.label): rows({"IG": (0.5, 20.0)}, {0.0: (0.5, -5.0)})}
    assert beside(Evidence([CONVNET], tables), CONVNET, "IG").noise[0] == 0


def test_noise_on_other_images_is_no_comparison():
    e = Evidence([CONVNET], {("toys", CONVNET.label): [*rows({"IG": (0.5, 20.0)}, {}), *rows({}, images=2)]})
    with pytest.raises(MissingError, match="was not run on 2 of the images"):
        beside(e, CONVNET, "IG")
    assert every(e) == []


def test_a_gap_that_is_all_grain():
    """The ViT's maps are coarser by as much as noise gains by it."""
    e = evidence(dict.fromkeys(METHODS, (1.0, 40.0)), dict.fromkeys(METHODS, (3.0, 40.0 + 40 - 16.667)))
    found = answer(e)
    assert found.gap.value == pytest.approx(23.333, abs=0.01)
    assert found.noise.value == pytest.approx(23.333, abs=0.01)
    assert found.excess.value == pytest.approx(0, abs=0.01)
    assert found.grains == {CONV: pytest.approx(1.0), TRANSFORMER: pytest.approx(3.0)}
    said = " ".join(found.sentences())
    assert "a better COSE that may be no more than smoother maps" in said
    assert "coarser, 3.0 against 1.0 pixels" in said
    assert "1 ConvNet and 1 Transformer are few" in said


def test_a_gap_that_is_not_grain():
    e = evidence(dict.fromkeys(METHODS, (1.0, 40.0)), dict.fromkeys(METHODS, (1.0, 50.0)))
    found = answer(e)
    assert found.noise.value == pytest.approx(0, abs=1e-6)
    assert found.excess.value == pytest.approx(10, abs=0.01)
    assert "a better COSE, and not only by smoother maps" in " ".join(found.sentences())


def test_only_methods_that_both_have_are_compared():
    e = evidence({"GradCAM": (1.0, 40.0), "IG": (1.0, 90.0)}, {"GradCAM": (1.0, 50.0), "LIME": (1.0, 0.1)})
    assert answer(e).gap.value == pytest.approx(10, abs=0.01)


def test_without_noise_or_without_a_family_there_is_no_answer():
    alone = {("toys", CONVNET.label): rows({"IG": (0.5, 20.0)}, {})}
    with pytest.raises(MissingError, match="no smoothed noise was run"):
        beside(Evidence([CONVNET], alone), CONVNET, "IG")
    with pytest.raises(MissingError, match="no method has both a ConvNet and a Transformer"):
        answer(evidence({"GradCAM": (1.0, 40.0)}, {}))
    assert not math.isnan(beside(evidence({"GradCAM": (1.0, 40.0)}, {}), CONVNET, "GradCAM").noise[0])
