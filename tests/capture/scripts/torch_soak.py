"""10,000 small steps, and the memory of the process on the way. usage: torch_soak.py plain|idle|cycles OUT"""

import gc
import json
import os
import sys

import torch

import stepscope

kind, out = sys.argv[1:]
STEPS, EVERY = 10_000, 2_000
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.ones(4, 8)


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def loop():
    found = []
    for number in range(STEPS):
        with stepscope.annotate("train_step", number=number):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        if kind != "plain":
            stepscope.step(number)
        if number % EVERY == EVERY - 1:
            found.append(resident())
    return found


schedules = {
    "idle": stepscope.schedule(wait=10 * STEPS),
    "cycles": stepscope.schedule(wait=EVERY // 2 - 6, warmup=1, active=5, repeat=0),
}
if kind == "plain":
    print(json.dumps({"resident": loop(), "files": 0}))
else:
    with stepscope.profile(out, schedule=schedules[kind], stacks=False) as session:
        found = loop()
    print(json.dumps({"resident": found, "files": len(session.files)}))
