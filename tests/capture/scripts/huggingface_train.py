"""Hugging Face's Trainer on 48 batches, two per step, with our callback where OUT is given.

usage: huggingface_train.py [OUT]
"""

import json
import sys
import tempfile

import torch
from transformers import Trainer, TrainingArguments

out = sys.argv[1:]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        return {"loss": self.linear(x).sum()}


callbacks = []
if out:
    import stepscope
    from stepscope.integrations.huggingface import ProfileCallback

    callbacks = [ProfileCallback(out[0], schedule=stepscope.schedule(wait=4, active=4), stacks=False)]
arguments = TrainingArguments(
    tempfile.gettempdir(), per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=1,
    report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True,
    remove_unused_columns=False,
)  # fmt: skip
data = [{"x": torch.randn(16)} for _ in range(4 * 48)]
Trainer(Model(), arguments, train_dataset=data, callbacks=callbacks).train()
print("end", json.dumps([[each.recording.session.files, each.recording.session.declined] for each in callbacks]))
