"""Figure 1 of COSE: maps of an image, mirrored and equalised, method by method."""

from markupsafe import Markup

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._cose import GAP, Sheet, named_row, rows_of
from saliometer.studies._cose_figures import like
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_study import Study

IMAGES = 2
PLACES = ("itself", "flip_lr", "equalize")
NOTE = (
    "Maps of two images as they are, mirrored (geometric) and equalised (photometric). Under a map stands its "
    "similarity to the map of the image itself, laid back; “moved” where the prediction changed. Beside the name: "
    "COSE and its parts over all images, mode default, in percent. Bright is what a map marks."
)


@figure("Do maps follow a mirrored and an equalised image?", of="cose", order=20, paper="Daroya et al., Figure 1")
def cose_1(study: Study) -> Drawing | None:
    found = study.galleries
    gallery = like(found, "ResNet50") or (found[0] if found else None)
    if gallery is None:
        return None
    methods = [method for method in METHODS if method in gallery.maps]
    shared = [one for one in gallery.maps[methods[0]] if all(one in gallery.maps[method] for method in methods)]
    chosen = sorted(shared, key=lambda one: not gallery.right[one])[:IMAGES]  # those that are classified right first
    if not chosen:
        return None
    sheet = Sheet("cose1")
    head = [Markup('<th class="left">{}</th>').format(gallery.model.label)]
    rows, numbers = [], []
    for image in chosen:
        first = gallery.maps[methods[0]][image]
        head += [*(sheet.image(first[place]) for place in PLACES if place in first), GAP]
    for method in methods:
        cells = []
        for image in chosen:
            held = {place: one for place, one in gallery.maps[method].get(image, {}).items() if place in PLACES}
            cells += [*(sheet.map(held.get(place), place == "itself") for place in PLACES), GAP]
            numbers += rows_of(held, method, image)
        rows.append(named_row(method, gallery.parts[method], cells))
    return Drawing(NOTE, html=sheet.table(head, rows), rows=numbers)
