"""Figure 2 of COSE: a reference, a copy that keeps the prediction and its map, a copy that changes both."""

from markupsafe import Markup

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._cose import GAP, Sheet, named_row, rows_of
from saliometer.studies._cose_figures import like, told
from saliometer.studies._cose_study import Study

METHOD, IMAGES = "GradCAM", 2
WORDS = {"itself": "(a) reference", "alike": "(b) same prediction", "apart": "(c) another prediction"}
NOTE = (
    "What COSE asks, with Grad-CAM: (a) an image that is classified right; (b) the changed copy of it that keeps the "
    "prediction and whose map is most alike (consistency); (c) the one that changes it and whose map is least alike "
    "(sensitivity). Numbers are similarities to the map of (a)."
)


@figure("What should stay, and what should move?", of="cose", order=30, paper="Daroya et al., Figure 2")
def cose_2(study: Study) -> Drawing | None:
    """Of the ResNet, if it has such an image; else of any model."""
    found = study.galleries
    order = [one for one in (like(found, "ResNet50"), *found) if one is not None]
    gallery = next((one for one in order if one.both()), None)
    if gallery is None:
        return None
    sheet, above, below, numbers = Sheet("cose2"), [], [], []
    head = [Markup('<th class="left">{}</th>').format(gallery.model.label)]
    for image in gallery.both()[:IMAGES]:
        shown = {place: one for place, one in gallery.maps[METHOD][image].items() if place in WORDS}
        head += [*(Markup("<th>{}</th>").format(words) for words in WORDS.values()), Markup("<th></th>")]
        above += [*(sheet.image(shown[place], told(shown[place].condition)) for place in WORDS), GAP]
        below += [*(sheet.map(shown[place], place == "itself") for place in WORDS), GAP]
        numbers += rows_of(shown, METHOD, image)
    rows = [named_row("Image", "", above), named_row(METHOD, gallery.parts[METHOD], below)]
    return Drawing(NOTE, html=sheet.table(head, rows), rows=numbers)
