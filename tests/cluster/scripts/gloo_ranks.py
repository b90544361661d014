"""Train on two ranks or more over gloo; one rank's dataset takes longer. Usage: gloo_ranks.py FOLDER LATE_RANK MS."""

import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

folder, late, ms = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)


class Samples(torch.utils.data.Dataset):
    """Slow to read on one rank."""

    def __len__(self):
        return 32

    def __getitem__(self, index):
        if rank == late:
            time.sleep(ms / 1000)
        return torch.ones(64)


model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Samples(), batch_size=2)
steps = schedule(wait=1, warmup=1, active=8, repeat=1)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=steps,
    record_shapes=True,
    on_trace_ready=lambda done: done.export_chrome_trace(f"{folder}/worker_{rank}.pt.trace.json"),
) as profiler:
    for number, batch in enumerate(loader):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        profiler.step()
        if number == 11:
            break
dist.barrier()
dist.destroy_process_group()
