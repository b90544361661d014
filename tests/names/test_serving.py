"""What servers' names of their iterations say, in the forms that they have had."""

from __future__ import annotations

import pytest

from stepscope.names.hosts import step_marker
from stepscope.names.purposes import serves
from stepscope.names.serving import ServingPhase as P
from stepscope.names.serving import iteration, serving_module

EVERY_FORM = [
    # name, phase, requests, prompt tokens, decoding requests, their tokens, what they look back on
    ("execute_context_2(14721)_generation_0(0)", P.PREFILL, 2, 14721, 0, 0, None),
    ("execute_context_1(888_788544)_generation_0(0)", P.PREFILL, 1, 888, 0, 0, None),
    ("execute_context_0(0)_generation_32(128)", P.DECODE, 32, 0, 32, 128, None),
    ("execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)",
     P.MIXED, 5, 6144, 3, 3, 6144),
    ("execute_context_0(0)_generation_0(0)", P.IDLE, 0, 0, 0, 0, None),
    ("execute_new_2_cached_0", P.PREFILL, 2, None, None, None, None),
    ("execute_new_2_cached_30", P.UNKNOWN, 32, None, None, None, None),
    ("step[EXTEND bs=2 toks=14721]", P.PREFILL, 2, 14721, 0, None, None),
    ("step[DECODE bs=64]", P.DECODE, 64, None, 64, 64, None),
    ("step[DECODE bs=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]", P.DECODE, 64, None, 64, 64, 131072),
    ("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", P.DECODE, 64, None, 64, 128, 131072),
    ("step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=2 c_sqsk=2 g_sq=3 g_sk=6144 g_sqsq=3 g_sqsk=6144]",
     P.MIXED, 5, 6144, 3, 3, 6144),
    ("step[MIXED bs=2]", P.MIXED, 2, None, None, None, None),
    ("step[TARGET_VERIFY bs=8]", P.DECODE, 8, None, 8, None, None),
    ("step[DRAFT_EXTEND_V2 bs=8]", P.DRAFT, 8, None, None, None, None),
    ("step[IDLE bs=0]", P.IDLE, 0, None, None, None, None),
    ("step[DLLM_EXTEND bs=4]", P.UNKNOWN, 4, None, None, None, None),
    ("[Executor] _forward_step: 1 ctx reqs, 31 gen reqs", P.MIXED, 32, None, 31, None, None),
    ("[Executor] _forward_step 17: 0 ctx reqs, 32 gen reqs", P.DECODE, 32, 0, 32, None, None),
    ("[Executor] _forward_step 17: 2 ctx reqs, 512 ctx tokens, 0 gen reqs", P.PREFILL, 2, 512, 0, None, None),
    ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", P.PREFILL, 2, 14721, 0, 0, None),
    ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=1 sqsk=1 sk=17408 tbo=1]", P.PREFILL, 6, 17408, 0, 0,
     None),
    ("decode[bs=64 tok=64 d=64 sqsq=64 sqsk=131072 sk=131072]", P.DECODE, 64, None, 64, 64, 131072),
    ("decode[bs=32 tok=128 d=32 spec=3]", P.DECODE, 32, None, 32, 128, None),
    ("decode[bs=128 tok=384 p=2 d=126 sqsq=1 sqsk=1 sk=258048 tbo=1]", P.MIXED, 128, None, 126, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "phase", "requests", "prompt", "decoding", "tokens", "context"), EVERY_FORM)
def test_what_a_name_says(name, phase, requests, prompt, decoding, tokens, context):
    says = iteration(name)
    assert says is not None
    told = (says.phase, says.requests, says.prefill_tokens, says.decode_requests, says.decode_tokens)
    assert (*told, says.context_tokens) == (phase, requests, prompt, decoding, tokens, context)


@pytest.mark.parametrize("name", [name for name, *_ in EVERY_FORM])
def test_every_iteration_marks_a_step_of_a_program_that_serves(name):
    marker = step_marker(name)
    assert marker is not None
    assert marker.number == (17 if " 17:" in name else None)
    assert serves(name)


def test_a_batch_that_was_padded():
    says = iteration("decode[bs=117/128 tok=117 d=117]")
    assert says is not None
    assert (says.requests, says.padded) == (117, 128)


@pytest.mark.parametrize("name", [
    "", "execute_context_", "execute_context_1(2)", "execute_model", "step[]", "step[decode bs=1]", "step[DECODE bs=]",
    "[Executor] _forward_step", "prefill", "decode[bs=x tok=1]", "aten::mm", "ProfilerStep#1",
    "execute_context_1(" + "9" * 10_000 + ")_generation_0(0)", "step[DECODE" + " bs=1" * 100_000,
])  # fmt: skip
def test_other_names_say_nothing(name):
    assert iteration(name) is None


def test_modules_of_a_server_by_the_names_of_their_functions():
    names = ["jit__prefill_jit(12)", "jit__generate_jit", "jit_prefill(7)", "jit_generate(7)", "jit_insert(7)",
             "jit_generate_text(7)", "jit_train_step(7)"]  # fmt: skip
    assert [serving_module(name) for name in names] == [P.PREFILL, P.DECODE, P.PREFILL, P.DECODE, None, None, None]
