"""What the names of Python functions, files and ranges say of the making of a batch."""

from __future__ import annotations

from stepscope.names.hosts import gives_ops, is_frameworks_own, walks_modules
from stepscope.regex import regex

_LONGEST = 2_048
_WORDS = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FRAME = regex(r"^(?P<file>.+?)\(\d+\): (?P<function>.+)$")

_FOR_PEOPLE = regex(
    r"^(?:log(?:s|ger|ging)?|print|report(?:s|ing)?|progress|metrics?|callbacks?|hooks?|sav(?:e|ing)|dump|plot|display"
    r"|show|checkpoints?|eval|evaluate|validat(?:e|ion)|summary|summari[sz]e|track|monitor|barrier|scheduler|write"
    r"|send|upload|profil(?:e|er))$"
)
_TOOLS = regex(
    r"(?:^|/)(?:stepscope|logging|wandb|tensorboard\w*|tqdm|mlflow|rich|loguru|matplotlib|comet_ml|neptune|clearml|aim"
    r"|prometheus_client|torchmetrics|torch/(?:distributed|optim|nn|autograd|cuda|profiler))/|(?:^|/)json/encoder\.py\("
    r"|^<built-in (?:function|method) (?:print|dumps?|collect|flush|write)\b|^(?:Optimizer\.|nccl:|gloo:|c10d)"
)
_BATCH = regex(
    r"^(?:batch(?:es)?|data(?:set|sets|loader|loaders)?|inputs?|samples?|examples?|records?|collate|tokeni[sz]e|tokens)$"
)
_OUTPUT = regex(r"^(?:decode|detokeni[sz]e|outputs?|predictions?|results?|responses?|answer|loss|losses|postprocess)$")


def makes_no_batch(name: str) -> bool:
    """Whether a Python frame or range is known for something else: what people look at, or a framework's own work.

    >>> [makes_no_batch(each) for each in ("train.py(9): log_metrics", "data.py(20): make", "json/encoder.py(9): f")]
    [True, False, True]
    """
    text = name[:_LONGEST].replace("\\", "/")
    if _TOOLS.search(text) or is_frameworks_own(text) or walks_modules(text) or gives_ops(text) is not None:
        return True
    return any(_FOR_PEOPLE.match(word) for word in _words(text))


def says_batch(name: str) -> bool:
    """Whether a function, its file or a range is called after what a step takes in.

    >>> says_batch("data.py(20): __next__"), says_batch("train.py(20): get_batch"), says_batch("train.py(20): step")
    (True, True, False)
    """
    text = name[:_LONGEST].replace("\\", "/")
    match = _FRAME.match(text)
    file = match["file"].rpartition("/")[2].removesuffix(".py") if match else ""
    words = (*_words(text), *_split(file))
    return any(map(_BATCH.match, words)) and not any(map(_OUTPUT.match, words))


def _words(text: str) -> list[str]:
    """Those of a function's name, or of a range's."""
    match = _FRAME.match(text)
    return _split(match["function"] if match else text)


def _split(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]


def makes_tensors(name: str) -> bool:
    """Whether an op or C function makes a tensor of what is none, or one of many: what a batch is made with.

    >>> [makes_tensors(each) for each in ("aten::stack", "<built-in method tensor of type object at 0x7f>", "aten::mm")]
    [True, True, False]
    """
    return _MAKES.match(name[:_LONGEST]) is not None


def changes_in_place(op: str) -> bool:
    """Whether an op changes a tensor that was there before: a weight, an average.

    >>> changes_in_place("aten::lerp_"), changes_in_place("aten::__and__"), changes_in_place("aten::copy_")
    (True, False, False)
    """
    return op.startswith("aten::") and op.endswith("_") and not op.endswith("__") and op not in _FILLS


def reads_numbers(name: str) -> bool:
    """Whether an op makes Python numbers of a tensor: nothing of a batch is read before the model sees it."""
    return name in ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")


def is_anonymous(frame: str) -> bool:
    """Whether a Python frame is a comprehension's, a generator expression's or a lambda's."""
    return frame.endswith(("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>"))


_FILLS = ("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_",
          "aten::resize_", "aten::detach_", "aten::set_", "aten::requires_grad_")  # fmt: skip
"""What ops that make tensors do inside, to tensors that are theirs."""
_MAKES = regex(
    r"<built-in (?:method|function) (?:tensor|as_tensor|asarray|from_numpy|frombuffer|stack|cat|randint|randn|rand"
    r"|randperm|normal|index_select) |<built-in (?:function|method) (?:from_numpy|frombuffer|as_tensor)\b"
    r"|aten::(?:stack|cat|randint|randn|rand|randperm|index|index_select|lift_fresh)$"
)
