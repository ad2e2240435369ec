"""The HTML page: read back with a parser, and nothing in it that acts."""

from dataclasses import replace

from lxml import etree
from lxml import html as reader

from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.document import Block, Kind, Line, Region, Span, Style
from gravityocr_cli.html import write_html
from gravityocr_models.signs import Box


def block(kind: Kind, text: str, order: int = 0, lines: tuple[Line, ...] = ()) -> Block:
    return block_of(Region(1, order, kind, Box(72, 72 + 40 * order, 400, 100 + 40 * order), lines), text)


def written(*blocks: Block, title: str = "t") -> str:
    return "".join(write_html([(1, blocks)], title))


def text_of(tree: etree._Element) -> str:
    return "".join(str(part) for part in tree.itertext()).strip()


def styled(*spans: tuple[str, Style]) -> Block:
    text = "".join(text for text, _ in spans)
    return block(Kind.TEXT, text, lines=(Line(Box(72, 72, 400, 82), text, 10, spans=tuple(Span(*s) for s in spans)),))


def test_text_never_acts() -> None:
    evil = '<script>alert(1)</script> <img src=x onerror="f()"> &amp; $x$'
    kinds = (Kind.HEADING, Kind.TEXT, Kind.LIST, Kind.CAPTION, Kind.FOOTNOTE, Kind.CODE, Kind.FORMULA)
    blocks = [block(kind, evil, order) for order, kind in enumerate(kinds)]
    blocks.append(block(Kind.TABLE, f"<table onclick='f()'><tr><td>{evil}</td></tr></table>", 8))
    blocks.append(lost_block(Region(1, 9, Kind.TEXT, Box(0, 0, 1, 1)), evil))
    tree = reader.document_fromstring(written(*blocks, title=evil))
    assert not tree.xpath("//script | //*[@onerror] | //*[@onclick] | //body//img | //link | //iframe")
    assert text_of(tree).count("alert(1)") >= len(kinds)


def test_kinds_become_their_elements() -> None:
    page = written(
        block(Kind.HEADING, "1 Aims"), block(Kind.TEXT, "Text.", 1), block(Kind.CODE, "a\n  b", 2),
        block(Kind.FORMULA, "a < b", 3), block(Kind.TABLE, "<table><tr><td>1</td></tr></table>", 4),
    )  # fmt: skip
    tree = reader.document_fromstring(page)
    (body,) = tree.findall("body")
    assert [each.tag for each in body] == ["h2", "p", "pre", "div", "table"]
    assert text_of(body[2]) == "a\n  b"
    assert text_of(body[3]) == "\\[a < b\\]"


def test_styles_and_links() -> None:
    page = written(
        styled(("A ", Style()), ("bold", Style(bold=True)), (" and ", Style()),
                          ("link", Style(link="https://a.b/?c&d")), (" to ", Style()), ("2", Style(script=1)))
    )  # fmt: skip
    assert '<p>A <strong>bold</strong> and <a href="https://a.b/?c&amp;d">link</a> to <sup>2</sup></p>' in page


def test_mathematics_is_ready_for_katex() -> None:
    assert '<span class="math inline">\\(x_1 &lt; 2\\)</span>' in written(block(Kind.TEXT, "so $x_1 < 2$ holds"))


def test_nested_lists_close_what_they_open() -> None:
    lines = tuple(
        Line(Box(x, 10 * y, x + 50, 10 * y + 9), text, 10)
        for y, (x, text) in enumerate([(0, "- a"), (20, "- b"), (40, "- c"), (0, "- d")])
    )
    tree = reader.fragment_fromstring(
        written(block(Kind.LIST, "- a\n- b\n- c\n- d", lines=lines)).split("<body>\n")[1].split("</body>")[0]
    )
    assert [len(each.xpath("ancestor::ul")) for each in tree.xpath("//li")] == [1, 2, 3, 1]


def test_a_lost_region_is_named() -> None:
    lost = replace(lost_block(Region(4, 2, Kind.TEXT, Box(0, 0, 1, 1)), "too slow"))
    assert "page 4, region 2: not read (too slow)" in written(lost)
