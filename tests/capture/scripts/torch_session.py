"""The session API in a PyTorch loop; what it says and finds goes to stdout. usage: torch_session.py OUT"""

import json
import sys
import time

import torch

import stepscope

out = sys.argv[1]
optimizer = torch.optim.SGD((model := torch.nn.Linear(64, 64)).parameters(), lr=0.01)
ready = []


@stepscope.annotate("train_step")
def train_step():
    optimizer.zero_grad()
    with stepscope.annotate("load_batch", rows=32):
        time.sleep(0.002)
        batch = torch.ones(32, 64)
    model(batch).sum().backward()
    optimizer.step()


with stepscope.profile(
    out, schedule=stepscope.schedule(wait=2, warmup=1, active=3, repeat=2), on_trace_ready=ready.append
) as session:
    for number in range(100, 120):
        train_step()
        stepscope.step(number)
    with stepscope.profile(out) as nested:
        train_step()
with torch.profiler.profile(), stepscope.profile(out) as foreign:
    train_step()
with stepscope.profile(out, schedule=stepscope.schedule(wait=50)) as too_short:
    train_step()
    stepscope.step()
print(json.dumps({
    "files": session.files, "ready": ready, "declined": [session.declined, nested.declined, foreign.declined],
    "too_short": too_short.files,
}))  # fmt: skip
