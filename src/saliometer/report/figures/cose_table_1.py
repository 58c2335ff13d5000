"""Table 1 of COSE: every data set, model and method, ours beside the paper's."""

from collections.abc import Sequence

from markupsafe import Markup

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._cose import cell
from saliometer.report.figures._cose import table as table_of
from saliometer.studies._cose_ablations import gates
from saliometer.studies._cose_claims import rows_of
from saliometer.studies._cose_evidence import MODES, Trained
from saliometer.studies._cose_paper import METHODS, OVERALL, table
from saliometer.studies._cose_study import Study
from saliometer.studies._cose_tables import marked
from saliometer.summary import Estimate

NOTE = (
    "COSE in percent, the harmonic mean of consistency and sensitivity, in the mode that the paper's table was made "
    "with (published), with 95 % intervals over images. The best of a row is bold, the second underlined. Small and "
    "grey: the paper's value for the network that ours stands for, with other weights and images; then ours in mode "
    "default. Models with † get fewer than 75 % of the test images right. 50 is what chance can reach at most."
)


@figure("Which method gets the best COSE on which model?", of="cose", order=10, paper="Daroya et al., Table 1")
def cose_table_1(study: Study) -> Drawing | None:
    e = study.evidence
    held = rows_of(e)
    if not held:
        return None
    lines, numbers = [], []
    for (data, arch), models in [*held.items(), ((OVERALL, ""), e.models())]:
        kin = OVERALL if data == OVERALL else models[0].kin
        found = {m: e.estimate("harmonic", models, m) for m in METHODS}
        default = {m: e.by(MODES[1]).estimate("harmonic", models, m) for m in METHODS}
        marks = marked(found)
        paper = {m: table().get((data, kin, m)) for m in METHODS}
        few = {m: e.lacking(models, m) if len(models) > 1 else "" for m in METHODS}
        cells = [_cell(found[m], default[m], paper[m], marks[m][0], few[m]) for m in METHODS]
        name = Markup('<th class="left" scope="row">{}<small>{}</small></th>').format(
            f"{arch or OVERALL}{_dagger(models) if arch else ''}", f"{data}; {kin}" if arch else _few(models)
        )
        lines.append(Markup("<tr>{}{}</tr>").format(name, Markup("").join(cells)))
        for m in METHODS:
            numbers.append(
                {
                    "data": data, "model": arch, "method": m, "cose": found[m].value, "low": found[m].low,
                    "high": found[m].high, "default": default[m].value, "paper": paper[m],
                }
            )  # fmt: skip
    head = [cell("th", "Model", left=True), *(cell("th", m) for m in METHODS)]
    html = table_of("Table 1", head, lines)
    return Drawing(NOTE, html=html, rows=numbers)


def _cell(found: Estimate, default: Estimate, paper: float | None, mark: str, few: str) -> Markup:
    if found.value != found.value:
        shown = Markup("–")
    else:
        shown = Markup("{:.1f}").format(found.value)
        shown = Markup("<b>{}</b>").format(shown) if mark == "**" else shown
        shown = Markup("<u>{}</u>").format(shown) if mark == "<u>" else shown
    interval = f"{found.low:.1f} to {found.high:.1f}" if found.low == found.low else ""
    small = [interval, f"paper {paper:.1f}" if paper is not None else "", f"default {default.value:.1f}", few]
    words = Markup("").join(Markup("<small>{}</small>").format(one) for one in small if one and "nan" not in one)
    return Markup('<td class="number">{}{}</td>').format(shown, words)


def _dagger(models: Sequence[Trained]) -> str:
    return "" if all(gate.passes for gate in gates(models)) else " †"


def _few(models: Sequence[Trained]) -> str:
    return f"{len(models)} models" if len(models) != 1 else "1 model"
