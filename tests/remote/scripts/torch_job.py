"""A PyTorch job that can be recorded; it runs until its standard input ends.

usage: torch_job.py KIND PYTHON [arguments of start_server as JSON]
"""

import json
import os
import sys
import threading
import time

import torch

import stepscope

kind, python = sys.argv[1:3]
heavy = {"numpy", "polars", "numba", "grpc"} & set(sys.modules)
server = stepscope.start_server(python=python, **json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}"))
heavy = sorted({"polars", "numba", "grpc"} & (set(sys.modules) - heavy))
print(json.dumps({"port": server.port, "declined": server.declined, "heavy": heavy}), flush=True)
del server

# Not sys.stdin, whose lock forked workers would wait for.
reader = threading.Thread(target=os.read, args=(0, 1), daemon=True)
reader.start()
optimizer = torch.optim.SGD((model := torch.nn.Linear(64, 64)).parameters(), lr=0.01)
own = None


def train():
    optimizer.zero_grad()
    with stepscope.annotate("load_batch"):
        time.sleep(0.004)
    model(torch.ones(32, 64)).sum().backward()
    optimizer.step()


def infer():
    time.sleep(0.004)
    model(torch.ones(32, 64))


def explicit():
    infer()
    stepscope.step()


def slow():
    for _ in range(300):
        infer()
    optimizer.step()


def workers():
    global own
    own = own or iter(torch.utils.data.DataLoader(torch.ones(100_000, 64), num_workers=1))
    model(next(own)).sum()
    train()


def profiled():
    global own
    if own is None:
        own = torch.profiler.profile()
        own.start()
    train()


while reader.is_alive():
    globals()[kind]()
print(json.dumps({"end": True}), flush=True)
