"""Names, their facts and their Specs: what is found, what is refused, and with which words."""

import pkgutil
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import saliometer
from saliometer import registry
from saliometer.registry import FAMILIES, Entry, Facts, Family, Spec, one_of, unknown

names = st.from_regex(r"[a-z_]{1,10}", fullmatch=True)
values = st.one_of(
    st.booleans(),
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12),
)


def toy(model: object, batch: object, *, steps: int = 5, noise: float = 0.5, rule: str = "left", on: bool = True):
    """A toy."""


TOY = Entry("toy", toy, Facts())


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_file_without_an_underscore_holds_the_entry_of_its_name(kind):
    package = __import__(f"saliometer.{FAMILIES[kind]}", fromlist=["__path__"])
    files = {module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")}
    assert files - set(registry.families[kind]) <= {"fit"}  # the trainer stands among the models
    for name, entry in registry.families[kind].items():
        assert entry.name == entry.function.__name__ == name
        assert entry.function.__module__ == f"{package.__name__}.{name}"


def test_a_family_is_read_like_a_sorted_dictionary():
    assert list(registry.methods) == sorted(registry.methods)
    assert len(registry.methods) == len(list(registry.methods))
    assert "gradient" in registry.methods
    assert "gradint" not in registry.methods


def test_an_unknown_name_is_answered_with_the_nearest_and_all_there_are():
    with pytest.raises(LookupError) as told:
        registry.models["simple_cn"]
    assert str(told.value) == (
        f"there is no model 'simple_cn'. Did you mean 'simple_cnn'? There are: {', '.join(registry.models)}."
    )


def test_a_name_unlike_any_gets_no_hint():
    assert unknown("fill", "xyzzy", ["zero", "black"]) == "there is no fill 'xyzzy'. There are: black, zero."
    assert unknown("layer", "x", []) == "there is no layer 'x'. There are: none."
    assert one_of("fill", "zero", ["zero", "black"]) == "zero"


def test_two_entries_of_one_name_are_refused():
    family = Family("method")
    family.add(toy, Facts())
    with pytest.raises(ValueError, match="two methods named 'toy'"):
        family.add(toy, Facts())


def test_an_entry_without_a_docstring_is_refused():
    with pytest.raises(ValueError, match="method 'bare' has no docstring"):
        Family("method").add(_without_docstring("bare"), Facts())


@pytest.mark.parametrize("better", ["", "more"])
def test_a_metric_must_say_which_way_is_better(better):
    with pytest.raises(ValueError, match=f"metric 'toy' says better='{better}': wanted 'higher' or 'lower'"):
        Family("metric").add(toy, Facts(better=better))


def test_a_part_must_say_which_way_is_better_or_that_neither_is():
    Family("metric").add(toy, Facts(better="higher", parts={"one": "lower", "other": ""}))
    with pytest.raises(ValueError, match="metric 'toy' says part='more': wanted 'higher', 'lower' or ''"):
        Family("metric").add(toy, Facts(better="higher", parts={"part": "more"}))


def test_every_metric_of_ours_states_its_formula_in_one_line():
    ours = {name: entry.facts.formula for name, entry in registry.metrics.items() if not entry.own}
    assert [name for name, formula in ours.items() if not formula] == []
    assert [name for name, formula in ours.items() if len(formula) > 110 or not formula.isprintable()] == []
    plain = re.compile(r"--|\*|<=|>=|sum|sqrt|\^| - | / ")  # ASCII for what Unicode has a sign for
    assert [name for name, formula in ours.items() if plain.search(formula)] == []


def test_a_metric_of_the_users_needs_no_formula():
    family = Family("metric")
    family.add(toy, Facts(better="higher"))
    assert family._entries["toy"].facts.formula == ""


def _without_docstring(name: str):
    def function():
        pass

    function.__name__ = name
    return function


def test_parameters_are_the_keyword_only_ones_with_a_default():
    assert TOY.parameters == {"steps": 5, "noise": 0.5, "rule": "left", "on": True}
    assert TOY.summary == "A toy."
    assert registry.methods["oracle"].parameters == {"noise": 0.0}  # its truth comes from the task


@pytest.mark.parametrize(
    ("text", "name", "params"),
    [
        ("gradient", "gradient", {}),
        ("  gradient ( ) ", "gradient", {}),
        ("smooth_grad(draws=50,noise=0.1)", "smooth_grad", {"draws": 50, "noise": 0.1}),
        ("smooth_grad( noise = 1e-5, draws = -2 )", "smooth_grad", {"draws": -2, "noise": 1e-5}),
        ("smooth_grad(squared=true, scale=absolute)", "smooth_grad", {"scale": "absolute", "squared": True}),
        ("smooth_grad(squared=False)", "smooth_grad", {"squared": False}),
        ('grad_cam(layer="features.3")', "grad_cam", {"layer": "features.3"}),
        ("my file.py:method(steps=3)", "my file.py:method", {"steps": 3}),
    ],
)
def test_a_spec_is_read_as_it_is_meant(text, name, params):
    spec = Spec.parse(text)
    assert spec.name == name
    assert dict(spec.params) == params
    assert [type(value) for _, value in spec.params] == [type(value) for value in params.values()]


def test_the_order_of_parameters_does_not_make_another_spec():
    one, other = Spec.parse("smooth_grad(noise=0.1,draws=5)"), Spec.parse("smooth_grad(draws=5,noise=0.1)")
    assert one == other
    assert str(one) == str(other) == "smooth_grad(draws=5,noise=0.1)"


@given(name=names, params=st.dictionaries(names, values, max_size=4))
def test_what_a_spec_prints_reads_back_as_the_same_spec(name, params):
    params = {f"p_{key}": value for key, value in params.items()}  # no keywords of Python
    spec = Spec(name, tuple(sorted(params.items())))
    assert Spec.parse(str(spec)) == spec
    assert [type(value) for _, value in Spec.parse(str(spec)).params] == [type(value) for _, value in spec.params]


@pytest.mark.parametrize(
    "text",
    ["", "f(", "f)", "(steps=1)", "f(5)", "f(steps=)", "f(steps=[1])", "f(**x)", "f(steps=None)", "f(a=1)+g(b=2)"],
)
def test_what_is_no_spec_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="wanted a name, or a name with parameters like smooth_grad") as told:
        Spec.parse(text)
    assert str(told.value).startswith(f"cannot read '{text}'")


@pytest.mark.parametrize("text", ["f(a=1)(b=2)", "f(a=1,a=2)"])
def test_no_parameter_of_a_spec_is_dropped_in_silence(text):
    with pytest.raises(ValueError, match="cannot read"):
        Spec.parse(text)


def test_a_spec_fits_its_function_where_names_and_types_do():
    Spec.parse("toy(steps=7,noise=1,rule=right,on=false)").check("method", TOY)  # 1 is fine for a float


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("toy(step=7)", LookupError, "method 'toy': there is no parameter 'step'. Did you mean 'steps'?"),
        ("toy(steps=0.5)", ValueError, "method 'toy': steps=0.5 is float, wanted int"),
        ("toy(steps=true)", ValueError, "method 'toy': steps=true is bool, wanted int"),
        ("toy(noise=x)", ValueError, "method 'toy': noise=x is str, wanted float"),
        ("toy(on=1)", ValueError, "method 'toy': on=1 is int, wanted bool"),
        ("toy(rule=2)", ValueError, "method 'toy': rule=2 is int, wanted str"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_before_anything_runs(text, error, words):
    with pytest.raises(error) as told:
        Spec.parse(text).check("method", TOY)
    assert str(told.value).startswith(words)


def test_the_package_says_its_version():
    assert saliometer.__version__.count(".") == 2
