"""What lies in folders of others: a second user who renames, links and races gains nothing."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stepscope.remote.handed import Handed, _opened
from stepscope.remote.ipc_fabric import Fabric

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="recorded in this way on Linux only")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user, whom only root can be")
NOBODY = 65534

# Puts a link to the victim in place of whatever appears in the folder, as fast as it can.
RACER = """
import os, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
folder, victim, prefix = sys.argv[1:]
print("ready", flush=True)
count = 0
while True:
    for name in os.listdir(folder):
        if not name.startswith(prefix) or os.path.islink(os.path.join(folder, name)):
            continue
        try:
            count += 1
            os.rename(os.path.join(folder, name), os.path.join(folder, f"aside-{count}"))
            os.symlink(victim, os.path.join(folder, name))
        except OSError:
            pass
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user's."""
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


@pytest.fixture
def race(theirs: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Path]]:
    """Their folder, and the victim, while they race for names of a prefix."""
    victim = theirs.parent / "victim"
    victim.mkdir(mode=0o700)
    (victim / "kept").touch(mode=0o600)
    target = victim if request.param == "stepscope-" else victim / "kept"
    command = [sys.executable, "-c", RACER, str(theirs), str(target), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as racer:
        assert racer.stdout is not None
        racer.stdout.readline()
        yield theirs, victim
        racer.kill()


@as_root
@pytest.mark.parametrize("race", ["stepscope-"], indirect=True)
def test_a_folder_is_given_to_nobody_else(race: tuple[Path, Path]) -> None:
    theirs, victim = race
    given = 0
    for _ in range(1000):
        with suppress(OSError):
            handed = Handed(str(theirs), "stepscope-")
            given += 1
            with suppress(OSError):
                handed.write("boot.py", b"")
                handed.give(NOBODY)
                handed.names()
            handed.remove()
    assert given
    assert victim.stat().st_uid == 0
    assert [(path.name, path.stat().st_uid) for path in victim.iterdir()] == [("kept", 0)]


@as_root
@pytest.mark.parametrize("race", ["dynolog"], indirect=True)
def test_a_socket_in_their_folder_opens_nothing_else(race: tuple[Path, Path]) -> None:
    theirs, victim = race
    for _ in range(500):
        with suppress(OSError), Fabric(str(theirs)):
            pass
        with suppress(OSError):
            (theirs / "dynolog").unlink()
    kept = (victim / "kept").stat()
    assert stat.S_IMODE(kept.st_mode) == 0o600
    assert stat.S_IMODE(victim.stat().st_mode) == 0o700


def test_the_socket_is_everyones_and_only_it_is_removed(tmp_path: Path) -> None:
    with Fabric(str(tmp_path)):
        assert stat.S_IMODE((tmp_path / "dynolog").stat().st_mode) == 0o666
    assert not (tmp_path / "dynolog").exists()
    with Fabric(str(tmp_path)):
        (tmp_path / "dynolog").unlink()
        (tmp_path / "dynolog").write_text("another's")
    assert (tmp_path / "dynolog").read_text() == "another's"
    with pytest.raises(OSError), Fabric(str(tmp_path)):
        pass
    assert (tmp_path / "dynolog").read_text() == "another's"


def test_a_daemon_that_has_gone_leaves_a_name_that_is_taken_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as gone:
        gone.bind(str(tmp_path / "dynolog"))
    with Fabric(str(tmp_path)):
        pass


@pytest.mark.parametrize("instead", ["link", "open to others", "in use"])
def test_what_lies_in_the_stead_of_the_folder_made_is_refused(instead: str, tmp_path: Path) -> None:
    """Each of the three by itself: links to an empty folder of ours, one that others may enter, one that holds more."""
    ours = tmp_path / ("aside" if instead == "link" else "made")
    ours.mkdir(mode=0o755 if instead == "open to others" else 0o700)
    if instead == "link":
        (tmp_path / "made").symlink_to(ours)
    if instead == "in use":
        (ours / "kept").touch()
    parent = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(OSError):
            _opened(parent, "made")
    finally:
        os.close(parent)


def test_only_a_plain_file_of_the_owner_is_opened(tmp_path: Path) -> None:
    handed = Handed(str(tmp_path), "stepscope-")
    inside = tmp_path / handed.name
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (inside / "link.json").symlink_to(secret)
    (tmp_path / "other").write_text("other")
    os.link(tmp_path / "other", inside / "hard.json")
    os.mkfifo(inside / "pipe.json")
    (inside / "folder.json").mkdir()
    (inside / "plain.json").write_text("{}")
    for name in ("link.json", "hard.json", "pipe.json", "folder.json", "none.json"):
        with pytest.raises(OSError):
            handed.open(name)
    with handed.open("plain.json") as file:
        assert file.read() == b"{}"
    (inside / "boot.py").symlink_to(tmp_path / "made")
    with pytest.raises(FileExistsError):
        handed.write("boot.py", b"x")
    inside.rename(tmp_path / "aside")  # It goes on by its descriptor.
    with handed.open("plain.json") as file:
        assert file.read() == b"{}"
    handed.remove()
    assert secret.read_text() == "secret"
    assert not (tmp_path / "made").exists()


@as_root
def test_a_file_of_another_user_is_not_taken(theirs: Path) -> None:
    handed = Handed(str(theirs), "stepscope-")
    handed.give(NOBODY)
    (theirs / handed.name / "roots.json").write_text("{}")
    with pytest.raises(PermissionError):
        handed.open("roots.json")
    os.chown(theirs / handed.name / "roots.json", NOBODY, NOBODY)
    handed.open("roots.json").close()
    handed.remove()
    assert list(theirs.iterdir()) == []
