"""Code that is not the user's: packages by their names, and files of frameworks whose profilers keep no folder of."""

from __future__ import annotations

from stepscope.regex import regex

LIBRARIES = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchmetrics", "functorch", "triton"),
        *("transformers", "accelerate", "datasets", "tokenizers", "peft", "trl", "diffusers", "timm", "einops"),
        *("lightning", "pytorch_lightning", "lightning_fabric", "ignite", "fairseq", "deepspeed", "megatron", "apex"),
        *("xformers", "flash_attn", "flashinfer", "bitsandbytes", "transformer_engine", "mamba_ssm", "liger_kernel"),
        *("vllm", "sglang", "tensorrt_llm", "lmdeploy", "text_generation_server", "xgrammar", "onnxruntime", "optimum"),
        *("mmcv", "mmengine", "torchrec", "fbgemm_gpu", "torchao", "torchtune", "torch_xla", "torch_tensorrt"),
        *("torch_geometric", "dgl", "monai", "kornia", "albumentations", "ultralytics", "sentence_transformers"),
        *("numpy", "scipy", "pandas", "pyarrow", "PIL", "cv2", "sklearn", "skimage", "numba", "cupy", "matplotlib"),
        *("decord", "av", "torchcodec", "imageio", "librosa", "soundfile", "sentencepiece", "tiktoken", "webdataset"),
        *("tqdm", "wandb", "tensorboard", "tensorboardX", "mlflow", "loguru", "rich", "absl", "yaml", "requests"),
        *("fsspec", "safetensors", "huggingface_hub", "ray", "dask", "joblib", "hydra"),
        *("omegaconf", "pydantic", "fastapi", "starlette", "uvicorn", "uvloop", "zmq", "aiohttp", "grpc", "click"),
        *("IPython", "ipykernel", "tornado", "_pytest", "pytest", "pluggy", "stepscope"),
        *("jax", "jaxlib", "flax", "optax", "tensorflow", "keras", "tensorflow_datasets"),
    )
)
"""Top-level packages whose frames are not the user's own code."""

FRAMEWORK_FILES = frozenset(
    f"{name}.py"
    for name in (
        # jax/_src and jaxlib
        *("pjit", "pxla", "partial_eval", "mlir", "compiler", "dispatch", "linear_util", "api_util", "array", "stages"),
        *("sharding_impls", "named_sharding", "profiler", "tree_util", "traceback_util", "xla_bridge", "batching"),
        *("custom_derivatives", "custom_jvp_call", "source_info_util", "dtypes", "lax_numpy", "lax", "ufuncs", "ad"),
        *("reductions", "indexing", "array_methods", "control_flow", "loops", "core", "api", "monitoring"),
        *("xla_metadata", "compilation_cache", "basearray", "abstract_arrays", "pretty_printer", "mesh", "layout"),
        *("weakref_lru_cache", "slicing", "ufunc_api", "array_constructors", "array_creation", "tensor_contractions"),
        *("index_tricks", "partition_spec", "shard_map", "pmap", "prng", "ad_checkpoint", "custom_batching", "hijax"),
        *("pallas_call", "multihost_utils", "xla_client", "serialize_executable", "pytree_serialization"),
        # tensorflow, keras and torch_xla
        *("polymorphic_function", "tracing_compilation", "concrete_function", "atomic_function", "function_type_utils"),
        *("func_graph", "execute", "tensor_conversion_registry", "constant_op", "iterator_ops", "dataset_ops", "nest"),
        *("gen_math_ops", "gen_dataset_ops", "gen_array_ops", "backprop", "data_adapter", "traceback_utils"),
        *("callback_list", "epoch_iterator"),
        *("xla_model", "parallel_loader", "dynamo_bridge"),
    )
)
"""Files of frameworks whose profiler keeps no more of a path than this (XPlane)."""

LIBRARY_FILES = FRAMEWORK_FILES | frozenset(
    f"{name}.py"
    for name in (
        # numpy, of 1 and 2, and Pillow: what makes batches of JAX and TensorFlow
        *("numeric", "fromnumeric", "_methods", "multiarray", "shape_base", "_shape_base_impl", "function_base"),
        *("_function_base_impl", "twodim_base", "_twodim_base_impl", "stride_tricks", "_stride_tricks_impl"),
        *("arraysetops", "_arraysetops_impl", "arraypad", "_arraypad_impl", "nanfunctions", "_nanfunctions_impl"),
        *("_histograms_impl", "_ufunclike_impl", "_type_check_impl", "npyio", "_npyio_impl", "_index_tricks_impl"),
        *("einsumfunc", "arrayprint", "overrides", "_ufunc_config", "_linalg", "_pocketfft", "Image", "ImageFile"),
    )
)
"""The same of what they use."""

INSTALLED = "site-packages/…/"
"""In front of a file's name: a package's, of which is not known."""

LIBRARY_FUNCTIONS = {
    # tensorflow/python/framework/ops.py: how a tensor is read
    "ops.py": regex(r"_?numpy(?:_internal)?|__(?:float|int|bool|index|array|len|format|repr|str)__"),
    # jax/_src/nn/functions.py: what jax.nn computes
    "functions.py": regex(
        r"_?(?:relu6?|squareplus|softplus|sparse_plus|soft_sign|sigmoid|sparse_sigmoid|silu|mish|log_sigmoid|elu|selu"
        r"|celu|gelu|glu|leaky_relu|hard_(?:tanh|sigmoid|silu)|identity|(?:log_)?softmax|logsumexp|log1mexp"
        r"|standardize|one_hot|dot_product_attention)(?:_\w+)?"
    ),
}
"""Of files that the user may have, too, the functions that are a framework's."""


def is_no_place(file: str) -> bool:
    """Whether a file is a package's that nobody could find by this name."""
    return file in LIBRARY_FILES or file.startswith(INSTALLED)
