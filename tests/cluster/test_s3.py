"""Ranks in a bucket of a server that speaks S3, read by Dask's workers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepscope
from stepscope.errors import InputError
from stepscope.jobs import Job
from tests.kit import example_ranks

distributed = pytest.importorskip("distributed")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs and moto[s3] with flask and flask-cors")
pytest.importorskip("moto.server", reason="needs s3fs and moto[s3] with flask and flask-cors")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Those of the libraries that are used here alone.
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The server's address, which every S3 client of this process and its children asks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in (told | {"AWS_DEFAULT_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    with (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(300):
                with socket.socket() as asking:
                    if asking.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield told["AWS_ENDPOINT_URL"]
        finally:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("server")
def test_a_bucket_is_one_job() -> None:
    fs = s3fs.S3FileSystem(skip_instance_cache=True)
    fs.mkdir("profiles")
    for path in example_ranks.FOLDER.iterdir():
        fs.pipe(f"profiles/run7/{path.name}", path.read_bytes())
    fs.pipe("profiles/run7/rank4.json", b'{"traceEvents": [\x00\x00')
    job = stepscope.open("s3://profiles/run7", scheduler="local", workers=2)
    assert isinstance(job, Job)
    assert job.document()["analyses"]["ranks"]["stragglers"][0]["rank"] == example_ranks.LATE
    assert [one.path for one in job.facts.failed] == ["s3://profiles/run7/rank4.json"]
    with pytest.raises(InputError, match="s3://elsewhere/run7: there is no such file, and no folder with files in it"):
        stepscope.open("s3://elsewhere/run7")


def test_a_store_that_lets_nobody_in_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(InputError, match=r"s3://profiles/run7: cannot be read: .*credentials"):
        stepscope.open("s3://profiles/run7")
    s3fs.S3FileSystem.clear_instance_cache()
