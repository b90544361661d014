"""Modules become one classic script; what the assembler cannot carry over is refused, not dropped."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from stepscope.web.assemble import PAGE, WORKER, script, styles
from stepscope.web.bundle import bundle


def run(files: dict[str, str]) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = bundle("main.js", files.__getitem__)
    return subprocess.run([node, "-e", text], check=True, capture_output=True, text=True).stdout


def test_modules_run_once_in_the_order_of_their_imports() -> None:
    files = {
        "main.js": "import { a, twice as double } from './lib/a.js';\nimport { b } from './b.js';\n"
        "console.log(a, b, double(4));\n",
        "lib/a.js": "import { b } from '../b.js';\nconsole.log('a sees', b);\nexport const a = b + 1;\n"
        "export function twice(x) {\n  return 2 * x;\n}\n",
        "b.js": "console.log('b once');\nconst hidden = 6;\nexport const b = hidden;\nexport class Unused {}\n",
    }
    assert run(files) == "b once\na sees 6\n7 6 8\n"


def test_names_of_modules_do_not_meet() -> None:
    files = {
        "main.js": "import { value } from './a.js';\nconst own = 1;\nconsole.log(own, value);\n",
        "a.js": "const own = 2;\nexport const value = own;\n",
    }
    assert run(files) == "1 2\n"


@pytest.mark.parametrize(
    "line",
    [
        "export default 1;",
        "export let x = 1;",
        "export { x };",
        "import x from './b.js';",
        "import * as x from './b.js';",
        "import { x } from 'bare';",
        "import './b.js';",
        "import { x-y } from './b.js';",
    ],
)
def test_other_syntax_of_modules_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="does not know"):
        bundle("main.js", {"main.js": f"{line}\n", "b.js": ""}.__getitem__)


def test_a_circle_of_imports_is_refused() -> None:
    files = {"main.js": "import { a } from './a.js';\n", "a.js": "import { b } from './main.js';\n"}
    with pytest.raises(ValueError, match=r"main\.js -> a\.js -> main\.js"):
        bundle("main.js", files.__getitem__)


@pytest.mark.parametrize("entry", [PAGE, WORKER])
def test_what_ships_can_be_bundled(entry: str) -> None:
    text = script(entry)
    assert "\nimport " not in text
    assert "\nexport " not in text
    assert ":root" in styles()
