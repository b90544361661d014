"""The pages as a WSGI app, the same for our own server (``server``) and for TensorBoard's.

Everything answers GET and changes nothing, but for a POST that starts a capture, where the app was made with captures.
What can be read is the list of profiles the app was made with, by number; no path of a request ever becomes a path of
the disk.
"""

from __future__ import annotations

import gzip
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from stepscope.errors import StepscopeError, UsageError
from stepscope.record import record
from stepscope.web.asked import answered, tables
from stepscope.web.assemble import PAGE, WORKER, comparison_data, html_file, json_text, page, script, styles
from stepscope.web.captures import Captures
from stepscope.web.entries import Entry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from stepscope.document.comparison import ComparisonDocument

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "worker-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MOST_SLICES = 100
"""Slices whose arguments one request may ask for."""

_MOST_RUNS = 8
"""Profiles that one saved file may hold."""

_MOST_POSTED = 4096
"""Bytes of what is posted: an address and a number."""


@record
class Answer:
    """What is sent back."""

    body: bytes
    kind: str
    status: HTTPStatus = HTTPStatus.OK


class App:
    """The pages of some profiles. ``prefix`` is what comes before a route in PATH_INFO; ``entries`` is asked anew each
    time the page is opened. ``comparison`` compares two of the profiles, where they can be."""

    def __init__(
        self,
        entries: Callable[[], Sequence[Entry]],
        *,
        prefix: str = "",
        policy: str = POLICY,
        comparison: Callable[[Entry, Entry], ComparisonDocument] | None = None,
        captures: Captures | None = None,
    ) -> None:
        self._given, self._prefix, self._policy = entries, prefix.rstrip("/"), policy
        self._comparison, self._captures = comparison, captures

    def _entries(self) -> list[Entry]:
        """What was given, and what was captured since."""
        return [*self._given(), *(self._captures.entries if self._captures else ())]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        method = environ["REQUEST_METHOD"]
        path = environ["PATH_INFO"].removeprefix(self._prefix)
        if method == "POST" and path in _POSTED and self._captures is not None:
            refused = _foreign(environ) or _POSTED[path](self._captures, environ)
            answer = refused or self._capturing(self._captures)
        elif method not in ("GET", "HEAD"):
            answer = _text("only GET", HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            answer = self._answer(path, environ.get("QUERY_STRING", ""))
        headers = [("Content-Type", answer.kind), ("Content-Security-Policy", self._policy), *_HEADERS]
        body = answer.body
        if answer.kind == _JSON and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            body = gzip.compress(body, 5)
            headers.append(("Content-Encoding", "gzip"))
        start_response(f"{answer.status} {answer.status.phrase}", [*headers, ("Content-Length", str(len(body)))])
        return [b"" if method == "HEAD" else body]

    def _answer(self, path: str, query: str) -> Answer:
        try:
            return self._route(path.strip("/"), query)
        except StepscopeError as error:
            return _text(str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        except Exception as error:  # noqa: BLE001  The page says it; a traceback tells a reader nothing.
            return _text(f"stepscope itself failed ({type(error).__name__}: {error})", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _route(self, path: str, query: str) -> Answer:
        match path.split("/"):
            case [""] | ["index.html"]:
                return self._index()
            case ["app.js"]:
                return Answer(script(PAGE).encode(), _SCRIPT)
            case ["worker.js"]:
                return Answer(script(WORKER).encode(), _SCRIPT)
            case ["app.css"]:
                return Answer(styles().encode(), "text/css; charset=utf-8")
            case ["api", numbers, "file"]:
                return self._file(numbers)
            case ["api", "comparison", before, after]:
                return self._compared(before, after)
            case ["api", "capture"] if self._captures is not None:
                return self._capturing(self._captures)
            case ["api", number, what]:
                return self._data(number, what, query)
            case _:
                return _NOTHING

    def _index(self) -> Answer:
        titles = [entry.title for entry in self._entries()]
        capture = None if self._captures is None else {"missing": self._captures.missing}
        served = {"titles": titles, "comparison": self._comparison is not None, "capture": capture}
        data = f'<script type="application/json" id="served">{json_text(served)}</script>\n'
        title = titles[0] if len(titles) == 1 else f"{len(titles)} profiles"
        text = page(title, '<link rel="stylesheet" href="app.css">\n', data + '<script src="app.js"></script>\n')
        return Answer(text.encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")

    def _capturing(self, captures: Captures) -> Answer:
        return Answer(json_text({**captures.state(), "profiles": len(self._entries())}).encode(), _JSON)

    def _compared(self, before: str, after: str) -> Answer:
        """What changed from one of the profiles to another."""
        pair = self._entry(before), self._entry(after)
        if self._comparison is None or pair[0] is None or pair[1] is None:
            return _NOTHING
        return Answer(json_text(comparison_data(self._comparison(pair[0], pair[1]))).encode(), _JSON)

    def _entry(self, number: str) -> Entry | None:
        entries = self._entries()
        known = number.isascii() and number.isdecimal() and int(number[:6]) < len(entries)
        return entries[int(number)] if known else None

    def _file(self, numbers: str) -> Answer:
        """Profiles of the list (``0`` or ``0.2.3``) as one HTML file, with their comparison where these are its two."""
        wanted = numbers.split(".")
        entries = [entry for number in wanted[:_MOST_RUNS] if (entry := self._entry(number)) is not None]
        if len(entries) < len(wanted):
            return _NOTHING
        at = {int(number): place for place, number in enumerate(wanted)}
        runs = [entry.opened().run for entry in entries]
        # Of a job: its ranks have other places in the file.
        runs = [replace(run, traces={rank: at[one] for rank, one in run.traces.items() if one in at}) for run in runs]
        both = self._comparison is not None and wanted == ["0", "1"] and len(self._entries()) == 2
        comparison = self._comparison(*entries) if self._comparison is not None and both else None
        return Answer(html_file(runs, comparison).encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")

    def _data(self, number: str, what: str, query: str) -> Answer:
        entry = self._entry(number)
        if entry is None:
            return _NOTHING
        if what == "progress":
            return Answer(json_text(entry.reading.state()).encode(), _JSON)
        opened = entry.opened()
        if what == "report":
            return Answer(json_text(opened.run.data()).encode(), _JSON)
        if what == "pack":
            return Answer(opened.run.pack or b"", "application/octet-stream")
        if what == "arguments":
            given = parse_qs(query).get("ids", [""])[0].split(",")
            ids = [int(text) for text in given if re.fullmatch("[0-9]{1,12}", text)]
            arguments = opened.arguments(ids[:_MOST_SLICES])
            return Answer(json.dumps(arguments, default=str).encode(), _JSON)
        if what in ("query", "tables") and opened.query is not None:
            asked = parse_qs(query).get("sql", [""])[0]
            return Answer(json_text(tables() if what == "tables" else answered(opened.query(asked))).encode(), _JSON)
        return _NOTHING


_JSON, _SCRIPT = "application/json; charset=utf-8", "text/javascript; charset=utf-8"


def _text(text: str, status: HTTPStatus) -> Answer:
    return Answer(text.encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8", status)


def _foreign(environ: WSGIEnvironment) -> Answer | None:
    """The refusal of what another page than this server's posted.

    Browsers send Origin with each POST, and ask before they send JSON to another origin, which is never allowed.
    """
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN", "")
    if not _is_loopback(host) or origin.lower() != f"http://{host}".lower():
        return _text("only the page of this server may do this", HTTPStatus.FORBIDDEN)
    if environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != "application/json":
        return _text("this is asked for in JSON", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return None


def _started(captures: Captures, environ: WSGIEnvironment) -> Answer | None:
    """Start a capture, or say why not."""
    length = environ.get("CONTENT_LENGTH") or ""
    if not (length.isascii() and length.isdecimal() and len(length) < 6 and int(length) <= _MOST_POSTED):
        return _text(f"no more than {_MOST_POSTED} bytes are read", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        wanted = json.loads(environ["wsgi.input"].read(int(length)))
        if not isinstance(wanted, dict):
            raise UsageError("a capture needs an address, HOST:PORT, and a number of seconds")
        captures.start(wanted.get("address"), wanted.get("seconds"))
    except UsageError as error:
        return _text(error.sentence, HTTPStatus.UNPROCESSABLE_ENTITY)
    except (ValueError, RecursionError):
        return _text("what was sent is no JSON", HTTPStatus.BAD_REQUEST)
    return None


def _cancelled(captures: Captures, environ: WSGIEnvironment) -> None:
    captures.cancel()


_POSTED = {"/api/capture": _started, "/api/capture/cancel": _cancelled}
_NOTHING = _text("there is nothing here", HTTPStatus.NOT_FOUND)


class Guard:
    """Lets through only who knows the token, at the path's beginning, and asks under a name of this machine.

    A page of another site cannot know the token; the name keeps out those whose own name leads here (DNS rebinding).
    """

    def __init__(self, app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]) -> None:
        self._app = app
        self.token = secrets.token_urlsafe(24)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        token, slash, rest = environ["PATH_INFO"].removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
        if not (known and slash and _is_loopback(environ.get("HTTP_HOST", ""))):
            body = b"open the address that stepscope view printed"
            start_response("403 Forbidden", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
            return [body]
        environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/{token}"
        environ["PATH_INFO"] = f"/{rest}"
        return self._app(environ, start_response)


def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine; its port may be that of a tunnel."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower() in _LOOPBACK
    return name.lower() in _LOOPBACK and port.isdecimal()
