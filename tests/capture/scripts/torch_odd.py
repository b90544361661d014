"""A job that trains some steps and, on the way, does what jobs on clusters do: its first argument says which."""

import gc
import os
import resource
import shutil
import sys
import threading
import time

import torch

STEPS, AT = 120, 12


def daemonise():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.5)
            os._exit(0)
        os._exit(0)
    os.wait()


def endless_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def collects():
    gc.callbacks.append(lambda phase, info: sum(range(1000)))
    gc.set_threshold(50)


def recurse():
    sys.setrecursionlimit(20_000)

    def down(depth):
        return depth if depth == 0 else down(depth - 1)

    down(8_000)


def address_space():
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (4 << 30), taken + (4 << 30)))


def small_files():
    sys.dont_write_bytecode = True  # Python would keep half a compiled module, which no later process can read.
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))


def out_removed():
    if os.environ.get("ODD_OUT"):
        shutil.rmtree(os.environ["ODD_OUT"])


def other_user():
    os.setgid(65534)
    os.setuid(65534)


def changes_folder():
    os.chdir("/")


def exits():
    sys.exit(7)


def traced():
    sys.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)


def unhooked():
    sys.excepthook = lambda *_: os.write(1, b"own hook\n")
    raise RuntimeError("mine")


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.ones(64, 128)
    for step in range(STEPS):
        loss = (model(rows) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
        if step == AT:
            globals()[sys.argv[1]]()
    print("done", step, len([one for one in threading.enumerate() if not one.name.startswith("stepscope")]))


if __name__ == "__main__":
    main()
