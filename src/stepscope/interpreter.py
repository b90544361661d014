"""How another interpreter of this one's kind is started."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_HOME = str(Path(__file__).resolve().parents[1])
"""Where stepscope itself lies."""
OWN_FOLDER = os.path.abspath(os.sep)
"""Where such an interpreter stands: what is looked for without a folder (modules, libraries, settings) is looked for
there, and none but the system's administrator writes there."""
_PLACES = (
    "STEPSCOPE_CACHE", "NUMBA_CACHE_DIR", "TMPDIR", "TEMP", "TMP", "DASK_CONFIG", "DASK_TEMPORARY_DIRECTORY",
    "FSSPEC_CONFIG_DIR", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE",
    "GOOGLE_APPLICATION_CREDENTIALS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
"""Variables that name a file or folder, which may be said from where the user stands."""


def own_environment() -> dict[str, str]:
    """The environment of an interpreter that finds what this one does, but for what lies where the user stands.

    Neither it nor those that it starts find modules in the folder they are started in, or beside the script that asks
    for them: whoever reads a folder of profiles stands in it, and what lies there is not to be run.
    """
    return os.environ | places() | {"PYTHONPATH": os.pathsep.join(safe_path()), "PYTHONSAFEPATH": "1"}


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy starts a thread per core for products of matrices, of which stepscope makes none: with two cores they take a
tenth of the time of a small profile."""


def import_numpy_alone() -> None:
    """Import numpy without its threads, in a process of stepscope's own; what that starts (a job) is not told so."""
    if "numpy" in sys.modules:
        return
    given = {name: value for name in ONE_THREAD if (value := os.environ.get(name)) is not None}
    os.environ.update(ONE_THREAD | given)
    try:
        import_module("numpy")
    finally:
        for name in ONE_THREAD.keys() - given.keys():
            del os.environ[name]


def places() -> dict[str, str]:
    """Those variables that name a place from where the user stands, naming it from the root."""
    here = _standing()
    told = {name: os.environ.get(name, "") for name in _PLACES} if here is not None else {}
    return {name: os.path.join(here or "", place) for name, place in told.items() if place and not os.path.isabs(place)}


def safe_path() -> list[str]:
    """The folders in which this interpreter finds modules, without those that Python adds for the user's program."""
    unsafe = {os.path.realpath(folder) for folder in (_standing(), _of_script()) if folder} - {_HOME}
    return [entry for entry in sys.path if os.path.isabs(entry) and os.path.realpath(entry) not in unsafe]


def _standing() -> str | None:
    with suppress(OSError):  # A folder that is gone.
        return os.getcwd()
    return None


def _of_script() -> str | None:
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None)
    if script is None or getattr(main, "__spec__", None) is not None:  # With -m it is a module, and may be installed.
        return None
    return os.path.dirname(os.path.abspath(str(script)))
