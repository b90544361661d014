"""Validation, sampling and saving between stretches of training."""

import torch


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256))


def train_epoch(model, optimizer, steps):
    model.train()
    for _ in range(steps):
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(model, batches):
    model.eval()
    total = 0.0
    for _ in range(batches):
        x = torch.randn(256, 256)
        total += float((model(x) - x).square().mean())
    return total / batches


@torch.no_grad()
def sample(model, length):
    model.eval()
    x = torch.randn(1, 256)
    for _ in range(length):
        x = model(x)
    return x


def save(model, path):
    torch.save(model.state_dict(), path)


def main():
    torch.set_num_threads(1)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(20):
        train_epoch(model, optimizer, 6)
        print(epoch, validate(model, 40))
        sample(model, 100)
        save(model, "model.pt")


if __name__ == "__main__":
    main()
