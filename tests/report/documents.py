"""Report documents as the pipeline makes them: fixtures of the renderers and the command line."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema

from stepscope.report import labels, schema

MS = 1_000_000
US = 1_000
Document = dict[str, Any]

_VALIDATOR = jsonschema.Draft202012Validator(schema.load())


def check(document: Document) -> Document:
    """The document, after validating it and checking what a schema cannot: sums, ids and whole numbers."""
    _VALIDATOR.validate(document)
    for row in document["accounting"]:
        assert sum(row["parts"].values()) == row["dur_ns"]
    ids = [finding["id"] for finding in document["findings"]]
    assert len(set(ids)) == len(ids)
    assert set(document["plan"]) <= set(ids)
    _assert_whole(document)
    return document


def _assert_whole(node: Any, key: str = "") -> None:
    if isinstance(node, dict):
        for name, value in node.items():
            _assert_whole(value, f"{key}/{name}")
    elif isinstance(node, list):
        for value in node:
            _assert_whole(value, key)
    elif "_ns" in key:
        assert not isinstance(node, float), key


def place(**given: Any) -> dict[str, Any]:
    keys = ("file", "line", "function", "op", "module", "annotation")
    return {key: given.get(key) for key in keys}


def evidence(name: str, start_ns: int, dur_ns: int, **given: Any) -> dict[str, Any]:
    defaults = {"track": "thread 4211 (python)", "device": None, "step": None}
    return {**defaults, **given, "name": name, "start_ns": start_ns, "dur_ns": dur_ns}


def finding(rule: str, title: str, **given: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "id": f"{rule}.1",
        "rule": rule,
        "title": title,
        "basis": "measured",
        "confidence": "high",
        "rank": None,
        "device": 0,
        "cost_ns_per_step": None,
        "saving_ns_per_step": None,
        "predicted_step_ns": None,
        "prediction_basis": None,
        "why": "",
        "fix": "",
        "where": [],
        "fix_set": [],
        "evidence": [],
        "not_determined": None,
    }
    return {**defaults, **given}


def kernel(name: str, total_ns: int, **given: Any) -> dict[str, Any]:
    defaults = {"family": None, "precision": None, "tensor_core": "unknown", "count": 1, "share": 0.1}
    return {**defaults, **given, "name": name, "total_ns": total_ns}


def base(parts: dict[str, int], *, devices: int = 1, steps: int = 6) -> Document:
    """A report of like steps with these parts on every device (none: on the host), and no findings."""
    dur = sum(parts.values())
    ids = range(devices) if devices else [None]
    shares = {name: ns / dur for name, ns in parts.items()}
    busy = sum(shares[name] for name in parts if labels.CATEGORIES[name].busy)
    basis = "device" if devices else "host"
    return {
        "schema": schema.REPORT_SCHEMA,
        "tool": {"name": "stepscope", "version": "0.1.0"},
        "profile": {
            "format": "kineto",
            "framework": "PyTorch 2.4.0",
            "files": [{"path": "/data/runs/resnet50.pt.trace.json.gz", "bytes": 1_234_567, "events": 40_123}],
            "ranks": [None],
            "devices": [{"id": at, "name": "NVIDIA H100 80GB HBM3", "kind": "gpu"} for at in range(devices)],
            "host": "node17",
            "complete": True,
            "notices": [],
        },
        "steps": [
            {
                "rank": None,
                "index": at,
                "number": 10 + at,
                "start_ns": at * dur,
                "dur_ns": dur,
                "host_dur_ns": dur - 5_000,
                "basis": basis,
                "inferred": False,
                "complete": True,
                "slow": False,
            }
            for at in range(steps)
        ],
        "accounting": [
            {
                "rank": None,
                "device": device,
                "step": at,
                "phase": "step",
                "start_ns": at * dur,
                "dur_ns": dur,
                "parts": dict(parts),
            }
            for device in ids
            for at in range(steps)
        ],
        "summary": {
            "verdict": "The device computes most of the time: nothing holds it up.",
            "bottleneck": "device",
            "step_time_ns": {"median": dur, "p95": None},
            "steps_used": steps - 2,
            "steps_slow": 0,
            "step_basis": basis,
            "inferred": False,
            "parts_ns_per_step": dict(parts),
            "parts_share": shares,
            "device_busy_share": busy if devices else None,
            "device_busy_share_without_collectives": busy if devices else None,
            "device_ops_share": {"by_count": 0.62, "by_time": 0.875} if devices else {"by_count": 0.0, "by_time": 0.0},
            "low_precision_share": {"by_count": 0.412, "by_time": 0.731 if devices else None},
            "launch_wait_share": 0.01 if devices else None,
            "idle_between_steps_ns": 40_000,
            "idle_within_steps_ns": 60_000,
            "phases_ns_per_step": None,
        },
        "findings": [],
        "plan": [],
        "whatif": {
            "replay_error": None,
            "residual_share": None,
            "reason": "no replay yet",
            "combined_step_ns": None,
        },
        "analyses": {
            "breakdown": [
                {
                    "rank": None,
                    "device": device,
                    "basis": basis,
                    "steps": steps - 2,
                    "step_ns": dur,
                    "parts": [
                        {
                            "category": name,
                            "label": labels.CATEGORIES[name].words,
                            "busy": labels.CATEGORIES[name].busy,
                            "ns_per_step": ns,
                            "share": shares[name],
                        }
                        for name, ns in parts.items()
                    ],
                }
                for device in ids
            ],
        },
    }


def healthy() -> Document:
    document = base({"compute": 91 * MS, "collective": 6 * MS, "launch_latency": 2 * MS, "unknown_device": 1 * MS})
    document["summary"]["device_busy_share_without_collectives"] = 0.91
    document["summary"]["phases_ns_per_step"] = {
        "forward": 30 * MS,
        "loss": 1 * MS,
        "backward": 55 * MS,
        "communication": 6 * MS,
        "optimizer": 5 * MS,
        "between_steps": 0,
        "unknown": 3 * MS,
    }
    return document


def input_bound() -> Document:
    """The device waits for a DataLoader without workers; a sync and launches cost less."""
    document = base(
        {
            "compute": 118_220_000,
            "copy_h2d": 2_410_000,
            "memset": 12_000,
            "input": 55_310_000,
            "sync": 7_150_000,
            "launch": 15_020_000,
            "launch_latency": 910_000,
            "allocator": 204_000,
            "unknown_device": 64_000,
        }
    )
    total = document["summary"]["step_time_ns"]["median"]
    document["summary"] |= {
        "verdict": "The device waits for input data 27.7 % of each step: loading data sets the step time.",
        "bottleneck": "input",
        "phases_ns_per_step": None,
    }
    document["findings"] = [
        finding(
            "input_bound",
            "The device waits for the DataLoader",
            cost_ns_per_step=55_310_000,
            saving_ns_per_step=55_310_000,
            predicted_step_ns=total - 55_310_000,
            prediction_basis="first_order",
            why="Every step the host spends 55.3 ms in `next()` of a DataLoader that loads in the training "
            "process while the device has nothing to do.",
            fix="Load batches in worker processes, ahead of the step that needs them:\n"
            "    DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True)",
            where=[
                place(
                    file="/home/ana/train.py",
                    line=42,
                    function="train_one_epoch",
                    op="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                    annotation="load",
                )
            ],
            evidence=[
                evidence(
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                    12_345_678,
                    61_200_000,
                    step=1,
                )
            ],
        ),
        finding(
            "launch_bound",
            "The host launches small kernels slower than the device runs them",
            confidence="medium",
            basis="modelled",
            cost_ns_per_step=15_020_000,
            saving_ns_per_step=12_000_000,
            predicted_step_ns=total - 12_000_000,
            prediction_basis="first_order",
            why="1,204 kernels per step run shorter than their launch takes.",
            fix='Let one launch run many kernels: `torch.compile(model, mode="reduce-overhead")`, and '
            "`torch.optim.SGD(..., foreach=True)` for the optimizer.",
            where=[place(op="Optimizer.step#SGD.step")],
        ),
        finding(
            "sync_bound",
            "`aten::item` makes the host wait for the device",
            cost_ns_per_step=7_150_000,
            saving_ns_per_step=6_900_000,
            predicted_step_ns=total - 6_900_000,
            prediction_basis="first_order",
            why="The loss is read on the host in every step.",
            fix="Keep the loss on the device and read it every N steps: `loss.detach()`.",
            where=[
                place(file="/home/ana/train.py", line=57, function="train_one_epoch", op="aten::item"),
                place(file="/home/ana/train.py", line=61, op="aten::item"),
                place(op="aten::item"),
            ],
        ),
        finding(
            "exposed_copy",
            "Copies from pageable memory hold the device up",
            cost_ns_per_step=2_410_000,
            saving_ns_per_step=2_200_000,
            basis="modelled",
            confidence="low",
            fix="Pin the batches: `DataLoader(..., pin_memory=True)` and `.to(device, non_blocking=True)`.",
        ),
        finding("tensor_cores_unused", "Tensor cores", not_determined="Record shapes (`record_shapes=True`)."),
    ]
    document["plan"] = ["input_bound.1", "sync_bound.1", "launch_bound.1", "exposed_copy.1"]
    document["profile"]["notices"] = [
        {
            "code": "profile_too_few_steps",
            "text": "Only 4 complete steps: the spread is not known.",
            "count": None,
        }
    ]
    document["analyses"] |= _analyses()
    return document


def _analyses() -> dict[str, Any]:
    minor = finding(
        "exposed_copy",
        "Copies from device to host that nothing hides",
        id="exposed_copy.2",
        cost_ns_per_step=31_000,
        saving_ns_per_step=31_000,
        where=[place(file="/home/ana/train.py", line=70)],
    )
    long_name = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
    )
    return {
        "idle": {
            "per_device": [
                {"device": 0, "total_ns": 480 * MS, "between_steps_ns": 300 * MS, "within_steps_ns": 180 * MS}
            ],
            "gaps": [
                {
                    "device": 0,
                    "step": 2,
                    "start_ns": 401 * MS,
                    "dur_ns": 61 * MS,
                    "crosses_step": True,
                    "parts": {"input": 58 * MS, "launch": 3 * MS},
                    "thread": "thread 4211 (python)",
                    "op": long_name,
                    "launch": "cudaLaunchKernel",
                    "blocking": None,
                    "where": place(file="/home/ana/train.py", line=42),
                },
                {
                    "device": 0,
                    "step": 3,
                    "start_ns": 700 * MS,
                    "dur_ns": 5 * MS,
                    "crosses_step": False,
                    "parts": {"sync": 5 * MS},
                    "thread": None,
                    "op": "Memcpy DtoH (Device -> Pageable)",
                    "launch": "cudaMemcpyAsync",
                    "blocking": "cudaStreamSynchronize",
                    "where": None,
                },
            ],
        },
        "launch_delay": [{"device": 0, "count": 7224, "median_ns": 8_400, "p95_ns": 31_000, "waiting_share": 0.08}],
        "syncs": [
            {
                "op": "aten::item",
                "call": "cudaStreamSynchronize",
                "count": 6,
                "per_step": 1.0,
                "blocked_ns_per_step": 61 * MS,
                "cost_ns_per_step": 7_150_000,
                "where": place(file="/home/ana/train.py", line=57),
            },
        ],
        "copies": [
            {
                "direction": "h2d",
                "source_memory": "pageable",
                "target_memory": "device",
                "op": "aten::copy_",
                "count": 12,
                "per_step": 2.0,
                "bytes": 231_211_008,
                "bytes_per_step": 38_535_168,
                "exposed_ns_per_step": 2_410_000,
                "every_step": True,
                "launch_link": "recorded",
                "where": None,
            },
        ],
        "kernels": [
            kernel(
                "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw",
                210 * MS,
                precision="tf32",
                tensor_core="yes",
                count=318,
                share=0.31,
                family="cudnn",
            ),
            kernel(long_name, 90 * MS, precision="fp32", tensor_core="no", count=964, share=0.13),
        ],
        "precision": {
            "low_precision_share": {"by_count": 0.412, "by_time": 0.731},
            "tensor_core_share": {"yes": 0.7, "no": 0.2, "unknown": 0.1},
            "eligible_unused_ns_per_step": 4 * MS,
        },
        "placement": {"host_ops": 312, "device_ops": 5123},
        "minor_findings": [minor],
    }


def cpu_only() -> Document:
    document = base({"host_compute": 80 * MS, "input": 12 * MS, "python": 6 * MS, "unknown_host": 2 * MS}, devices=0)
    document["summary"] |= {
        "verdict": "No device was recorded; on the host, computing takes 80 % of each step.",
        "bottleneck": "host",
        "idle_between_steps_ns": None,
        "idle_within_steps_ns": None,
    }
    document["profile"]["notices"] = [
        {
            "code": "profile_no_device",
            "text": "No device activity was recorded, so device time is not known.",
            "count": None,
        }
    ]
    return document


def sampled() -> Document:
    document = base({"compute": 70 * MS, "unknown_host": 30 * MS})
    document["summary"]["verdict"] = "This profile was sampled: what holds the device up cannot be told from it."
    document["summary"]["bottleneck"] = "unknown"
    document["profile"] |= {"ranks": [0], "world_size": 128}
    document["profile"]["notices"] = [
        {
            "code": "profile_sampled",
            "text": "Launches are missing for 31 % of the kernels: the profile was sampled.",
            "count": 4213,
        }
    ]
    document["findings"] = [
        finding("launch_bound", "Launches", not_determined="Record an unsampled profile."),
        finding("sync_bound", "Waits for the device", not_determined="Record an unsampled profile."),
    ]
    return document


def damaged() -> Document:
    document = healthy()
    document["profile"]["complete"] = False
    document["profile"]["notices"] = [
        {
            "code": "input_truncated",
            "text": "The file ends in the middle of an event at byte 1,230,001; 1 event and 212 bytes were lost.",
            "count": 1,
        },
        {"code": "input_bad_utf8", "text": "A name is not UTF-8, first at byte 991.", "count": 3},
    ]
    return document


def many_devices() -> Document:
    document = base({"compute": 60 * MS, "collective": 25 * MS, "copy_p2p": 2 * MS, "dependency": 13 * MS}, devices=8)
    document["summary"]["device_busy_share_without_collectives"] = 0.62
    document["profile"] |= {"ranks": [3], "world_size": 8}
    return document


def no_steps() -> Document:
    """A profile without steps or devices: nearly everything is absent."""
    document = base({"host_compute": 1}, devices=0, steps=2)
    document["steps"], document["accounting"], document["analyses"] = [], [], {}
    document["summary"] |= {
        "verdict": "The profile holds no activity.",
        "bottleneck": "unknown",
        "step_time_ns": {"median": None, "p95": None},
        "step_basis": None,
        "parts_ns_per_step": {},
        "parts_share": {},
        "device_ops_share": {"by_count": None, "by_time": None},
        "low_precision_share": {"by_count": None, "by_time": None},
        "idle_between_steps_ns": None,
        "idle_within_steps_ns": None,
    }
    document["profile"] |= {"framework": None, "host": None}
    return document


HOSTILE = "[red]x[/red]\x1b[31m\u202e|`<img src=x>`\n# @everyone"
"""A name that tries every way to be taken for markup."""


def hostile() -> Document:
    """Every untrusted text of the report is :data:`HOSTILE`."""
    document = copy.deepcopy(input_bound())
    _poison(document)
    return document


_UNTRUSTED = {
    "path",
    "framework",
    "host",
    "file",
    "function",
    "op",
    "module",
    "annotation",
    "track",
    "name",
    "thread",
    "launch",
    "blocking",
    "call",
    "direction",
    "source_memory",
    "target_memory",
    "precision",
    "title",
    "text",
    "verdict",
    "why",
}


def _poison(node: Any) -> None:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        if key == "tool":
            continue
        if isinstance(value, str) and key in _UNTRUSTED:
            node[key] = HOSTILE
        _poison(node[key])


ALL = {
    make.__name__: make for make in (healthy, input_bound, cpu_only, sampled, damaged, many_devices, no_steps, hostile)
}
