"""What to write instead where Python around the ops takes the time of a host that computes."""

from __future__ import annotations

from stepscope.analysis.workload import Feature
from stepscope.diagnosis.remedies.fitting import INFERS, PYTORCH, TENSORFLOW, TRAINS, Remedies, RemedyPart

_TRAINER, _LIGHTNING = Feature.TRAINER, Feature.LIGHTNING

OWN_FUNCTIONS: Remedies = {
    PYTORCH: """\
In your own functions named above, ask once for what is the same in each step, and make loops over numbers or small
tensors one op on a larger tensor.""",
    None: """\
In your own functions named above, ask once for what is the same in each step, and make loops over numbers or small
arrays one op on a larger one.""",
}

SAVES_AT_MOST: Remedies = {None: "That saves at most what is told here."}

OWN_SAVE_AT_MOST: Remedies = {framework: f"{text} {SAVES_AT_MOST[None]}" for framework, text in OWN_FUNCTIONS.items()}

AROUND_OPS: Remedies = {
    PYTORCH: (
        RemedyPart(
            "- Give each step more to compute: a larger batch, where the model learns from it as well.",
            purposes=TRAINS,
        ),
        RemedyPart(
            "    TrainingArguments(..., per_device_train_batch_size=32)",
            purposes=TRAINS,
            given=(_TRAINER,),
        ),
        RemedyPart("- Compute more inputs in one call.", purposes=INFERS, certain=True),
        RemedyPart(
            """\
- Compile the model (measure it: compiling takes a while, and changing shapes compile anew):
    model = torch.compile(model)""",
            since=(2, 0),
            unless=(Feature.COMPILED, _TRAINER),
        ),
        RemedyPart(
            """\
- Compile the model (measure it: compiling takes a while, and changing shapes compile anew):
    TrainingArguments(..., torch_compile=True)""",
            given=(_TRAINER,),
            unless=(Feature.COMPILED,),
        ),
        RemedyPart(
            """\
- Log and show less often:
    TrainingArguments(..., logging_steps=100, disable_tqdm=True)""",
            purposes=TRAINS,
            given=(_TRAINER,),
        ),
        RemedyPart(
            """\
- Log and show less often:
    Trainer(..., log_every_n_steps=100, enable_progress_bar=False)""",
            purposes=TRAINS,
            given=(_LIGHTNING,),
        ),
    ),
    None: "- Compute more in each call.",
}

IN_FEW_OPS: Remedies = {
    PYTORCH: """\
Do the work of the loop in few ops on larger tensors: stack what it goes over, `torch.where` for an `if`, an index
tensor for picking.
- Of every pair `a[:, None] - b[None]`, of lists of parameters `torch._foreach_mul_` and its kind.""",
    None: "Do the work of the loop in few ops on larger arrays.",
}

IN_ONE_CALL: Remedies = {
    PYTORCH: """\
Call the module once for all that it goes over: a cell that is called for each time step is `nn.LSTM`, `nn.GRU` or
`nn.RNN` on the whole sequence, samples are one batch.""",
    None: "Call it once for all that it goes over.",
}

PARAMETERS_AT_ONCE: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
Update all parameters in one call; results differ by rounding:
    optimizer = torch.optim.{name}(params, ..., fused=True)""",
            purposes=TRAINS,
            since=(2, 0),
            unless=(Feature.FUSED, _TRAINER),
        ),
        RemedyPart(
            """\
Update all parameters in one call; results differ by rounding:
    TrainingArguments(..., optim="adamw_torch_fused")""",
            purposes=TRAINS,
            since=(2, 0),
            given=(_TRAINER,),
            unless=(Feature.FUSED,),
        ),
    ),
    None: "Compute more in each call.",
}

ONE_UPDATE: Remedies = {
    PYTORCH: (
        RemedyPart(
            """\
- It steps {often} times for each time that gradients are cleared: where they are to be accumulated, call
`optimizer.step()` once, behind the last of these batches.""",
            purposes=TRAINS,
        ),
    ),
    None: "- Do once what several batches need once.",
}

READ_AT_ONCE: Remedies = {
    PYTORCH: """\
Read the numbers every N steps (`if step % 100 == 0:`), which saves what is told here.
- Or keep them in one tensor from the beginning (`values.sum().item()`, `values.tolist()`). On a CPU it takes as long to
gather separate tensors first (`torch.stack`).""",
    None: "Read the numbers every N steps, or keep them in one array and read that.",
}

IN_CALLBACKS: Remedies = {
    PYTORCH: (
        """\
Do the work of the callback every N steps (`if step % 100 == 0:`), and compute on whole tensors before one number is
read: each `.item()` is an op, and Python around it.""",
        RemedyPart(
            """\
Lightning's own callbacks are left out by arguments of its Trainer:
    Trainer(..., enable_progress_bar=False, log_every_n_steps=100)""",
            given=(_LIGHTNING,),
        ),
        RemedyPart(
            """\
Logging and the progress bar are set by arguments of the Trainer:
    TrainingArguments(..., logging_steps=100, disable_tqdm=True)""",
            given=(_TRAINER,),
        ),
    ),
    TENSORFLOW: (
        """\
Do the work of the callback every N batches (`if batch % 100 == 0:`). For a batch or two,
`self.model.predict_on_batch(x)` in place of `predict` makes no pipeline and traces nothing anew.""",
        RemedyPart(
            """\
Or let several steps run between two calls of all callbacks:
    model.compile(..., steps_per_execution=10)""",
            since=(2, 4),
        ),
    ),
    None: """\
Do the work of the callback every N steps (`if step % 100 == 0:`), and read one number in place of many.""",
}
