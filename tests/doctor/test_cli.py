"""``stepscope doctor``: statuses, the document, and names that are not to be trusted."""

from __future__ import annotations

import json
import subprocess
import sys

from stepscope import cli
from stepscope.doctor import Case, examine
from stepscope.doctor.document import SCHEMA, document
from stepscope.doctor.outcome import problem
from stepscope.doctor.profiles import Examined
from stepscope.doctor.terminal import render
from tests.doctor.machines import PROBE, Machine, packages, with_nvidia
from tests.support import planted_file


def test_status_and_json_of_this_machine(capsys, tmp_path):
    path = tmp_path / "profile.json"
    path.write_bytes(planted_file("healthy"))
    status = cli.main(["doctor", "--format", "json", str(path)])
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == SCHEMA
    assert status == (1 if made["problems"] else 0)
    assert [one["path"] for one in made["profiles"]] == [str(path)]
    assert {item["state"] for item in made["checks"]} <= {"ok", "warning", "problem", "not_applicable"}


def test_a_problem_gives_status_1(capsys, tmp_path):
    path = tmp_path / "profile.json"
    path.write_bytes(b"not a profile")
    assert cli.main(["doctor", str(path)]) == 1
    out = capsys.readouterr().out
    assert "It is text, not a profile." in out
    assert "cure:" in out


def test_another_python_is_asked(capsys):
    assert cli.main(["doctor", "--python", sys.executable, "--format", "json"]) in (0, 1)
    checks = {item["check"]: item for item in json.loads(capsys.readouterr().out)["checks"]}
    assert sys.executable in checks["environment"]["sentence"]
    assert cli.main(["doctor", "--python", "/no/such/python"]) == 1
    assert "cannot be started" in capsys.readouterr().out


def test_text_puts_problems_first_and_folds_what_does_not_apply():
    machine = with_nvidia(restricted=True, scripts={PROBE: packages(torch="2.8.0+cpu")})
    made = document(examine(Case(machine)), [])
    assert (made["problems"], made["warnings"]) == (1, 1)
    text = render(made, width=80)
    lines = text.splitlines()
    assert lines[0] == "1 problem and 1 warning with capturing or reading profiles here."
    states = [line.split()[0] for line in lines if line.startswith(("problem", "warning", "ok"))]
    assert states == sorted(states, key=["problem", "warning", "ok"].index)
    assert "not applicable here:" in text
    assert "There is no AMD GPU" not in text
    assert "There is no AMD GPU" in " ".join(render(made, width=200, verbose=True).split())
    assert max(map(len, lines)) <= 80


def test_untrusted_names_are_escaped():
    outcome = problem("It is \x1b]0;x\x07.", "See [red].")
    made = document([], [Examined("a\x1b[31m[bold]b\n.json", (("unreadable", outcome),))])
    text = render(made, width=100)
    assert "\x1b" not in text
    assert "[bold]" in text
    assert "[red]" in text


def test_it_works_where_packages_are_missing(tmp_path):
    """No numpy, polars or rich: the examination still runs, and says which package is not there."""
    for name in ("numpy", "polars", "rich", "numba"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')")
    code = "import sys; from stepscope import cli; sys.exit(cli.main(['doctor']))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    made = json.loads(done.stdout)
    assert done.returncode in (0, 1)
    assert len(made["checks"]) == len(examine(Case(Machine())))
