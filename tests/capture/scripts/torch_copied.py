"""PyTorch inference with models that are copied and saved while they are watched."""

import copy
import io
import sys

import torch

model = torch.nn.Linear(64, 64).eval()
with torch.no_grad():
    for number in range(60):
        model(torch.ones(8, 64))
        if number == 2:
            assert model._forward_pre_hooks, "nothing watches it"
            averaged = copy.deepcopy(model)
            saved = io.BytesIO()
            torch.save(model, saved)
            saved.seek(0)
            for other in (averaged, torch.load(saved, weights_only=False)):
                assert torch.equal(other(torch.ones(8, 64)), model(torch.ones(8, 64)))
                assert "stepscope" not in repr(other._forward_pre_hooks)
print("end", "stepscope" in sys.modules)
