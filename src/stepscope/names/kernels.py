"""What a device op's name says: its family, its collective, and whether it runs on tensor cores.

Names are all that every profile records of a kernel, and each library names its own way. The tables are
read from top to bottom and the first match counts, so a special case stands above the general one. A name
that says nothing gives ``unknown`` or None, never a guess, and every answer carries the phrase that
explains it.

Sources of the conventions: CUTLASS (``tools/library``, operation names), the PTX ISA (shapes of ``mma``),
Tensile (kernel naming parameters), the sources of MIOpen, Composable Kernel, NCCL (``src/device``) and
PyTorch (``aten/src/ATen/native/cuda``), and the kernels of public profiles. Of kernels that communicate also
the custom all-reduces of vLLM, SGLang and AITER (``cross_device_reduce``, ``quickreduce``), of TensorRT-LLM and
FlashInfer, PyTorch's symmetric memory (``torch/csrc/distributed/c10d/symm_mem``), Transformer Engine's
userbuffers, MSCCL++, what the hosts of NVSHMEM and rocSHMEM launch (``*_on_stream_kernel``), and what carries
tokens to experts: DeepEP and those that took over its kernels (UCCL, NIXL, Primus-Turbo, Hybrid-EP), MORI,
pplx-garden, TensorRT-LLM's ``moeA2A``. A kernel that multiplies matrices and communicates meanwhile (Flux,
``gemm_allreduce``) is a product: the device computes in it.
"""

from __future__ import annotations

from enum import StrEnum

from stepscope.hardware.peaks import Precision
from stepscope.names.formats import message_format, op_precision, operand_format
from stepscope.names.remembered import remembered
from stepscope.names.symbols import LONGEST, subject
from stepscope.record import record
from stepscope.regex import regex

__all__ = ["Collective", "Family", "KernelTraits", "Precision", "Tri", "describe", "op_precision"]


class Family(StrEnum):
    """What a device op does."""

    GEMM = "gemm"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    NORMALIZATION = "normalization"
    SOFTMAX = "softmax"
    EMBEDDING = "embedding"
    OPTIMIZER = "optimizer"
    COPY = "copy_kernel"
    RANDOM = "random"
    INDEX = "sort_index"
    COLLECTIVE = "collective"
    MEMSET = "memset"
    OTHER = "other"
    UNKNOWN = "unknown"


class Collective(StrEnum):
    """What a communication kernel does; ``generic`` where its name does not tell."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all_to_all"
    SEND_RECV = "send_recv"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"
    GENERIC = "generic"


class Tri(StrEnum):
    """An answer that may not be known."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@record
class KernelTraits:
    """What the name of a device op says.

    ``eligible`` is whether the kernel computes matrix products, the work tensor cores exist for: the main
    kernels of GEMM, convolution and attention, not their helpers and not matrix times vector. ``precision``
    is the format of the operands (of mixed operands the wider, which sets the rate), not the accumulator's.
    """

    family: Family
    collective: Collective | None
    tensor_core: Tri
    tensor_core_reason: str
    eligible: bool
    precision: Precision | None
    precision_reason: str


@remembered
def describe(name: str) -> KernelTraits:
    """Read the name of a kernel, copy or memset as a profile recorded it (demangled, mangled or plain)."""
    text = name[:LONGEST]
    about = subject(text)
    collective = _collective(text.lower(), about)
    if collective is not None:
        if _LIBRARY.search(text.lower()):
            precision, evidence = message_format(text, reduces=collective in _REDUCING)
        else:
            precision, evidence = operand_format(text)
        return KernelTraits(
            Family.COLLECTIVE, collective, Tri.NO, "a collective moves data", False, precision, evidence
        )
    precision, evidence = operand_format(text)
    family, eligible = _family(text.lower(), about)
    tensor_core, reason = _tensor_core(text.lower(), family, eligible, precision)
    return KernelTraits(family, None, tensor_core, reason, eligible, precision, evidence)


_KINDS = tuple((kind, regex(pattern)) for kind, pattern in (
    (Collective.REDUCE_SCATTER, r"reduce[_-]?scatter|userbuffers_\w{0,80}_rs(?![a-z])"),
    (Collective.ALL_GATHER, r"all[_-]?gather|fcollect|userbuffers_\w{0,80}_ag(?![a-z])"),
    (Collective.ALL_REDUCE, r"all[_-]?reduce|cross_device_reduce|^(?:void )?rdxn_|userbuffers_fp16_sum_inplace"),
    (Collective.ALL_TO_ALL, r"all[_-]?to[_-]?all|exchangesplitandoffset"),
    (Collective.BARRIER, r"barrier|sync_all|device_sync|^(?:void )?sync_on_stream|clean_low_latency_buffer"),
    (Collective.ALL_TO_ALL, r"dispatch|combine"),
    (Collective.BROADCAST, r"broadcast"),
    (Collective.SEND_RECV, r"send_?recv|collective-permute|(?:^|[%_:])(?:send|recv)(?:[_:.-]|$)|userbuffers_push"
                           r"|(?:put|wait)_signal|proxy_rma"),
    (Collective.REDUCE, r"reduce"),
))  # fmt: skip
_REDUCING = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.REDUCE, Collective.GENERIC)
_LIBRARY = regex(r"^(?:void )?(?:nccl|rccl|msccl(?!pp)|gloo:|oneccl|ccl::|hccl|hcom_|c10d::|nvshmem|rocshmem)")
_NAMESPACE = regex(
    r"(?:^|::|void )(?:deep_ep|uccl|nixl_ep|hybrid_ep|mori|mscclpp|rocshmem|nvshmem_extension|symmetric_memory"
    r"|intranode|internode(?:_ll)?)::"
)
_CUSTOM = regex(
    r"cross_device_reduce|(?<!warp)(?<!warp_)(?<!block)(?<!block_)(?<!cta)(?<!cta_)(?<!wave)(?<!wave_)(?<!quad)"
    r"(?<!quad_)(?<!thread)(?<!thread_)(?:all_?reduce|all_?gather|reduce_?scatter)|all_?to_?all|userbuffers_"
    r"|^(?:barrier|sync|fcollect|broadcast|rdxn|quiet|signal_op|signal_wait)\w{0,20}_on_stream_kernel"
    r"|(?:^|[:_])ep(?:dispatch|combine)[a-z]|moea2a(?:dispatch|combine)kernel|a2a_(?:dispatch|combine)_(?:send|recv)_"
)
_LOCAL = regex(r"layout|convert_?dispatch|local_?expert_?count|init_array")
"""What those libraries do on one device alone: counting tokens, arranging what has come."""
_PRODUCT = regex(r"gemm|matmul|flux_")
_XLA = regex(
    r"^%?(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-(?:permute|broadcast)"
    r"|send|recv)(?:-start|-done)?(?:\.\d+)?$"
)
_INDUCTOR = regex(r"^triton_(?:poi|red|per|tem|for|spl)_")


def _collective(lowered: str, about: str) -> Collective | None:
    library = _LIBRARY.search(lowered) or _XLA.search(lowered)
    if not library:
        exchanges = _NAMESPACE.search(about) or _CUSTOM.search(about)
        if not exchanges or _INDUCTOR.search(about) or _LOCAL.search(about) or _PRODUCT.search(about):
            return None
    return next((kind for kind, pattern in _KINDS if pattern.search(about)), Collective.GENERIC)


# Repeats inside a pattern are bounded (``\w{0,80}``): reading a hostile name must not cost its length squared.
_F = Family
_RULES = tuple((family, eligible, regex("|".join(patterns))) for family, eligible, *patterns in (
    (_F.MEMSET, False, r"memset|fillbuffer"),
    (_F.ELEMENTWISE, False, r"tensoropwith|optensor"),
    (_F.COPY, False, r"^memcpy|reshape_and_cache|nchwtonhwc|nhwctonchw"),
    # Inductor writes what kind of loop it generated, then the ops it fused.
    (_F.GEMM, True, r"^triton_tem_\w*mm"),
    (_F.SOFTMAX, False, r"^triton_(?:red|per)_\w*softmax"),
    (_F.NORMALIZATION, False, r"^triton_(?:red|per)_\w*_norm"),
    (_F.REDUCTION, False, r"^triton_(?:red|per)_"),
    (_F.ELEMENTWISE, False, r"^triton_(?:poi|for)_"),
    (_F.INDEX, False, r"^triton_spl_"),
    # Helpers that carry the name of the product they serve, and products that are not matrix times matrix.
    (_F.ATTENTION, False, r"dot_do_o|convert_dq|splitkv_combine|fwdcombine|bwd(?:pre|post)process",
     r"merge_attn_states|mla_reduce|attention\w{0,80}_reduce|reduce_segments"),
    (_F.CONVOLUTION, False, r"winograd\w{0,80}(?:data|filter|output|delta)4x4|generatewinogradtiles",
     r"im2col|col2im|vol2col|fft2d_|compute(?:wgrad)?(?:splitk)?b?offsetskernel|scalepackedtensor",
     r"depthwise"),
    (_F.GEMM, False, r"splitk_?reduce|reduce_?splitk|gemv|gemmk1|(?:^|:)dot_kernel|^cijk_(?!a)",
     r"epilogue::impl"),
    (_F.INDEX, False, r"finalize|routing"),
    (_F.ATTENTION, True, r"flash_?(?:fwd|bwd|attn|attention|mla)|fmha|sdpa|attention|attn_?(?:fwd|bwd)",
     r"paged_?attn|(?:batch|single)(?:prefill|decode)with|(?:^|[:_])mla_"),
    (_F.CONVOLUTION, True, r"conv(?!ert)|fprop|dgrad|wgrad|winograd|igemm_(?:fwd|bwd|wrw|v4r1)",
     r"[a-z\d]cudnn_|bwd_(?:data|weight)"),
    (_F.GEMM, True, r"(?<!fb)gemm(?!a)|matmul|(?:^|_|:)b?mm_|_mm(?:_|$)|^(?:custom_)?cijk_|nvjet",
     r"marlin|fused_moe_kernel|mfma_moe"),
    (_F.EMBEDDING, False, r"(?<!rotary_)embedding|pooled_embs"),
    (_F.OTHER, False, r"pool|spin_kernel"),
    (_F.SOFTMAX, False, r"softmax"),
    (_F.NORMALIZATION, False, r"(?:layer|batch|group|instance|rms)_?norm|(?:^|:)bn_(?:fw|bw)",
     r"rowwisemoments|gammabeta"),
    (_F.OPTIMIZER, False, r"(?<![a-z])(?:adam|sgd|lamb(?!da)|adagrad|adafactor)|optimizer"),
    (_F.ELEMENTWISE, False, r"elementwise_kernel_with_index|quant|qparam|fp8rowwise"),
    (_F.INDEX, False, r"sort|top_?k|scan|index|gather|scatter|histogram|radix|compact|bykey|cumsum",
     r"bounds_check|offsets_range|dispatch_layout|permute_2d|compute_cuda_kernel"),
    (_F.RANDOM, False, r"dropout|distribution_|(?<![a-z])rand"),
    (_F.REDUCTION, False, r"reduce|(?<![a-z])(?:sum|mean|argmax|argmin)(?![a-z])|loss|nllcriterion"),
    (_F.COPY, False, r"copy|transpose|permute|concat"),
    (_F.ELEMENTWISE, False, r"elementwise|elemwise|multi_tensor_apply|pointwise|act_and_mul|silu|gelu|relu",
     r"swiglu|rotary|rope|fill|scal_kernel|^wrapped_|^loop_\w*fusion"),
))  # fmt: skip
_FUNCTORS = tuple(
    (family, regex(pattern))
    for family, pattern in (
        (_F.RANDOM, r"dropout|bernoulli"),
        (_F.OPTIMIZER, r"adam|sgd|lamb(?!da)|adagrad"),
        (_F.COPY, r"copy_kernel|copy_device_to_device|copyfunctor"),
    )
)


def _family(lowered: str, about: str) -> tuple[Family, bool]:
    """The family, and whether the kernel itself computes matrix products."""
    for family, eligible, pattern in _RULES:
        if not pattern.search(about):
            continue
        if family is not Family.ELEMENTWISE:
            return family, eligible
        # One elementwise kernel runs many functors; the functor stands in the template arguments.
        return next((f for f, functor in _FUNCTORS if functor.search(lowered)), family), False
    return Family.UNKNOWN, False


_FMA = "no MMA shape: FMA units"
_EVIDENCE = tuple((answer, regex(pattern), reason) for answer, pattern, reason in (
    (Tri.NO, r"_simt_|opclasssimt", "CUTLASS calls it SIMT: no tensor cores"),
    (Tri.NO, r"_(?:ffma|dfma|hfma2?|idp4a)_", "the name says FMA units"),
    (Tri.NO, r"fmha_cutlass[fb]_\w{0,80}sm50|fmha_cutlass[fb]_f32_\w{0,80}sm7", "this architecture's build is SIMT"),
    (Tri.YES, r"tensorop", "CUTLASS calls it a tensor op"),
    (Tri.YES, r"[hib]mma|gmma|umma(?!r)|tcgen05|wmma", "the name has a matrix instruction"),
    (Tri.YES, r"mfma|xdlops|_xdl(?:_|$)|gtcx", "the name says AMD matrix cores"),
    (Tri.YES, r"tensor\d+x\d+x\d+|_warpgroupsize", "the name has a tensor-core instruction shape"),
    (Tri.YES, r"(?<![a-z\d])[shdi](?:884|1688|16816|161616|8816|8832|16832|16864)",
     "the name has an MMA shape"),
    (Tri.YES, r"sm\d+_\d+x\d+x\d+_|mainloopsm(?:90|1\d\d)", "CUTLASS 3 MMA atom"),
    (Tri.YES, r"cutlass\w{0,80}_sm(?:90|1\d\d)", "CUTLASS for Hopper or later"),
    (Tri.YES, r"nvjet", "cuBLAS nvjet kernels are written for tensor cores"),
    (Tri.YES, r"^(?:custom_)?cijk_\w*_mi\d+x\d+x", "Tensile with a matrix instruction"),
    (Tri.NO, r"^cijk_", "Tensile without a matrix instruction"),
    (Tri.YES, r"^(?:bmm|gemm)_\w+_t\d+x\d+x\d+\w*_sm1\d\d", "generated for Blackwell tensor cores"),
    (Tri.NO, r"(?:batch|single)decodewith|paged_attention_v[12]", "a decode kernel on ordinary lanes"),
    (Tri.YES, r"flash_?(?:fwd|bwd|attn|attention|mla)|fmha|(?:batch|single)prefillwith",
     "flash attention computes on tensor cores"),
    (Tri.YES, r"deep_gemm|marlin|machete", "the library is written for tensor cores"),
    (Tri.YES, r"^(?:triton_tem_|_?attn_(?:fwd|bwd)|kernel_unified_attention|fused_moe_kernel|_matmul_ogs)",
     "a Triton template built on tl.dot"),
    (Tri.NO, r"gemmsn_|magma_\w{0,80}gemm|gemm_kernel\dx\d_core|gemm_largek", _FMA),
    (Tri.NO, r"(?:maxwell|pascal|volta|turing|ampere|hopper)_(?:[a-z]*\d*_)?(?:gc|[sdczh])(?:gemm|cudnn)",
     _FMA),
    (Tri.NO, r"(?:im|ex)plicit_convolve_[shd]gemm|(?:dgrad|wgrad)\w{0,80}_engine", "older cuDNN on FMA units"),
    (Tri.NO, r"miopensp3|naive_conv|miopengcnasm|miopenconv(?:uni|1x1)|igemm_v4r1|_dl_|dlops",
     "MIOpen or Composable Kernel without matrix instructions"),
    (Tri.NO, r"winograd", "Winograd on FMA units"),
))  # fmt: skip
_MATRIX_TOKEN = regex(r"(?:^|_)(?:hmma|imma|wgmma|umma|tcgen05|mfma|wmma|xdlops|tensorop)(?:_|$)")
_TENSOR_ONLY = (Precision.TF32, Precision.FP8, Precision.FP4)
_WORK = {
    Family.MEMSET: "fills memory",
    Family.COPY: "moves data",
    Family.INDEX: "sorts or indexes",
    Family.OTHER: "no matrix product",
}


def _tensor_core(lowered: str, family: Family, eligible: bool, precision: Precision | None) -> tuple[Tri, str]:
    if family is Family.UNKNOWN:
        if _MATRIX_TOKEN.search(lowered):
            return Tri.YES, "the name has a matrix instruction"
        return Tri.UNKNOWN, "the name does not tell what the kernel does"
    if not eligible:
        return Tri.NO, _WORK.get(family, f"{family}: no matrix product")
    for answer, pattern, reason in _EVIDENCE:
        if pattern.search(lowered):
            return answer, reason
    if precision in _TENSOR_ONLY:
        return Tri.YES, f"only tensor cores multiply {precision}"
    return Tri.UNKNOWN, "the name does not tell which units compute"
