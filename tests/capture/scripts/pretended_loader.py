"""A loader that forks workers as PyTorch's does, in files named as PyTorch's are: prints what its workers told."""

import json
import multiprocessing  # noqa: F401  The parts below use it.
import sys
import time

sys.path.insert(0, sys.argv[1])
from stepscope.capture.worker_lines import WorkerLines

PARTS = {
    "torch/utils/data/dataloader.py": """
class Iterator:
    def __init__(self, dataset, seconds):
        start = multiprocessing.get_context("fork").Process
        self.workers = [start(target=_worker_loop, args=(dataset, seconds)) for _ in range(2)]
        for worker in self.workers:
            worker.start()
""",
    "torch/utils/data/_utils/worker.py": """
def _worker_loop(dataset, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        fetch(dataset)
        time.sleep(0.02)
""",
    "torch/utils/data/_utils/fetch.py": """
def fetch(dataset):
    return dataset[0]
""",
}
for name, text in PARTS.items():
    exec(compile(text, f"/site-packages/{name}", "exec"), globals())


class Numbers:
    def __getitem__(self, index: int) -> int:
        until, total = time.monotonic() + 0.06, 0
        while time.monotonic() < until:
            total += sum(range(2_000))  # the work
        return total


def main() -> None:
    lines = WorkerLines()
    lines.follow_forks()
    assert lines.told() is None
    kind, told = sys.argv[2], []
    for _ in range(2):
        if kind == "ends":  # Workers that begin and end within the window.
            lines.open()
            pool = Iterator(Numbers(), 0.6)  # noqa: F821
            for worker in pool.workers:
                worker.join()
        else:
            pool = Iterator(Numbers(), 1.2)  # noqa: F821
            lines.open()
            time.sleep(0.6)
        lines.close()
        told.append(lines.told())
        for worker in pool.workers:
            worker.join()
    lines.open()
    lines.close()
    print(json.dumps([*told, lines.told()]))


main()
