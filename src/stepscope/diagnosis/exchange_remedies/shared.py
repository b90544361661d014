"""What advice on several ways of exchanging has in common."""

from __future__ import annotations

from stepscope.diagnosis.remedies import AMD, INFERS, NVIDIA, RemedyPart

GPUS = (*NVIDIA, *AMD)
OVERLAP_IN_XLA = (
    RemedyPart(
        """\
Let XLA run it beside compute:
    XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"
""",
        vendors=GPUS,
    ),
    "Shard so that the axis that communicates most lies within one machine.",
)
ENGINES = (
    RemedyPart(
        """\
In inference an all-reduce joins the parts of a layer cut across devices (tensor parallel): the next layer needs it, so
it can be made faster or rarer, not hidden. Serve with fewer devices per model and more replicas where memory allows
(`--tensor-parallel-size` in vLLM, `--tp-size` in SGLang), and keep the engine's own all-reduce for small messages on
(no `--disable-custom-all-reduce`).""",
        purposes=INFERS,
    ),
    RemedyPart(
        """\
Fuse it with the normalisation behind it: `"pass_config": {"fuse_allreduce_rms": true}` in vLLM's
`--compilation-config`, `--enable-flashinfer-allreduce-fusion` in SGLang.""",
        purposes=INFERS,
        vendors=("NVIDIA",),
    ),
    RemedyPart(
        "Send it quantised, if accuracy allows: `VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT8` (or `INT4`) in vLLM.",
        purposes=INFERS,
        vendors=("AMD",),
    ),
)
