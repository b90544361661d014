"""PyTorch loops that know nothing of stepscope.

usage: torch_loop.py plain|anew|adversarial|own_profiler|endless STEPS
"""

import sys
import time

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# PyTorch walks its hooks while they run: with another behind it, one that goes then ends the job.
register_optimizer_step_post_hook(lambda *_: None)
other = torch.optim.Adam([torch.nn.Parameter(torch.ones(4))])


def plain(_):
    optimizer.zero_grad()
    for _ in range(2):  # Gradients are accumulated.
        model(torch.randn(32, 64)).sum().backward()
    optimizer.step()


def anew(number):
    global optimizer
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    plain(number)


def adversarial(number):
    plain(number)
    other.param_groups[0]["params"][0].grad = torch.ones(4)
    other.step()


def own_profiler(number):
    if number == 9:
        own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        own.start()
    plain(number)
    if number == 9:
        own.stop()
        print(sum(event.name == "aten::addmm" for event in own.events()))


def endless(number):
    plain(number)
    for _ in range(3000):  # The first step that is recorded lasts until it no longer is, or half a minute.
        if not torch.autograd._profiler_enabled():
            break
        time.sleep(0.01)
        model(torch.randn(4, 64))


for number in range(steps):
    globals()[kind](number)
print("loss", round(float(model(torch.ones(1, 64)).sum()), 4), sys.stdin.read())
