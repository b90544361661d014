"""PyTorch with a profiler of its own. usage: torch_own_profiler.py first|whole STEPS PATH"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

kind, steps, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
chosen = (
    {"schedule": schedule(wait=1, warmup=1, active=3, repeat=1), "on_trace_ready": tensorboard_trace_handler(path)}
    if kind == "first"
    else {}
)
with profile(activities=[ProfilerActivity.CPU], **chosen) as own:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(64, 64)).sum().backward()
        optimizer.step()
        own.step()
if kind == "whole":
    own.export_chrome_trace(path)
print("end")
