"""What to write instead where a step waits for its batch."""

from __future__ import annotations

from stepscope.analysis.workload import CPU, Feature
from stepscope.diagnosis.remedies.fitting import AMD, INFERS, INTEL, NVIDIA, PYTORCH, TRAINS, Remedies, RemedyPart

_TRAINER, _LIGHTNING, _ACCELERATE = Feature.TRAINER, Feature.LIGHTNING, Feature.ACCELERATE
_LOADERS = (
    ((_LIGHTNING,), (_TRAINER,), "It is the loader given to `fit()`, or returned by your module or DataModule."),
    ((_ACCELERATE,), (_TRAINER, _LIGHTNING), "It is the loader given to `prepare()`."),
    ((), (_TRAINER, _LIGHTNING, _ACCELERATE), ""),
)
"""Who takes the program's loader: what is in use, what is not, and which loader it is."""
_KEEPS = "The dots stand for the arguments it has now (`batch_size`, `shuffle` and so on): they stay as they are."


def loader_with(*arguments: str) -> tuple[RemedyPart, ...]:
    """The line of code that gives a loader some arguments more, by who makes it; memory is pinned for devices only."""
    of_trainer = ", ".join(f"dataloader_{each}" for each in arguments)
    made = [RemedyPart(f"    TrainingArguments(..., {of_trainer})", given=(_TRAINER,))]  # It pins memory by itself.
    for given, unless, which in _LOADERS:
        said = f"{_KEEPS} {which}".rstrip()
        plain = f"    DataLoader(dataset, ..., {', '.join(arguments)})\n{said}"
        pinned = f"    DataLoader(dataset, ..., {', '.join((*arguments, 'pin_memory=True'))})\n{said}"
        made.append(RemedyPart(pinned, given=given, unless=unless, vendors=(*NVIDIA, *AMD, *INTEL)))
        made.append(RemedyPart(plain, given=given, unless=unless, vendors=(CPU,), certain=True))
    return tuple(made)


VERIFY = """\
Verify with a synthetic batch that is reused in every step: if the step time does not fall, the cause lies elsewhere."""

NO_WORKERS: Remedies = {
    None: (
        "The loader prepares batches in the main process (num_workers=0). Let worker processes do it ahead of time:",
        *loader_with("num_workers=4", "persistent_workers=True"),
        VERIFY,
    )
}

LATE_WORKERS: Remedies = {
    None: (
        "The worker processes do not keep up. Give them less to do or add some:",
        *loader_with("num_workers=8", "prefetch_factor=4", "persistent_workers=True"),
        "Where they compute, workers beyond the processor's cores gain nothing: decode and transform ahead of time.",
    )
}

CHEAPER_WORKERS: Remedies = {
    None: """\
Make what they do cheaper: reading and transforming a sample in the dataset, and `collate_fn`. Do once, ahead of the
loop, what is the same each time, transform whole batches in place of samples, and read fewer, larger files."""
}

UNSEEN_WORKERS: Remedies = {
    None: "They are not part of this profile: record once with `num_workers=0`, and the report names their lines."
}

TAKING_OVER: Remedies = {
    None: (
        """\
The workers deliver in time; the main thread spends the time taking the batch over. Send it less: stack samples to
one tensor per field in `collate_fn` (the workers run it), no Python objects or numpy arrays in the batch, the narrowest
dtype, and convert in the step.""",
        RemedyPart(
            "`pin_memory=True` moves the copy to pinned memory to a thread of its own.",
            vendors=(*NVIDIA, *AMD, *INTEL),
        ),
    )
}

_IF_LATE: tuple[str | RemedyPart, ...] = (
    *loader_with("num_workers=8", "prefetch_factor=4", "persistent_workers=True"),
    "If not, send fewer and larger tensors: stack samples in `collate_fn`.",
)

EITHER: Remedies = {
    None: (
        """\
Worker processes load the data, and the profile does not say whether they are late or whether taking their batch over
takes the time: record with `with_stack=True` to tell. If they are late, give them company or less to do:""",
        *_IF_LATE,
    )
}

EITHER_WITH_STACKS: Remedies = {
    None: (
        """\
Worker processes load the data, and though stacks were recorded they do not say whether the workers are late or whether
taking their batch over takes the time. If they are late, give them company or less to do:""",
        *_IF_LATE,
    )
}

RESTARTED: Remedies = {
    None: (
        "Keep the workers from one pass over the data to the next:",
        *loader_with("persistent_workers=True"),
        """\
Make the loader once, outside of the loop over those passes: a new one starts new workers whatever it is given.""",
    )
}

OTHER: Remedies = {
    None: (
        RemedyPart(
            """\
Prepare the next batch while the device works on this one: a background thread or process that stays a few batches
ahead, such as a loader's workers.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            """\
Prepare the next inputs (decoding, tokenising, resizing) while the device works on these: a background thread or process
that stays a little ahead.""",
            purposes=INFERS,
            certain=True,
        ),
        "Verify with a synthetic batch that is reused in every step.",
    )
}

MADE_IN_LOOP: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
No loader runs ahead here: the thread that trains makes each batch itself. Make that cheaper in the lines named above
(whole arrays in place of loops, once before training in place of every step), or let a thread or process make the next
batch while this step computes. A loader's worker does:
    from torch.utils.data import DataLoader, IterableDataset
    class Ahead(IterableDataset):
        def __iter__(self):
            while True:
                yield make_batch()   # or: yield from your generator
    for batch in DataLoader(Ahead(), batch_size=None, num_workers=1):
With more workers each makes batches of its own: seed them by `torch.utils.data.get_worker_info().id`. What mostly reads
files, or runs in NumPy, can run in a thread instead:
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(1)
    coming = pool.submit(make_batch)
    for step in range(steps):
        batch, coming = coming.result(), pool.submit(make_batch)
Either takes a core that the step must leave free.""",
            purposes=TRAINS,
        ),
        RemedyPart(
            """\
Prepare the next inputs (decoding, tokenising, resizing) while these are computed: a background thread or process
that stays a little ahead.""",
            purposes=INFERS,
            certain=True,
        ),
    ),
    None: OTHER[None],
}
