"""A PyTorch loop without autograd (whose threads no child has) that makes a child in every step; each must end.

usage: torch_forks.py fork|spawn|forkserver|multiprocessing|subprocess|loader STEPS
"""

import multiprocessing
import os
import subprocess
import sys
import time

import torch

WAIT_S = 60
STATUS = 3
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])


def work():
    with torch.no_grad():
        model(torch.randn(8, 64))


def forked():
    """A child that ends as a program does, with its own status."""
    pid = os.fork()
    if pid == 0:
        work()
        print("child", end=" ")
        sys.exit(STATUS)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    return "it did not end"


def process(method):
    child = multiprocessing.get_context(method).Process(target=work)
    child.start()
    child.join(WAIT_S)
    return child.exitcode


def loader():
    data = torch.utils.data.DataLoader(torch.arange(8), batch_size=2, num_workers=1)
    return len(list(data))


MADE = {
    "fork": (forked, STATUS),
    "multiprocessing": (lambda: process("fork"), 0),
    "spawn": (lambda: process("spawn"), 0),
    "forkserver": (lambda: process("forkserver"), 0),
    "subprocess": (lambda: subprocess.run([sys.executable, "-c", "pass"], timeout=WAIT_S).returncode, 0),
    "loader": (loader, 4),
}

if __name__ == "__main__":
    kind, steps = sys.argv[1], int(sys.argv[2])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    make, expected = MADE[kind]
    for number in range(steps):
        work()
        optimizer.step()
        found = make()
        if found != expected:
            sys.exit(f"step {number}: {found}")
    print("done")
