"""What to write instead where numbers are wider than they need be."""

from __future__ import annotations

from stepscope.analysis.workload import Feature
from stepscope.diagnosis.remedies.fitting import INFERS, JAX, NVIDIA, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart

_IN_16_BITS = "Run matrix work in 16 bits where the model allows it:"

SIXTEEN_BITS: Remedies = {
    PYTORCH: (
        _IN_16_BITS,
        RemedyPart(
            """\
    with torch.autocast("{device}", dtype=torch.{dtype}):
        output = model(*inputs)""",
            since=(1, 10),
        ),
        RemedyPart(
            """\
    with torch.cuda.amp.autocast():  # float16
        output = model(*inputs)""",
            before=(1, 10),
        ),
        RemedyPart("    model = model.to(torch.{dtype})  # or the whole model", purposes=INFERS, certain=True),
    ),
    JAX: """\
Run matrix work in 16 bits where the model allows it: keep parameters in fp32 and compute in {dtype}
(`x.astype(jnp.{dtype})`, Flax: `dtype=jnp.{dtype}`).""",
    TENSORFLOW: (
        _IN_16_BITS,
        RemedyPart(
            '    tf.keras.mixed_precision.set_global_policy("mixed_{dtype}")', since=(2, 4), unless=(Feature.SESSION,)
        ),
        RemedyPart(
            "    TF_ENABLE_AUTO_MIXED_PRECISION=1  # in the environment", before=(2, 4), unless=(Feature.SESSION,)
        ),
        RemedyPart("    TF_ENABLE_AUTO_MIXED_PRECISION=1  # in the environment", given=(Feature.SESSION,)),
    ),
    None: "Run matrix work in 16 bits ({dtype}) where the model allows it.",
}

TF32: Remedies = {
    PYTORCH: (
        RemedyPart(
            'Or keep fp32 and let the tensor cores take it: `torch.set_float32_matmul_precision("high")`.',
            since=(1, 12),
            vendors=NVIDIA,
        ),
        RemedyPart(
            "Or keep fp32 and let the tensor cores take it: `torch.backends.cuda.matmul.allow_tf32 = True`.",
            before=(1, 12),
            vendors=NVIDIA,
        ),
    ),
    JAX: (
        RemedyPart(
            """\
Or keep fp32 and let the tensor cores take it:
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")""",
            vendors=NVIDIA,
        ),
    ),
    TENSORFLOW: (
        RemedyPart(
            """\
Or keep fp32 and let the tensor cores take it, as is the default:
    tf.config.experimental.enable_tensor_float_32_execution(True)""",
            since=(2, 4),
            vendors=NVIDIA,
        ),
    ),
    None: (RemedyPart("Or keep fp32 and let the tensor cores take it (TF32).", vendors=NVIDIA),),
}
"""Beside 16 bits; nothing where the device's tensor cores take no TF32."""

LOSS_SCALING: Remedies = {
    PYTORCH: (
        RemedyPart("With float16 scale the loss: `torch.amp.GradScaler()`.", purposes=TRAINS, since=(2, 3)),
        RemedyPart("With float16 scale the loss: `torch.cuda.amp.GradScaler()`.", purposes=TRAINS, before=(2, 3)),
    ),
    None: (RemedyPart("With float16 scale the loss.", purposes=TRAINS),),
}
"""Beside 16 bits; nothing where no loss is."""
