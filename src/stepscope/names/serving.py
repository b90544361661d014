"""Iterations of servers of language models: what the names of their ranges say of the batch that each one runs.

| server | range | written by |
|---|---|---|
| vLLM | `execute_context_1(888)_generation_4(4)`, detailed `execute_892_context_1(sq888sk888…)_generation_4(sq4sk960…)` | vllm/v1/worker/gpu_worker.py, `annotate_profile`; requests and, in brackets, tokens |
| vLLM | `execute_new_2_cached_30` | the same, earlier: requests new to the batch, and those that were in it |
| SGLang | `step[DECODE bs=64]`, `step[EXTEND bs=2 toks=14721]`, detailed `step[MIXED bs=5 c=2 g=3 c_sq=6144 …]` | sglang/srt/model_executor, `build_step_span_name`; the mode is a `ForwardMode` |
| TensorRT-LLM | `[Executor] _forward_step 17: 1 ctx reqs, 512 ctx tokens, 31 gen reqs` (NVTX; earlier without the tokens, at first without the number) | tensorrt_llm/_torch/pyexecutor/py_executor.py, `_forward_step` |
| ATOM | `prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117]` (117 requests padded to 128) | AMD's ATOM |
| TensorFlow Serving | `ProcessBatch`, on the threads that batch requests; its arguments, which are not read, hold the size; earlier `ProcessBatch:32`, of so many examples | tensorflow/core/kernels/batching_util/shared_batch_scheduler.h |
| MaxText under JetStream | modules `jit__prefill_jit(…)` and `jit__generate_jit(…)` | maxtext/maxengine.py: the names of its compiled functions |

What a name does not say stays unknown. That a request decodes one token in an iteration is known only where its server
says how many tokens it runs: with speculative decoding it runs several, of which some may be thrown away.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from stepscope.record import record
from stepscope.regex import regex


class ServingPhase(StrEnum):
    """What an iteration works on."""

    PREFILL = "prefill"
    """The prompts of requests."""
    DECODE = "decode"
    """The next token of each request."""
    MIXED = "mixed"
    """Prompts of some requests, and the next token of others."""
    BATCH = "batch"
    """A batch of requests, each of which is answered at once."""
    DRAFT = "draft"
    """A smaller model that guesses the tokens to come."""
    IDLE = "idle"
    """Nothing: a server of several runs along for the sake of the others."""
    UNKNOWN = "unknown"


@record
class Iteration:
    """One pass through the model; None for what its name does not say."""

    server: str
    phase: ServingPhase = ServingPhase.UNKNOWN
    requests: int | None = None
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    decode_tokens: int | None = None
    """Tokens that run for requests that decode: as many as requests, unless some are guesses."""
    padded: int | None = None
    """Requests that the pass was made for, some of them empty."""
    context_tokens: int | None = None
    """Tokens that the requests which decode look back on."""
    number: int | None = None


VLLM, SGLANG, TENSORRT_LLM, ATOM, MAXTEXT = "vLLM", "SGLang", "TensorRT-LLM", "ATOM", "MaxText"

BATCHES = regex(r"ProcessBatch(?::\d+)?")
"""Where TensorFlow wrote it: others call a function of theirs that, too."""
TENSORFLOW_SERVING = "TensorFlow Serving"

_GROUP = r"\((?:sq)?(?P<{0}_tokens>\d{{1,15}})(?:sk(?P<{0}_context>\d{{1,18}})\w*|_\d+)?\)"
_VLLM = regex(
    r"execute_(?:\d{1,15}_)?context_(?P<prefill>\d{1,9})" + _GROUP.format("prefill")
    + r"_generation_(?P<decode>\d{1,9})" + _GROUP.format("decode")
)  # fmt: skip
_VLLM_EARLIER = regex(r"execute_new_(?P<new>\d{1,9})_cached_(?P<cached>\d{1,9})")
_SGLANG = regex(r"step\[(?P<mode>[A-Z_0-9]{1,40})(?P<rest>(?: \w{1,20}=\d{1,18})*)\]")
_TENSORRT_LLM = regex(
    r"\[Executor\] _forward_step(?: (?P<number>\d{1,15}))?: (?P<prefill>\d{1,9}) ctx reqs"
    r"(?:, (?P<prefill_tokens>\d{1,15}) ctx tokens)?, (?P<decode>\d{1,9}) gen reqs"
)
_ATOM = regex(r"(?P<kind>prefill|decode)\[bs=(?P<requests>\d{1,9})(?:/(?P<padded>\d{1,9}))?(?P<rest> tok=.*)\]")
_PAIR = regex(r"(?:^| )(\w{1,20})=(\d{1,18})(?= |$)")
_SGLANG_MODES = {
    "EXTEND": ServingPhase.PREFILL,
    "SPLIT_PREFILL": ServingPhase.PREFILL,
    "DECODE": ServingPhase.DECODE,
    "TARGET_VERIFY": ServingPhase.DECODE,
    "MIXED": ServingPhase.MIXED,
    "DRAFT_EXTEND": ServingPhase.DRAFT,
    "DRAFT_EXTEND_V2": ServingPhase.DRAFT,
    "IDLE": ServingPhase.IDLE,
}
"""Of ``ForwardMode`` (sglang/srt/model_executor/forward_batch_info.py); of others it is not told."""

_MODULE = regex(r"jit__?(?P<what>prefill|generate)(?:_jit)?(?:\(\d+\))?")


def iteration(name: str) -> Iteration | None:
    """What the name of a range says of an iteration; None for any other name.

    >>> iteration("execute_context_0(0)_generation_32(128)").decode_tokens
    128
    >>> iteration("step[EXTEND bs=2 toks=14721]").phase, iteration("step[IDLE bs=0]").phase
    (<ServingPhase.PREFILL: 'prefill'>, <ServingPhase.IDLE: 'idle'>)
    """
    for form, read in _FORMS:
        match = form.fullmatch(name)
        if match:
            return read(match)
    return None


def serving_module(name: str) -> ServingPhase | None:
    """What a module compiled by XLA works on by the name of its function, if that is one of a server's.

    Other programs have functions of these names too: one whose loop over the tokens is inside, say. It is a server's
    where modules of both phases run.

    >>> serving_module("jit__generate_jit(7)"), serving_module("jit_generate_text(7)")
    (<ServingPhase.DECODE: 'decode'>, None)
    """
    match = _MODULE.fullmatch(name)
    if match is None:
        return None
    return ServingPhase.PREFILL if match["what"] == "prefill" else ServingPhase.DECODE


def _phase(prefill: int, decode: int) -> ServingPhase:
    if prefill and decode:
        return ServingPhase.MIXED
    return ServingPhase.PREFILL if prefill else ServingPhase.DECODE if decode else ServingPhase.IDLE


def _vllm(match: re.Match[str]) -> Iteration:
    prefill, decode = int(match["prefill"]), int(match["decode"])
    return Iteration(
        server=VLLM,
        phase=_phase(prefill, decode),
        requests=prefill + decode,
        prefill_requests=prefill,
        prefill_tokens=int(match["prefill_tokens"]),
        decode_requests=decode,
        decode_tokens=int(match["decode_tokens"]),
        context_tokens=_whole(match["decode_context"]),
    )


def _vllm_earlier(match: re.Match[str]) -> Iteration:
    """A request that was in the batch decodes, or is at a later piece of its prompt: that is not told."""
    new, cached = int(match["new"]), int(match["cached"])
    only_new = ServingPhase.PREFILL if new else ServingPhase.IDLE
    return Iteration(VLLM, ServingPhase.UNKNOWN if cached else only_new, requests=new + cached)


def _sglang(match: re.Match[str]) -> Iteration:
    told = {key: int(value) for key, value in _PAIR.findall(match["rest"])}
    phase, requests = _SGLANG_MODES.get(match["mode"], ServingPhase.UNKNOWN), told.get("bs")
    prefill = requests if phase is ServingPhase.PREFILL else 0 if phase is ServingPhase.DECODE else told.get("c")
    decode = requests if phase is ServingPhase.DECODE else 0 if phase is ServingPhase.PREFILL else told.get("g")
    tokens = told.get("g_sq", decode if match["mode"] == "DECODE" else None)
    return Iteration(
        server=SGLANG,
        phase=phase,
        requests=requests,
        prefill_requests=prefill,
        prefill_tokens=told.get("toks", told.get("c_sq")),
        decode_requests=decode,
        decode_tokens=tokens,
        context_tokens=told.get("g_sk"),
    )


def _tensorrt_llm(match: re.Match[str]) -> Iteration:
    prefill, decode = int(match["prefill"]), int(match["decode"])
    return Iteration(
        server=TENSORRT_LLM,
        phase=_phase(prefill, decode),
        requests=prefill + decode,
        prefill_requests=prefill,
        prefill_tokens=_whole(match["prefill_tokens"]) if prefill else 0,
        decode_requests=decode,
        number=_whole(match["number"]),
    )


def _atom(match: re.Match[str]) -> Iteration:
    told = {key: int(value) for key, value in _PAIR.findall(match["rest"])}
    requests, tokens = int(match["requests"]), told.get("tok")
    if match["kind"] == "prefill":
        return Iteration(ATOM, ServingPhase.PREFILL, requests, requests, tokens, 0, 0)
    prefill, decode = told.get("p", 0), told.get("d")
    return Iteration(
        server=ATOM,
        phase=_phase(prefill, 1 if decode is None else decode),
        requests=requests,
        prefill_requests=prefill,
        decode_requests=decode,
        decode_tokens=None if prefill else tokens,
        padded=_whole(match["padded"]),
        context_tokens=None if prefill else told.get("sk"),
    )


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Iteration]], ...] = (
    (_VLLM, _vllm),
    (_VLLM_EARLIER, _vllm_earlier),
    (_SGLANG, _sglang),
    (_TENSORRT_LLM, _tensorrt_llm),
    (_ATOM, _atom),
)
