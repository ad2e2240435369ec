"""Folding: a page as one line to compare, so that a choice of markup, quotes or line breaks costs nothing.

The rules are those of the evaluation set's README ("How a page is scored"). Both sides of every comparison are
folded by the same function.
"""

import html
import re
import unicodedata

from gravityocr_models.latex import to_unicode

# Spans are bounded, so that an opening mark repeated by a looping model doesn't make the search quadratic.
_DISPLAY = (
    r"(?<!\\)\$\$(.{1,9999}?)(?<!\\)\$\$|\\\[(.{1,9999}?)\\\]"
    r"|(\\begin\{([a-zA-Z]{1,30}\*?)\}.{1,9999}?\\end\{\4\})"
)
# As Pandoc pairs dollars: no blank inside the opening or closing one, no digit after, and never over an empty line.
_INLINE = r"(?<![\\$])\$(?![\s$])((?:[^$\\\n]|\\.|\n(?!\s*\n)){1,999}?)(?<!\s)\$(?![\d$])|\\\((.{1,999}?)\\\)"
DISPLAY_MATH = re.compile(_DISPLAY, re.DOTALL)
INLINE_MATH = re.compile(_INLINE, re.DOTALL)
ANY_MATH = re.compile(f"{_DISPLAY}|{_INLINE}", re.DOTALL)

_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.{0,9999}?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|<img\b[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]+)>")
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]:?")
_INLINE_TAGS = "a abbr b big cite code del em font i ins kbd mark q s small span strong sub sup tt u var"
_BLOCK_TAGS = (
    "address article aside blockquote body br caption center col colgroup dd details div dl dt figcaption figure "
    "footer h1 h2 h3 h4 h5 h6 head header hr html li main nav ol p pre section summary table tbody td tfoot th thead "
    "tr ul"
)
_INLINE_TAG = re.compile(rf"</?(?:{'|'.join(_INLINE_TAGS.split())})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(_BLOCK_TAGS.split())})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_RULE = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
PIPE_RULE = re.compile(
    r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$|^[ \t]*\|[ \t]*:?-+:?[ \t]*\|$", re.M
)
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S))?", re.MULTILINE)
_EMPHASIS = re.compile(r"[*`|]|~~|(?<![^\W_])_+|_+(?![^\W_])")
_LEADERS = re.compile(r"\.{4,}|(?:\.[ \t]){3,}\.?")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
# Han, kana, bopomofo, and their punctuation; full-width letters and digits are Latin in wide dress.
_CJK = "\u2e80-\u303f\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK += "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U00020000-\U0003ffff"
_BESIDE_CJK = re.compile(rf"(?<=[{_CJK}]) | (?=[{_CJK}])")
WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
_UNIFIED = (
    dict.fromkeys(map(ord, "‘’‚‛′´ʼ＇"), "'")
    | dict.fromkeys(map(ord, "“”„‟″«»＂"), '"')
    | dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－⁃"), "-")
    | dict.fromkeys(map(ord, "•◦‣▪▫■□●○◆◇►▶▸▹➢➤∙·⋅\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
    | {ord("∗"): "*", ord("∼"): "~", ord("∣"): "|"}
)


def fold_text(text: str) -> str:
    """Markdown, HTML or plain text as one line to compare.

    Markup, display maths, bullets and leaders are gone; quotes and dashes have one spelling; no hyphens between
    letters; one blank between words and none beside CJK characters.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = DISPLAY_MATH.sub("\n", _COMMENT.sub(" ", _FENCE.sub("", text)))
    text = INLINE_MATH.sub(lambda m: to_unicode(html.unescape(m[1] or m[2])), text)
    # Escapes and entities first, marks after: truth is plain text, where a sign was never escaped to begin with.
    text = _ESCAPE.sub(r"\1", html.unescape(_AUTOLINK.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub(" ", text)))))
    text = _FOOTNOTE.sub(r" \1 ", _BLOCK_TAG.sub("\n", _INLINE_TAG.sub("", text)))
    text = _EMPHASIS.sub(_mark_to_blank, _LINE_MARK.sub("", _RULE.sub("", PIPE_RULE.sub("", text))))
    text = _BESIDE_CJK.sub("", " ".join(text.translate(_UNIFIED).split()))
    text = unicodedata.normalize("NFKC", text).translate(_UNIFIED)
    text = re.sub("-+", "-", _LEADERS.sub(" ", text)).replace("''", '"')
    text = "".join(
        " " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Co")
    )
    return " ".join(_BESIDE_CJK.sub("", _HYPHEN.sub("", text)).split())


def _mark_to_blank(mark: re.Match[str]) -> str:
    return " " if mark[0] == "|" else ""


FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


def without_code(markdown: str) -> str:
    """The Markdown without its fenced code, in which a `#`, a `$` or a `|` is just a sign."""
    return FENCED.sub("", markdown)


def without_comments(markdown: str) -> str:
    """The Markdown without HTML comments, which tell a reader of the source about the page and are no part of it."""
    return _COMMENT.sub(" ", markdown)
