"""What four tuning guides promise their reader, statement by statement, and the command that shows it here.

A: TensorFlow, "Optimize GPU performance with the Profiler"; B: TensorFlow 1, Timeline; C: PyTorch Profiler on
synchronisation points; D: PyTorch/XLA, performance debugging on Cloud TPU VMs. The test of a statement is the function
``test_<id>_…`` of this folder. ``docs/guides-coverage.md`` is made of this table.
"""

from __future__ import annotations

from typing import NamedTuple

GUIDES = {
    "A": ("TensorFlow: optimise GPU performance with the profiler", "https://www.tensorflow.org/guide/gpu_performance_analysis"),
    "B": ("TensorFlow 1: Timeline and run metadata", "guides/tensorflow-1.md"),
    "C": ("PyTorch Profiler: synchronisation points", "guides/what-if.md"),
    "D": ("PyTorch/XLA: profiling on TPU VMs", "guides/record-xla.md"),
}  # fmt: skip
"""Letter to title, and where to read more."""

REPORT = "stepscope diagnose PROFILE"
TABLES = "stepscope diagnose PROFILE -v"
PAGES = "stepscope view PROFILE"
QUERY = 'stepscope query PROFILE "SELECT …"'
COMPARE = "stepscope compare BEFORE AFTER"
WHAT_IF = "stepscope what-if PROFILE"
RUN = "stepscope run train.py"
CAPTURE = "stepscope capture HOST:PORT"
GRADIENTS = "stepscope diagnose PROFILE --params N"
ESTIMATE = f"{GRADIENTS} --bandwidth RATE"
SYNTHETIC = "stepscope run --experiment synthetic-input train.py"


class Statement(NamedTuple):
    """One promise."""

    id: str
    promise: str
    command: str = REPORT
    gpu: bool = False
    """Whether only a GPU or TPU makes such a recording: it is shown on a profile that was made."""


STATEMENTS = (
    Statement("A1", "A model too small for a GPU is told so: launching costs more than computing", gpu=True),
    Statement("A2", "There is an order in which to work, one change at a time"),
    Statement("A3", "What one GPU does alone comes before what many exchange"),
    Statement("A4", "Ops that run eagerly are told apart from a `tf.function`", gpu=True),
    Statement("A5", "The overview gives the step time and where it goes"),
    Statement("A6", "The overview gives the device's share of the step", gpu=True),
    Statement("A7", "The overview gives the share of ops on host and device", gpu=True),
    Statement("A8", "The overview gives the share of 16-bit kernels", gpu=True),
    Statement("A9", "The trace has rows of name scopes and of TensorFlow's ops", PAGES),
    Statement("A10", "Forward pass, loss, backward pass and optimizer are told apart", TABLES, gpu=True),
    Statement("A11", "What each stream does, computing or copying, is told", QUERY, gpu=True),
    Statement("A12", "A busy device with hidden copies and no gaps is called healthy", gpu=True),
    Statement("A13", "A GPU that waits for input is told so, on whichever thread it waits", gpu=True),
    Statement("A14", "Whether those who prepare batches work or wait is told", gpu=True),
    Statement("A15", "The iterator of tf.data that holds up the others is named with its settings", TABLES, gpu=True),
    Statement("A16", "A run on synthetic batches says how much of the input is real", SYNTHETIC),
    Statement("A17", "Copies of the batch remain with synthetic batches", SYNTHETIC),
    Statement("A18", "Advice on input fits the pipeline: nothing is advised that it has", gpu=True),
    Statement("A19", "The gap between steps has a number and a cause", TABLES, gpu=True),
    Statement("A20", "Compiling, input, launching, exchanging, copies and computing are told apart", TABLES, gpu=True),
    Statement("A21", "Threads of tf.data that take cores from the launching ones are told", gpu=True),
    Statement("A22", "`TF_GPU_THREAD_MODE=gpu_private` is the cure of that", gpu=True),
    Statement("A23", "Callbacks and metrics between steps are named with their lines"),
    Statement("A24", "A run without callbacks says what they cost", "stepscope run --experiment no-callbacks train.py"),
    Statement("A25", "`steps_per_execution` is advised against callbacks", gpu=True),
    Statement("A26", "A `tf.while_loop` is advised for loops of one's own", gpu=True),
    Statement("A27", "The latency from a launch to its start is measured", TABLES, gpu=True),
    Statement("A28", "The share of the step that waits for launches is told, whatever their latency", gpu=True),
    Statement("A29", "Small gaps between kernels are counted and sized", TABLES, gpu=True),
    Statement("A30", "Ops have count, total, mean and whether they are tiny", TABLES, gpu=True),
    Statement("A31", "Many small ops are to be concatenated and vectorised", gpu=True),
    Statement("A32", "`jit_compile` is advised where launching sets the pace", gpu=True),
    Statement("A33", "Of a single op it is told where it ran", TABLES, gpu=True),
    Statement("A34", "Ops on the host are told of `set_log_device_placement`, and what it wrote is read", gpu=True),
    Statement("A35", "`tf.unique` is named, and `OneDeviceStrategy` advised", gpu=True),
    Statement("A36", "Excessive copies are a finding", gpu=True),
    Statement("A37", "Copies that nothing hides are measured", TABLES, gpu=True),
    Statement("A38", "A copy leads to the op that made it", TABLES, gpu=True),
    Statement("A39", "Copies at the same place of every step are told from others", TABLES, gpu=True),
    Statement("A40", "Of each kernel it is told whether it could use tensor cores, and does", TABLES, gpu=True),
    Statement("A41", "Kernels have grid, block, registers, shared memory and occupancy", TABLES, gpu=True),
    Statement("A42", "16-bit products that miss the tensor cores are told", gpu=True),
    Statement("A43", "Sizes are to be multiples of 8, in 8 bits of 16", gpu=True),
    Statement("A44", "Convolutions need no padding", gpu=True),
    Statement("A45", "Memory-bound ops in a row are to be fused by XLA", gpu=True),
    Statement("A46", "The advised 16-bit policy fits the device", gpu=True),
    Statement("A47", "One change at a time is compared with the run before", COMPARE),
    Statement("A48", "What 16 bits would gain is predicted, also of a device without a name", gpu=True),
    Statement("A49", "Of memory-bound work 16 bits gain no more than memory allows", gpu=True),
    Statement("A50", "Static and dynamic loss scaling are weighed", gpu=True),
    Statement("A51", "A softmax in fp16 is to be kept in fp32", gpu=True),
    Statement("A52", "The levels of XLA's clustering, and their memory, are told", gpu=True),
    Statement("A53", "Shapes that change are told to make XLA compile anew", gpu=True),
    Statement("A54", "From one GPU to several there is an efficiency, and what eats the rest", COMPARE, gpu=True),
    Statement("A55", "The share of communication is told", gpu=True),
    Statement("A56", "Concatenating and splitting gradients around an exchange is told", gpu=True),
    Statement("A57", "Memory that is nearly full is told, as the device has no more", gpu=True),
    Statement("A58", "All-reduces are counted, so that those show that are not needed", gpu=True),
    Statement("A59", "Of an all-reduce waiting is told from transfer", "stepscope diagnose FOLDER -v"),
    Statement("A60", "A replica that is late is named with its cause", "stepscope diagnose FOLDER"),
    Statement("A61", "GPUs that compute one after another are told", gpu=True),
    Statement("A62", "All-reduces are a phase of their own", TABLES, gpu=True),
    Statement("A63", "What an all-reduce should take is estimated, by a bandwidth that is given", ESTIMATE, gpu=True),
    Statement("A64", "Gradients of TensorFlow have four bytes, whatever the precision", GRADIENTS, gpu=True),
    Statement("A65", "A larger batch is predicted", f"{WHAT_IF} --batch K", gpu=True),
    Statement("A66", "GPUs that wait for each other's launching threads are told", gpu=True),
    Statement("A67", "All GPUs stand on one axis, so that their skew is seen", PAGES, gpu=True),
    Statement("A68", "A GPU's own launching threads are advised, with their number", gpu=True),
    Statement("A69", "What Keras wrote for TensorBoard is read from its log directory", "stepscope diagnose LOGDIR"),
    Statement("A70", "Memory has phases, shapes, types and fragmentation", TABLES, gpu=True),
    Statement("A71", "Copies within and between devices are listed", TABLES, gpu=True),
    Statement("B1", "Run metadata is read"),
    Statement("B2", "Every variant of a Timeline is read"),
    Statement("B3", "Sessions of a script that knows nothing of it are recorded", RUN),
    Statement("B4", "A first run that warms up is told"),
    Statement("B5", "Run metadata becomes a Timeline", "stepscope convert run.pb run.timeline.json"),
    Statement("B6", "Every device has its rows", PAGES, gpu=True),
    Statement("B7", "A GPU's row is the launching of its nodes, not its time", TABLES, gpu=True),
    Statement("B8", "The row of all streams counts once", TABLES, gpu=True),
    Statement("B9", "Streams of a second GPU under the first one's name are not taken for the first's", gpu=True),
    Statement("B10", "A GPU without kernels is told to lack CUPTI", gpu=True),
    Statement("B11", "Lanes are not taken for threads", PAGES, gpu=True),
    Statement("B12", "What takes longest stands first", TABLES, gpu=True),
    Statement("B13", "Layers have their costs", TABLES, gpu=True),
    Statement("B14", "Nodes have their placement", QUERY, gpu=True),
    Statement("B15", "Independent parts of a graph that share a stream are told", gpu=True),
    Statement("B16", "Of an op such as a resize it is told whether the CPU or the GPU does it", TABLES, gpu=True),
    Statement("B17", "Waiting to dequeue is input, and the node is named"),
    Statement("B18", "Producers that are too slow are to be more"),
    Statement("B19", "How full a queue was is read from summaries", TABLES),
    Statement("B20", "Nodes have what they put out and allocated", TABLES, gpu=True),
    Statement("B21", "Remedies are those of TensorFlow 1", gpu=True),
    Statement("C1", "What the profiler's trace handler writes is read, with steps and lines"),
    Statement("C2", "Ranges of `record_function` have their time on host and device", TABLES, gpu=True),
    Statement("C3", "The trace is shown", "stepscope diagnose PROFILE --format html -o report.html"),
    Statement("C4", "A busy device does not hide the waits", gpu=True),
    Statement("C5", "A `nonzero` that blocks the host is told, and for how long", TABLES, gpu=True),
    Statement("C6", "A second wait is short, as little is left to wait for", TABLES, gpu=True),
    Statement("C7", "`torch.where` stands in for `nonzero`, and is charged", gpu=True),
    Statement("C8", "Waits that hide behind each other are fixed together", gpu=True),
    Statement("C9", "Sorting and comparing neighbours stands in for `unique`", gpu=True),
    Statement("C10", "`ignore_index` stands in for selecting targets", gpu=True),
    Statement("C11", "A wait of a second is worth what the device loses by it, and no more", gpu=True),
    Statement("C12", "That a wait may pay for itself where little is selected is told", gpu=True),
    Statement("C13", "Every op that waits is listed, whatever its name", TABLES, gpu=True),
    Statement("C14", "`torch.cuda.set_sync_debug_mode` is told, with what it prints", gpu=True),
    Statement("C15", "The loader's options are told", gpu=True),
    Statement("C16", "A run with another loader says what it gains", "stepscope run --experiment workers=8 train.py"),
    Statement("C17", "Copies that make the host wait are told", gpu=True),
    Statement("C18", "Ops, kernels and memory have their views", TABLES, gpu=True),
    Statement("C19", "An A10G is known with its peaks", gpu=True),
    Statement("D1", "A profiler server that was not kept is named as a cause", CAPTURE),
    Statement("D2", "A running job is captured from the command line", CAPTURE),
    Statement("D3", "A running job is captured from the page", PAGES),
    Statement("D4", "`StepTrace` marks and numbers the steps"),
    Statement("D5", "Ranges of `Trace` are found by name", QUERY),
    Statement("D6", "Ranges called forward and backward are said to build the graph", gpu=True),
    Statement("D7", "A value read in the middle of a step is told to cut the graph", gpu=True),
    Statement("D8", "Idle time inside a range of one's own is a finding named after it", gpu=True),
    Statement("D9", "A gap on a TPU is told from what the host did, with and without run ids", gpu=True),
    Statement("D10", "An all-reduce of `cross_replica_sum` is communication", TABLES, gpu=True),
    Statement("D11", "Missing scopes are told, with `XLA_HLO_DEBUG`", gpu=True),
    Statement("D12", "The duty cycle is told", gpu=True),
    Statement("D13", "What the host did in any range of time is told", "stepscope query PROFILE --time A:B", gpu=True),
    Statement("D14", "A transfer on a thread of its own is followed through the wait", TABLES, gpu=True),
    Statement("D15", "A graph that is compiled anew is told with the shape that changed", TABLES, gpu=True),
    Statement("D16", "Building the next step's graph while the device works is healthy", TABLES, gpu=True),
    Statement("D17", "Scopes that are scattered over the step are summed", TABLES, gpu=True),
    Statement("D18", "Reading the loss in every step is told", gpu=True),
    Statement("D19", "The counters of the metrics report are read: compilations, transfers, fall-backs", RUN),
    Statement("D20", "Every core has its own figures", TABLES),
    Statement("D21", "The ranks of a job are read together", "stepscope diagnose FOLDER", gpu=True),
    Statement("D22", "The way to a job on another machine is told", CAPTURE),
    Statement("D23", "Profiler plugins that shut each other out are told", "stepscope doctor"),
    Statement("D24", "A capture is bounded in time and size", f"{CAPTURE} --duration 2s --max-bytes N"),
    Statement("D25", "A step that was cut off is left out", gpu=True),
)  # fmt: skip
