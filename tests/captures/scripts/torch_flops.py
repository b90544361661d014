"""A PyTorch model on the CPU, profiled with shapes; ``truth.json`` says what PyTorch's own counter counts.

usage: torch_flops.py OUT
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop, sdpa_flop_count

OUT = Path(sys.argv[1])
HEADS, TOKENS, WIDTH = 4, 64, 32


class Model(nn.Module):
    """One of each product and convolution. Groups stand where nothing is differentiated by the weight: the counter
    leaves them out there."""

    def __init__(self):
        super().__init__()
        self.strided = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.grouped = nn.Conv2d(8, 16, 3, groups=4, dilation=2, padding="same").requires_grad_(False)
        self.transposed = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.line = nn.Conv1d(WIDTH, 16, 3)
        self.first = nn.Linear(8, WIDTH)
        self.last = nn.Linear(WIDTH, 10)

    def forward(self, images):
        y = self.transposed(functional.relu(self.grouped(self.strided(images))))
        y = self.first(y.flatten(2).transpose(1, 2)[:, :TOKENS])
        q = y.view(len(y), TOKENS, HEADS, -1).transpose(1, 2)
        y = functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(len(y), TOKENS, WIDTH)
        weights = torch.softmax(y @ y.transpose(-1, -2), -1)
        y = torch.einsum("bij,bjd->bid", weights, y)
        mixed = torch.baddbmm(weights, y, y.transpose(1, 2))
        return self.last(y).sum() + self.line(y.transpose(1, 2)).mean() + mixed.mean()


OUT.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
torch.set_num_threads(1)
model, images = Model(), torch.randn(2, 3, 32, 32)
model(images).backward()
with FlopCounterMode(display=False) as counter:
    model(images).backward()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    model(images).backward()
profiler.export_chrome_trace(str(OUT / "trace.json.gz"))
# The counter does not know the CPU's attention; its formula does.
shape = (2, HEADS, TOKENS, WIDTH // HEADS)
flops = {str(op): count for op, count in counter.get_flop_counts()["Global"].items()}
flops["attention"] = sdpa_flop_count(shape, shape, shape) + sdpa_backward_flop(shape, shape, shape, shape)
(OUT / "truth.json").write_text(json.dumps({"flops": flops}))
