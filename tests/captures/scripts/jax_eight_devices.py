"""A JAX training loop on eight forced CPU devices, profiled; what was planted in it goes into ``truth.json``.

usage: jax_eight_devices.py OUT PYTHON_TRACER_LEVEL ANNOTATION
"""

import json
import os
import sys
import time
from pathlib import Path

OUT, LEVEL, ANNOTATION = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
DEVICES = 8
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

STEPS = range(100, 112)
RECOMPILED = 105
BLOCKING = [number for number in STEPS if number % 3 == 2]
"""Steps that wait and read the loss: the next one begins with every device idle."""
BARE = 108
"""A step after a blocking one that also sleeps under no annotation."""
LOAD_S, BARE_S = 0.020, 0.030
WIDTH, ROWS, OTHER_ROWS = 128, 256, 512


@jax.jit
def train_step(weights, batch):
    def loss(weights):
        with jax.named_scope("forward"):
            return jnp.mean((jnp.tanh(batch @ weights) @ weights.T - batch) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.01 * gradient, value


mesh = Mesh(np.array(jax.devices()), ("data",))
everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
host_batches = {rows: np.random.default_rng(0).random((rows, WIDTH), np.float32) for rows in (ROWS, OTHER_ROWS)}
weights = jax.device_put(jnp.ones((WIDTH, WIDTH)), everywhere)
batch = jax.device_put(host_batches[ROWS], split)
weights, value = jax.block_until_ready(train_step(weights, batch))

options = jax.profiler.ProfileOptions()
options.python_tracer_level = LEVEL
steps = {}
with jax.profiler.trace(OUT, profiler_options=options):
    for number in STEPS:
        rows = OTHER_ROWS if number == RECOMPILED else ROWS
        before = time.perf_counter_ns()
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            began = time.perf_counter_ns()
            with jax.profiler.TraceAnnotation(ANNOTATION, rows=rows):
                time.sleep(LOAD_S)
            loaded = time.perf_counter_ns()
            if number == BARE:
                time.sleep(BARE_S)
            batch = jax.device_put(host_batches[rows], split)
            called = time.perf_counter_ns()
            weights, value = train_step(weights, batch)
            returned = time.perf_counter_ns()
            waited = time.perf_counter_ns()
            if number in BLOCKING:
                weights = jax.block_until_ready(weights)  # On every device; the loss alone is read from one.
                float(value)
            ended = time.perf_counter_ns()
        steps[number] = {
            "step_ns": [ended - began, time.perf_counter_ns() - before],
            "load_ns": [int(LOAD_S * 1e9), loaded - began],
            "call_ns": returned - called,
            "blocked_ns": ended - waited,
        }
    jax.block_until_ready(weights)


def ops(rows: int) -> dict[str, str]:
    """Instruction -> opcode of what one device runs in one step, from the compiled program's text."""
    batch = jax.device_put(host_batches[rows], split)
    text = train_step.lower(weights, batch).compile().as_text()
    entry = text[text.index("ENTRY") :].splitlines()[1:]
    found = {}
    for line in entry[: entry.index("}")]:
        name, _, rest = line.strip().removeprefix("ROOT ").partition(" = ")
        shaped = rest[rest.index(")") + 2 :] if rest.startswith("(") else rest.partition(" ")[2]
        found[name.removeprefix("%")] = shaped.partition("(")[0]
    return found


truth = {
    "devices": DEVICES,
    "steps": steps,
    "recompiled": RECOMPILED,
    "blocking": BLOCKING,
    "bare": {"step": BARE, "ns": int(BARE_S * 1e9)},
    "ops": {number: ops(OTHER_ROWS if number == RECOMPILED else ROWS) for number in STEPS},
    "batch": {
        "usual": f"f32[{ROWS // DEVICES},{WIDTH}]",
        "other": f"f32[{OTHER_ROWS // DEVICES},{WIDTH}]",
        "weights": f"f32[{WIDTH},{WIDTH}]",
    },
    "version": jax.__version__,
}
(OUT / "truth.json").write_text(json.dumps(truth))
