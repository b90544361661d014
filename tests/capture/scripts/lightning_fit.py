"""Lightning's fit on 48 batches, with our callback where OUT is given.

usage: lightning_fit.py accumulating|adversarial [OUT]
*accumulating*: two batches per step; *adversarial*: two optimizers step in every batch.
"""

import json
import sys

import lightning.pytorch as pl
import torch

kind, out = sys.argv[1], sys.argv[2:]


class Accumulating(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model, self.other = torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)

    def training_step(self, batch, _):
        return self.model(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.01)


class Adversarial(Accumulating):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, _):
        for optimizer, model in zip(self.optimizers(), (self.model, self.other), strict=True):
            optimizer.zero_grad()
            self.manual_backward(model(batch[0]).sum())
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(model.parameters(), lr=0.01) for model in (self.model, self.other)]


callbacks = []
if out:
    import stepscope
    from stepscope.integrations.lightning import ProfileCallback

    callbacks = [ProfileCallback(out[0], schedule=stepscope.schedule(wait=4, active=4), stacks=False)]
trainer = pl.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, accumulate_grad_batches=2 if kind == "accumulating" else 1, callbacks=callbacks,
)  # fmt: skip
data = torch.utils.data.TensorDataset(torch.randn(4 * 48, 16))
trainer.fit({"accumulating": Accumulating, "adversarial": Adversarial}[kind](), torch.utils.data.DataLoader(data, 4))
print("end", json.dumps([[each.recording.session.files, each.recording.session.declined] for each in callbacks]))
