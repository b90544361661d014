"""Profiles in object stores and other file systems of fsspec: ``s3://``, ``gs://``, ``https://`` and others.

A shard is listed here and fetched where it is read, into a temporary file that is gone afterwards. Every file system
has errors of its own, which need not be ``OSError``: each becomes an :class:`InputError`.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from stepscope.errors import InputError
from stepscope.inputs.inflate import GZIP_MAGIC
from stepscope.inputs.limits import SHARD_BYTES
from stepscope.inputs.source import Source
from stepscope.regex import regex

_INSTALL = "pip install fsspec s3fs gcsfs here and on every worker"
_URL = regex(r"[a-z][a-z0-9+.-]+(?:::|://)", re.I)
_DEPTH = 8
_BLOCK = 8 << 20
_LOOKS = 32
"""Looks into files at once: each is a request that mostly waits."""
T = TypeVar("T")


def is_url(path: str) -> bool:
    """Whether a path is an address of fsspec: ``PROTOCOL://…``, or several joined with ``::``."""
    return _URL.match(path) is not None


class ShownUrl(type(Path())):  # type: ignore[misc]
    """A URL to be shown, and to be told a name and folder of; no file of this machine has it."""

    def __str__(self) -> str:
        """The URL; a path of the system has one slash where it has two, or three."""
        path = str(super().__str__()).replace("\\", "/")
        return path.replace(":/", ":///" if path.startswith(("file:", "local:")) else "://", 1)


class Shard(Source):
    """A file of a file system of fsspec, which nothing has been read of yet."""

    def __init__(self, url: str, size: int | None) -> None:
        self.url = url
        self.path = self.place = ShownUrl(url)
        self.size = size or 0
        self.member = None
        self.container = "gzip" if url.endswith(".gz") else "plain"

    def head(self, count: int) -> bytes:
        """At most the first ``count`` decompressed bytes. Raises InputError where the store does."""
        fs, path = _system(self.url)
        raw: bytes = self._asked(lambda: fs.cat_file(path, start=0, end=count))
        if not raw.startswith(GZIP_MAGIC):
            return raw
        try:
            return zlib.decompressobj(wbits=31).decompress(raw, count)
        except zlib.error as error:
            raise InputError(f"{self.path}: is damaged: {error}") from error

    @contextmanager
    def here(self) -> Iterator[Source]:
        """The same in a temporary file. Raises InputError where it cannot be fetched, or is too large."""
        with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
            file = Path(folder) / (self.path.name or "shard")
            self._asked(lambda: self._fetch(file))
            try:
                yield Source(file)
            except InputError as error:
                raise InputError(error.sentence.replace(str(file), str(self.path)), *error.details) from error

    def _fetch(self, file: Path) -> None:
        fs, path = _system(self.url)
        with fs.open(path, "rb") as remote, open(file, "wb") as local:
            held = 0
            while block := remote.read(_BLOCK):
                held += len(block)
                if held > SHARD_BYTES:
                    raise InputError(f"{self.path}: is larger than {SHARD_BYTES >> 30} GiB; slice it first")
                local.write(block)

    def _asked(self, ask: Callable[[], T]) -> T:
        return _asked(str(self.path), ask)


def shards(url: str, most: int) -> tuple[list[Shard], bool]:
    """The files that a URL, a folder's or a pattern (``*?[``) leads to, at most ``most``; and whether there are more.

    Raises InputError where the store does, and where there are none.
    """
    fs, path = _system(url)
    listed = _asked(url, lambda: _listed(fs, path))
    files = sorted((name, info) for name, info in islice(listed.items(), most + 1) if info.get("type") == "file")
    if not files:
        raise InputError(f"{url}: there is no such file, and no folder with files in it")
    return [Shard(fs.unstrip_protocol(name), info.get("size")) for name, info in files[:most]], len(listed) > most


def heads(files: list[Shard], look: Callable[[Shard], T]) -> list[T]:
    """What ``look`` says of each, many at once."""
    with ThreadPoolExecutor(_LOOKS) as executor:
        return list(executor.map(look, files))


def _listed(fs: Any, path: str) -> dict[str, dict[str, Any]]:
    if any(sign in path for sign in "*?["):
        return dict(fs.glob(path, detail=True))
    return dict(fs.find(path, maxdepth=_DEPTH, detail=True))


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise InputError(f"{url}: reading from there needs fsspec, which is not installed: {_INSTALL}") from error
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise InputError(f"{url}: {str(error).rstrip('.')}: {_INSTALL}") from error
    except Exception as error:
        raise InputError(f"{url}: cannot be opened: {_words(error)}") from error
    return fs, path


def _asked(url: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{url}: there is no such file") from error
    except Exception as error:
        raise InputError(f"{url}: cannot be read: {_words(error)}") from error


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
