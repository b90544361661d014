"""A Lightning callback that reads a number per parameter, after every batch.

lightning_callback.py            in every step
lightning_callback.py --seldom   every hundredth
"""

import sys
import time

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regression(L.LightningModule):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.Linear(128, 128) for _ in range(20)]
        self.model = torch.nn.Sequential(*layers)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return (self.model(x) - x).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Norms(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx == 0:
            self.begun = time.perf_counter()
        elif batch_idx % 20 == 0:
            print(f"step {batch_idx}: step_ms {(time.perf_counter() - self.begun) / 20 * 1e3:.3f}")
            self.begun = time.perf_counter()
        if "--seldom" in sys.argv and batch_idx % 100:
            return
        self.norms = []
        for parameter in module.parameters():
            self.norms.append(parameter.detach().norm().item())  # the cause


def main():
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(torch.randn(4096, 128)), batch_size=64)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[Norms()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), loader)


if __name__ == "__main__":
    main()
