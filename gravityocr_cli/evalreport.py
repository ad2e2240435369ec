"""The evaluation as one HTML file to look at: means by category, and the worst pages with their picture, the regions
that were read, truth and prediction side by side.

The file holds its pictures and loads nothing; whatever comes from a page is escaped, tables are drawn anew from their
cells. Words that only one side has are marked.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from PIL import Image
from rapidfuzz.distance import Levenshtein

from gravityocr_cli.document import Page
from gravityocr_cli.errors import GravityOcrError
from gravityocr_cli.pdf import LostPage, Source
from gravityocr_cli.report import RegionReport
from gravityocr_cli.scoring import Result, Scores, Suite, by_category, mean, shown
from gravityocr_models.folding import WORD, fold_text
from gravityocr_models.metrics import formulas_of, tables_of
from gravityocr_models.teds import read_table

WORST = 12
PICTURE_DPI = 96.0
WIDEST_SPAN = 100  # columns or rows of a drawn cell: browsers reserve what is asked for
_COLOURS = {"table": "#0a7d33", "formula": "#8a2be2", "picture": "#b8860b", "heading": "#c2185b", "title": "#c2185b"}
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem;color:#222;background:#fff}
h2{margin:2.5rem 0 .3rem;border-top:2px solid #888;padding-top:.6rem} h3{margin:.8rem 0 .2rem;font-size:1em}
table{border-collapse:collapse;margin:.3rem 0} td,th{border:1px solid #bbb;padding:.15rem .45rem;vertical-align:top}
.page{display:grid;grid-template-columns:minmax(18rem,1fr) 1fr 1fr;gap:1.2rem;align-items:start}
.page>div{min-width:0;overflow-x:auto} svg{width:100%;height:auto;border:1px solid #ccc}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f5;padding:.4rem;margin:.3rem 0}
del{background:#ffd0d0;text-decoration:none} ins{background:#c9efcf;text-decoration:none} .error{color:#b00020}
"""


def page_of(title: str, suite: Suite, results: Sequence[Result]) -> str:
    """The whole file."""
    worst = sorted(results, key=badness)[:WORST]
    parts = [
        f"{head(title)}<h1>{escape(title)}</h1>",
        f"<p>{len(results)} pages. {escape(suite.remark)}</p>",
        _means(suite, results),
        f"<p>Below: the {len(worst)} worst pages. <del>Only in the truth</del>, <ins>only in the prediction</ins>.</p>",
        *(_section(suite, result) for result in worst),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def head(title: str) -> str:
    """The beginning of a file that may show pictures of its own, and loads and runs nothing."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
    )


def badness(result: Result) -> float:
    """From low (bad) to high: the overall score; without one the mean of whatever was scored."""
    if result.overall is not None:
        return result.overall
    scores = [
        1 - value if name.endswith("_edit") else value for name, value in result.scores.items() if value is not None
    ]
    return mean(scores) or 0.0


def _means(suite: Suite, results: Sequence[Result]) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in ("category", "pages", *suite.columns.values(), "overall"))
    rows = []
    for name, (count, scores) in by_category(suite, results).items():
        cells = "".join(f"<td>{shown(key, scores[key])}</td>" for key in (*suite.columns, "overall"))
        rows.append(f"<tr><td>{escape(name)}</td><td>{count}</td>{cells}</tr>")
    return f"<table><tr>{heads}</tr>{''.join(rows)}</table>"


def _section(suite: Suite, result: Result) -> str:
    case, markdown = result.case, result.reading.markdown
    true_text, read_text = marked("\n".join(text for head, text in case.truth if head == "text"), markdown)
    notes = [f"{name.replace('_', ' ')}: {value}" for name, value in result.notes.items() if value]
    return f"""<h2>{escape(case.id)}</h2>
<p>{escape(case.category)} · {escape(_score_line(suite, result.scores, result.overall))}
{escape(" · ".join(["", *notes]))} <span class="error">{escape(result.error)}</span></p>
<div class="page"><div>{_picture(case.page, result.reading.regions)}</div>
<div><h3>Truth</h3><p>{true_text}</p>{"".join(_true_parts(result))}</div>
<div><h3>Prediction</h3><p>{read_text}</p>{"".join(_drawn(table) for table in tables_of(markdown))}
{_listing(formulas_of(markdown))}<details><summary>Markdown</summary><pre>{escape(markdown)}</pre></details></div></div>"""


def _score_line(suite: Suite, scores: Scores, overall: float | None) -> str:
    every = {**scores, "overall": overall}
    heads = {**suite.columns, "overall": "overall"}
    return ", ".join(f"{heads[name]} {shown(name, value)}" for name, value in every.items() if value is not None)


def _true_parts(result: Result) -> Iterator[str]:
    truth = result.case.truth
    yield from (_drawn(text) for head, text in truth if head == "table")
    yield _listing([text for head, text in truth if head == "formula"])
    yield from (
        f"<h3>{escape(head)}</h3><pre>{escape(text)}</pre>"
        for head, text in truth
        if head not in ("text", "table", "formula")
    )


def marked(truth: str, read: str) -> tuple[str, str]:
    """Both texts folded and escaped, with <del> around words that the prediction lacks and <ins> around its own."""
    theirs, ours = (WORD.findall(fold_text(text)) for text in (truth, read))
    if not theirs:
        return "", escape(" ".join(ours))
    true_words, read_words = [], []
    for step in Levenshtein.opcodes(theirs, ours):
        left = escape(" ".join(theirs[step.src_start : step.src_end]))
        right = escape(" ".join(ours[step.dest_start : step.dest_end]))
        same = step.tag == "equal"
        true_words += [left if same else f"<del>{left}</del>"] if left else []
        read_words += [right if same else f"<ins>{right}</ins>"] if right else []
    return " ".join(true_words), " ".join(read_words)


def _drawn(table: str) -> str:
    rows = []
    for row in read_table(table).rows:
        cells = "".join(
            f'<td colspan="{min(cell.columns, WIDEST_SPAN)}" rowspan="{min(cell.rows, WIDEST_SPAN)}">'
            f"{escape(cell.text)}</td>"
            for cell in row
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _listing(formulas: Sequence[str]) -> str:
    return "".join(f"<pre>{escape(formula)}</pre>" for formula in formulas)


def _picture(path: Path, regions: Sequence[RegionReport]) -> str:
    """The page with its regions, numbered in reading order from 1; a sentence where it can't be shown."""
    try:
        with Source(path) as source:
            sheet = next(iter(source.sheets([1], PICTURE_DPI)))
    except GravityOcrError as fault:
        return f'<p class="error">{escape(str(fault))}</p>'
    if isinstance(sheet, LostPage):
        return f'<p class="error">{escape(sheet.reason)}</p>'
    return picture_of(sheet.page, regions)


def picture_of(page: Page, regions: Sequence[RegionReport]) -> str:
    """An SVG in points: the page's pixels, a box and a number for each region."""
    file = io.BytesIO()
    Image.fromarray(page.pixels).save(file, "JPEG", quality=70)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    size = f'width="{page.width:.1f}" height="{page.height:.1f}"'
    boxes = "".join(map(_box, regions))
    return (
        f'<svg viewBox="0 0 {page.width:.1f} {page.height:.1f}" role="img">'
        f'<image {size} preserveAspectRatio="none" href="data:image/jpeg;base64,{data}"/>{boxes}</svg>'
    )


def _box(region: RegionReport) -> str:
    x0, y0, x1, y1 = region.box_pt
    colour = _COLOURS.get(region.kind, "#1565c0")
    sure = "" if region.confidence is None else f", confidence {region.confidence:.2f}"
    about = f"{region.order + 1}: {region.kind}, {region.method.value}{sure}"
    return (
        f'<g><title>{escape(about)}</title><rect x="{x0}" y="{y0}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" '
        f'fill="{colour}" fill-opacity=".07" stroke="{colour}"/>'
        f'<text x="{max(x0 - 2, 12):.1f}" y="{y0 + 9:.1f}" text-anchor="end" font-size="10" fill="{colour}">'
        f"{region.order + 1}</text></g>"
    )
