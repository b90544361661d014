"""Reports as one HTML file: pages, trace viewer and data inside, no network and no server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from stepscope.record import record
from stepscope.regex import regex
from stepscope.web.bundle import bundle, static
from stepscope.web.words import words, words_of_comparison

if TYPE_CHECKING:
    from stepscope.document.comparison import ComparisonDocument
    from stepscope.document.report import Report as Document

PAGE, WORKER = "main.js", "trace/worker.js"
STYLES = ("colours.css", "style.css", "trace/trace.css")

_CHUNK_BYTES = 3 << 20
"""Of a pack per element: browsers limit the length of a string."""
_END_OF_SCRIPT = regex(r"</script|<!--", re.IGNORECASE)
_SLOT = regex(r"[ \t]*<!-- (?P<name>[a-z]+) -->\n")


@record
class ShownRun:
    """A diagnosed profile as pages show it; without a pack there is no trace to look at, and ``no_pack`` says why. The
    pack of a job is what joins its ranks' traces (:mod:`stepscope.web.links`)."""

    title: str
    document: Document
    pack: bytes | None
    no_pack: str | None = None
    traces: Mapping[int, int] = field(default_factory=dict)
    """Of a job: the runs beside this one, by position, that hold the ranks' traces."""
    side: str | None = None
    """Which of two runs it is that are compared."""

    def data(self) -> dict[str, Any]:
        """What pages read first: the report and its sentences."""
        return {
            "title": self.title,
            "side": self.side,
            "report": self.document,
            "words": words(self.document),
            "no_pack": self.no_pack,
            "traces": {str(rank): at for rank, at in self.traces.items()},
        }


def html_file(runs: Sequence[ShownRun], comparison: ComparisonDocument | None = None) -> str:
    """One page that holds everything it shows: runs, and what a comparison of two of them says."""
    code, style = script(PAGE), styles()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(code)}'; style-src 'sha256-{_digest(style)}'; "
        "img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    title = runs[0].title if len(runs) == 1 else f"{len(runs)} profiles"
    # The reports first and the packs last, so that the page shows while the traces are still read.
    data = "".join((*_comparison(comparison), *_data(runs)))
    return page(title, head, f"{data}<script>{code}</script>\n{''.join(_packs(runs))}")


def page(title: str, head: str, body: str) -> str:
    """The pages' HTML with a title, elements for its head, and elements behind its body."""
    slots = {"title": f"<title>{html.escape(title)} · stepscope</title>\n", "head": head, "body": body}
    return _SLOT.sub(lambda slot: slots[slot["name"]], static("index.html"))


@cache
def script(entry: str) -> str:
    """A bundled script that may stand inside an element of a page."""
    text = bundle(entry)
    if _END_OF_SCRIPT.search(text):
        raise ValueError(f"{entry}: holds what would end its element")
    return text


@cache
def styles() -> str:
    """The style sheet."""
    return "".join(map(static, STYLES))


def json_text(value: object) -> str:
    """JSON that may stand inside an element: nothing in it can end it. ASCII, as `report.json_` writes it."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _comparison(document: ComparisonDocument | None) -> Iterator[str]:
    if document is not None:
        data = json_text(comparison_data(document))
        yield f'<script type="application/json" class="comparison">{data}</script>\n'


def comparison_data(document: ComparisonDocument) -> dict[str, Any]:
    """What pages read of a comparison: `stepscope.comparison/1` and its sentences."""
    return {"document": document, "words": words_of_comparison(document)}


def _data(runs: Sequence[ShownRun]) -> Iterator[str]:
    for run in runs:
        yield f'<script type="application/json" class="run">{json_text(run.data())}</script>\n'
    yield f'<script type="text/plain" id="worker">{script(WORKER)}</script>\n'


def _packs(runs: Sequence[ShownRun]) -> Iterator[str]:
    for at, run in enumerate(runs):
        for start in range(0, len(run.pack or b""), _CHUNK_BYTES):
            chunk = base64.b64encode((run.pack or b"")[start : start + _CHUNK_BYTES]).decode("ascii")
            yield f'<script type="application/octet-stream" class="pack" data-run="{at}">{chunk}</script>\n'


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
