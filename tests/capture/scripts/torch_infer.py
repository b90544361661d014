"""PyTorch inference: no optimizer, two models per iteration. usage: torch_infer.py STEPS"""

import sys

import torch

encoder, decoder = torch.nn.Linear(32, 32).eval(), torch.nn.Linear(32, 8).eval()
with torch.no_grad():
    for _ in range(int(sys.argv[1])):
        decoder(torch.relu(encoder(torch.randn(16, 32))))
print("end")
