"""A PyTorch/XLA job with a profiler server, kept or dropped; runs until its standard input ends.

usage: torch_xla_job.py PORT kept|dropped
"""

import sys
import threading
import time

import torch
import torch_xla
import torch_xla.debug.profiler as xp

server = xp.start_server(int(sys.argv[1]))
if sys.argv[2] == "dropped":
    del server
reader = threading.Thread(target=sys.stdin.read, daemon=True)
batch = torch.ones(128, 128, device=torch_xla.device())
reader.start()
print("ready", flush=True)
number = 0
while reader.is_alive():
    with xp.StepTrace("train", step_num=number):
        time.sleep(0.004)
        result = (batch @ batch).sum()
    number += 1
