"""Figure 4 of COSE: maps of a Transformer beside those of a ConvNet."""

from markupsafe import Markup

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._cose import GAP, Sheet, named_row, rows_of
from saliometer.studies._cose_figures import Gallery, like
from saliometer.studies._cose_paper import CONV, METHODS, TRANSFORMER
from saliometer.studies._cose_study import Study

IMAGES = 3
NOTE = (
    "The same images explained for a ConvNet and for a Transformer. Beside a method's name COSE and its parts of the "
    "first, then of the second, over all images, mode default, in percent."
)


@figure("What do maps of a ViT look like beside a ResNet's?", of="cose", order=50, paper="Daroya et al., Figure 4")
def cose_4(study: Study) -> Drawing | None:
    found = study.galleries
    pair = [
        like(found, kin) or next((one for one in found if one.model.family == family), None)
        for kin, family in (("ResNet50", CONV), ("ViT-B/16", TRANSFORMER))
    ]
    sides: list[Gallery] = [one for one in pair if one is not None]
    if len(sides) < 2 or sides[0].model.data != sides[1].model.data:
        return None
    methods = [method for method in METHODS if all(method in one.maps for one in sides)]
    images = [one for one in sides[0].maps[methods[0]] if one in sides[1].maps[methods[0]]][:IMAGES]
    sheet, rows, numbers = Sheet("cose4"), [], []
    head = [Markup('<th class="left"></th>')]
    for image in images:
        first = sides[0].maps[methods[0]][image]["itself"]
        head += [sheet.image(first, "the image"), *(Markup("<th>{}</th>").format(one.model.arch) for one in sides), GAP]
    for method in methods:
        cells = []
        for image in images:
            cells.append(Markup("<td></td>"))
            for side in sides:
                held = side.maps[method].get(image, {})
                cells.append(sheet.map(held.get("itself"), itself=True))
                numbers += rows_of({"itself": held["itself"]} if "itself" in held else {}, method, image)
            cells.append(GAP)
        words = "; ".join(side.parts[method] for side in sides)
        rows.append(named_row(method, words, cells))
    return Drawing(NOTE, html=sheet.table(head, rows), rows=numbers)
