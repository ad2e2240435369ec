"""Line ends: blanks, hyphens by the document's own words, scripts without blanks."""

from collections import Counter

import pytest

from gravityocr_cli.hyphens import ends_broken, join, join_lines, unbroken, words_in


def seen(*lines: str) -> Counter[str]:
    return Counter(words_in(lines))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["one line", "and another"], "one line and another"),
        (["the algo-", "rithms run"], "the algorithms run"),
        (["extract n-", "tridecanal from"], "extract n-tridecanal from"),
        (["a 2-", "dimensional grid"], "a 2-dimensional grid"),
        (["in mid-", "to late summer"], "in mid- to late summer"),
        (["in mid- to", "late summer"], "in mid- to late summer"),
        (["the Anglo-", "American treaty"], "the Anglo-American treaty"),
        (["during COVID-", "19 waves"], "during COVID-19 waves"),
        (["a dash --", "then more"], "a dash -- then more"),
        (["tight dash—", "then more"], "tight dash—then more"),
        (["pages 3–", "5 only"], "pages 3–5 only"),
        (["soft\u00ad", "ware"], "software"),
        (["very nar-", "row col-", "umns"], "very narrow columns"),
        (["see http://a.org/x-", "y for"], "see http://a.org/x-y for"),
        (["at https://a.org/", "b-core now"], "at https://a.org/b-core now"),
        (["at https://a.org/", "and elsewhere."], "at https://a.org/ and elsewhere."),
        (["write to ann@", "a-b.org"], "write to ann@a-b.org"),
        (["where $x =$", "$y + 1$ holds"], "where $x = y + 1$ holds"),
        (["where $x \\in$", "$A$ holds"], "where $x \\in A$ holds"),
        (["where $x$", "$y$ holds"], "where $x$ $y$ holds"),
        (["they cost $5 and -$", "$7"], "they cost $5 and -$ $7"),
        (["call gcm_", "aes_encrypt first"], "call gcm_aes_encrypt first"),
        (["see --num-", "callers above"], "see --num-callers above"),
        (["文書の変", "換です。", "次の行"], "文書の変換です。次の行"),
        (["使用", "Python 编写"], "使用 Python 编写"),
        (["한국어 문장", "입니다"], "한국어 문장 입니다"),
        (["", "text"], "text"),
        ([], ""),
    ],
)
def test_joins_without_vocabulary(lines: list[str], expected: str) -> None:
    assert join_lines(lines, {}) == expected


def test_vocabulary_decides() -> None:
    words = seen("blood-feeding insects and algorithms", "re-creation once, recreation", "recreation")
    assert join("of blood-", "feeding flies", words) == "of blood-feeding flies"
    assert join("new Algo-", "rithms", words) == "new Algorithms"
    assert join("re-", "creation", words) == "recreation"  # the more frequent spelling
    assert join("DNA-", "RNA", seen("dnarna")) == "DNARNA"  # what the document spells wins over any rule


def test_chained_compounds_stay_where_their_parts_are_words() -> None:
    words = seen("the art of it", "state")
    assert join("state-of-the-", "art", words) == "state-of-the-art"
    assert join("well-estab-", "lished", words) == "well-established"


def test_two_words_of_the_document_are_a_compound() -> None:
    words = seen("an entropy of every cross section", "the part that comes over")
    assert join("the cross-", "entropy loss", words) == "the cross-entropy loss"
    assert join("has over-", "comes here", words) == "has overcomes here"
    assert join("of cross-", "ings", words) == "of crossings"


def test_broken_words_are_no_vocabulary() -> None:
    words = seen("the algo-", "rithms are self-made here")
    assert "algo" not in words
    assert "rithms" not in words
    assert words["self-made"] == words["self"] == words["made"] == 1


def test_ends_broken() -> None:
    assert ends_broken("algo-")
    assert ends_broken("soft\u00ad")
    assert not ends_broken("a dash -")
    assert not ends_broken("done.")


def test_words_that_a_tables_lines_broke_are_whole() -> None:
    html = "<td>col- lapsed, pre- and post, a self- made - thing, 3- 4, A- b</td><td>x-</td> <td>y</td>"
    whole = "<td>collapsed, pre- and post, a self-made - thing, 3- 4, A-b</td><td>x-</td> <td>y</td>"
    assert unbroken(html, {}) == whole
    assert unbroken("<td>re- read</td>", {"re-read": 2}) == "<td>re-read</td>"
