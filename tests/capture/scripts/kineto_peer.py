"""A process that speaks to a daemon as PyTorch's Kineto does (2.13), asking ten times as often.

usage: kineto_peer.py profile|empty|damaged|dies|busy|registers|launches
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time

HEADER = struct.Struct("=Q32s")
kind, folder = sys.argv[1], os.environ["KINETO_IPC_SOCKET_DIR"]
if kind == "launches":
    sys.exit(subprocess.call([sys.executable, __file__, "profile"]))
ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ours.bind(os.path.join(folder, f"dynoconfigclient{os.getpid()}"))
ours.settimeout(0.5)


def asked(type_, body):
    try:
        ours.sendto(HEADER.pack(len(body), type_) + body, os.path.join(folder, "dynolog"))
        answer = ours.recv(1 << 16)
    except OSError:
        time.sleep(0.1)
        return None
    size, answered = HEADER.unpack_from(answer)
    assert answered.rstrip(b"\0") == type_
    assert size == len(answer) - HEADER.size
    return answer[HEADER.size :]


def record(configuration):
    options = dict(line.split("=", 1) for line in configuration.decode().splitlines())
    path = options["ACTIVITIES_LOG_FILE"].replace(".json", f"_{os.getpid()}.json")
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    profile = {"schemaVersion": 1, "configuration": options, "traceEvents": [] if kind == "empty" else [event]}
    text = json.dumps(profile)
    with open(path + ".tmp", "w") as file:
        file.write(text[:10] + "}" if kind == "damaged" else text)
    os.rename(path + ".tmp", path)


parent = os.getppid()
print("ready", flush=True)
while os.getppid() == parent:  # Whoever launched it is ended by the test, and it with him.
    if kind == "registers":
        registered = asked(b"ctxt", struct.pack("=iiq", 0, os.getpid(), 0))
        kind = "profile" if registered == struct.pack("=i", 1) else kind
        continue
    family = (os.getpid(), os.getppid())
    got = asked(b"req", struct.pack("=iiq2i", 1 if kind == "busy" else 3, 2, 0, *family))
    if got:
        if kind == "dies":
            sys.exit(0)
        record(got)
    time.sleep(0.05)
