"""Jobs with known truth: what costs their time, on which line, and the cures that can be followed.

A script in ``scripts/`` is what a user would write, imports nothing of ours, and prints ``step_ms 12.3`` once per epoch
(or at its end): the mean time of a step, of which the last counts. An argument turns it into the same job cured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Cure:
    """What a finding asks for, done: the same script with other arguments."""

    what: str
    arguments: tuple[str, ...]
    """``{workers}`` stands for the number that the finding's remedy names."""
    rule: str | None = None
    """Whose promise is followed; None: that of the job's cause."""
    option: str | None = None
    """Of a finding that promises several things the one that is followed, by a part of its title."""
    share: float = 1.0
    """How much of what the finding counts is taken away."""
    why_missed: str = ""
    """Why the promise does not hold, where it is known not to."""


@dataclass(frozen=True)
class Job:
    """A script, and what is to be said of it."""

    script: str
    cause: str | None
    """The rule that must be the first of the plan; None where that is left open."""
    lines: tuple[str, ...] = ()
    """Texts of which each is in one line of the script: the cause's place must name one of these lines."""
    environment: str = "torch"
    """A name of ``tests/captures/environments.py``."""
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Of ``stepscope run``."""
    launcher: tuple[str, ...] = ()
    """What runs the script, as arguments of Python (``-m torch.distributed.run``)."""
    status: int = 0
    """The exit status of the job, and so of ``stepscope run``."""
    without: tuple[str, ...] = ()
    """Rules that must have no finding: following them would cost more than it gains."""
    cost_share: tuple[float, float] = (0.0, 1.0)
    """Between which shares of the step the cause's cost lies."""
    cures: tuple[Cure, ...] = ()
    alone: bool = False
    """Whether it is short Python that is told of: with other work beside it too few looks fall into it."""
    not_yet: tuple[Literal["cause", "line", "cost", "cures"], ...] = ()
    """What is known not to hold."""


_AT_ONCE = "a batch made at once"
JOBS = {
    "slow_dataset": Job(
        "slow_dataset.py",
        "input_bound",
        ("# the cause",),
        cost_share=(0.85, 1.0),
        cures=(
            Cure("as many workers as the finding says", ("--workers", "{workers}")),
            Cure("an augment that does an eighth", ("--cheaper",), option="cheaper", share=7 / 8),
        ),
    ),
    "late_workers": Job(
        "slow_dataset.py",
        "input_bound",
        ("# the cause",),
        arguments=("--workers", "2"),
        cost_share=(0.4, 1.0),
        cures=(Cure("an augment that does an eighth", ("--cheaper",), share=7 / 8),),
    ),
    "remote_data": Job(
        "remote_data.py",
        "input_bound",
        ("# the cause",),
        cost_share=(0.4, 1.0),
        cures=(Cure("as many workers as the finding says", ("--workers", "{workers}")),),
    ),
    "workers_every_epoch": Job(
        "workers_every_epoch.py",
        "worker_starts",
        ("# the cause",),
        cost_share=(0.4, 1.0),
        cures=(Cure("workers that stay", ("--persistent",)),),
    ),
    "generator_input": Job(
        "generator_input.py",
        "input_bound",
        ("# the cause", "# and what calls it"),
        cost_share=(0.15, 0.7),
        cures=(Cure("a worker that makes them ahead", ("--ahead",), option="the batches"),),
    ),
    "iterator_input": Job(
        "iterator_input.py",
        "input_bound",
        cost_share=(0.4, 1.0),
        cures=(Cure(_AT_ONCE, ("--whole",)),),
    ),
    "get_batch": Job(
        "get_batch.py",
        "input_bound",
        cost_share=(0.15, 0.7),
        cures=(Cure(_AT_ONCE, ("--whole",)),),
    ),
    "stacked_input": Job(
        "stacked_input.py",
        "input_bound",
        cost_share=(0.3, 1.0),
        cures=(Cure("all images at once", ("--whole",)),),
    ),
    "lightning_callback": Job(
        "lightning_callback.py",
        "callback_time",
        ("# the cause",),
        environment="integrations",
        cost_share=(0.03, 0.4),
        cures=(Cure("the numbers read every hundredth step", ("--seldom",), share=0.99),),
    ),
    "read_numbers": Job(
        "read_numbers.py",
        "python_overhead",
        ("# the cause",),
        cost_share=(0.2, 0.8),
        cures=(Cure("the numbers read every hundredth step", ("--seldom",), share=0.99),),
        alone=True,
    ),
    "pair_loss": Job(
        "pair_loss.py",
        "python_overhead",
        ("# the cause", "# and with it", "# and that"),
        cost_share=(0.15, 0.6),
        cures=(Cure("all pairs at once", ("--whole",)),),
        alone=True,
    ),
    "module_loop": Job(
        "module_loop.py",
        "python_overhead",
        ("# the cause",),
        cost_share=(0.15, 0.6),
        cures=(Cure("all clouds at once", ("--whole",)),),
        alone=True,
    ),
    "adam_loop": Job(
        "adam_loop.py",
        "optimizer_loop",
        ("# the cause",),
        cost_share=(0.2, 0.8),
        cures=(Cure("fused=True", ("--fused",)),),
    ),
    "preprocess_loop": Job(
        "preprocess_loop.py",
        "between_steps",
        ("# the cause",),
        cost_share=(0.4, 1.0),
        cures=(Cure("the row as a tensor", ("--whole",)),),
    ),
    "generate": Job("generate.py", "python_overhead", environment="integrations", cost_share=(0.2, 0.9), alone=True),
    "jax_op_by_op": Job(
        "jax_op_by_op.py",
        "running_eagerly",
        ("# the cause", "# and that", "x = jnp.tanh("),
        environment="jax",
        cost_share=(0.3, 1.0),
        cures=(Cure("the step under jax.jit", ("--compiled",)),),
    ),
    "tf_op_by_op": Job(
        "tf_op_by_op.py",
        "running_eagerly",
        ("# the cause", "# and that", "optimizer.apply_gradients("),
        environment="tensorflow",
        cost_share=(0.3, 1.0),
        cures=(Cure("the step in one tf.function", ("--compiled",)),),
    ),
    "varying_shapes": Job(
        "varying_shapes.py",
        "recompilation",
        ("# the cause",),
        cost_share=(0.7, 1.0),
        cures=(Cure("all padded to one length", ("--padded",)),),
    ),
    "slow_rank": Job(
        "slow_rank.py",
        "straggler",
        ("# the cause", "parameter.detach()"),
        launcher=("-m", "torch.distributed.run", "--nproc-per-node", "2"),
        cost_share=(0.4, 1.0),
        cures=(Cure("metrics written every hundredth step", ("--seldom",), share=0.99),),
    ),
    "own_profiler": Job(
        "own_profiler.py",
        "input_bound",
        ("# the cause",),
        cost_share=(0.3, 0.9),
        cures=(Cure(_AT_ONCE, ("--whole",)),),
    ),
    "crash": Job(
        "crash.py",
        "input_bound",
        ("# the cause",),
        status=1,
        cost_share=(0.3, 0.9),
        cures=(Cure(_AT_ONCE, ("--whole",)),),
    ),
    "forks": Job(
        "forks.py",
        "between_steps",
        ("# the cause",),
        cost_share=(0.7, 1.0),
        cures=(Cure("a helper every hundredth step", ("--seldom",), share=0.99),),
    ),
    "hf_trainer": Job("hf_trainer.py", None, environment="integrations", without=("input_bound",)),
}
