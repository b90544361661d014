"""Plain words for the frozen names of a report: the only place where they get their labels."""

from __future__ import annotations

from stepscope.record import record


@record
class Label:
    """How a category is shown: its words, whether the device works in it, and its terminal colour."""

    words: str
    busy: bool
    colour: str


CATEGORIES: dict[str, Label] = {
    "compute": Label("computing (kernels)", True, "green"),
    "collective": Label("collectives, not hidden", True, "blue"),
    "collective_transfer": Label("transfer between ranks", True, "blue"),
    "collective_wait": Label("waiting for a late rank", True, "bright_blue"),
    "unrecorded": Label("work not recorded", True, "bright_blue"),
    "copy_h2d": Label("copying host to device", True, "cyan"),
    "copy_d2h": Label("copying device to host", True, "bright_cyan"),
    "copy_d2d": Label("copying on the device", True, "cyan"),
    "copy_p2p": Label("copying between devices", True, "bright_cyan"),
    "memset": Label("clearing memory (memset)", True, "bright_green"),
    "host_compute": Label("computing on the host", True, "green"),
    "host_memory": Label("waiting for host memory", False, "bright_cyan"),
    "memory_space": Label("waiting for a local copy", False, "cyan"),
    "peer": Label("waiting for another core", False, "bright_blue"),
    "input": Label("waiting for input data", False, "red"),
    "infeed": Label("waiting for infeed data", False, "red"),
    "sync": Label("host blocked by a sync", False, "magenta"),
    "launch": Label("host launching work", False, "yellow"),
    "launch_latency": Label("launch latency", False, "bright_yellow"),
    "python": Label("Python between ops", False, "bright_magenta"),
    "compile": Label("compiling, loading code", False, "bright_red"),
    "graph_build": Label("building the graph", False, "bright_red"),
    "allocator": Label("allocating memory", False, "bright_yellow"),
    "copy_staging": Label("staging pageable copies", False, "cyan"),
    "transfer": Label("sending data to it", False, "cyan"),
    "checkpoint_io": Label("checkpoint reads, writes", False, "bright_red"),
    "gc": Label("Python garbage collector", False, "bright_magenta"),
    "profiler": Label("the profiler itself", False, "white"),
    "dependency": Label("waiting for other stream", False, "bright_blue"),
    "device_latency": Label("device latency", False, "white"),
    "unknown_host": Label("host, cause unrecorded", False, "white"),
    "unknown_device": Label("device, cause unrecorded", False, "white"),
}


def words(category: str, bottleneck: str) -> str:
    """A category in words; what is compiled and loaded while graphs are captured is the capture's."""
    capturing = category == "compile" and bottleneck == "capture"
    return "capturing graphs, loading code" if capturing else CATEGORIES[category].words


def works(category: str) -> bool:
    """Whether anything is done in it: a kernel that spins until the last rank comes keeps its device busy and waits."""
    return CATEGORIES[category].busy and category != "collective_wait"


PHASES: dict[str, str] = {
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "communication": "communication",
    "optimizer": "optimizer",
    "between_steps": "idle before the first op",
    "unknown": "phase not recorded",
}

BOTTLENECKS: dict[str, str] = {
    "device": "the device's own work sets the step time",
    "input": "loading input data sets the step time",
    "sync": "waits of the host for the device set the step time",
    "launch": "the host's launching sets the step time",
    "copy": "copies set the step time",
    "host_memory": "transfers to and from host memory set the step time",
    "memory_space": "copies between the device's memories set the step time",
    "peer": "waits of devices and cores for each other set the step time",
    "communication": "communication between ranks sets the step time",
    "python": "Python code between ops sets the step time",
    "compile": "compilation sets the step time",
    "graph_build": "building the graph sets the step time",
    "transfer": "sending data to the device sets the step time",
    "allocator": "allocating memory sets the step time",
    "checkpoint_io": "checkpoints set the step time",
    "gc": "Python's garbage collector sets the step time",
    "profiler": "the profiler itself sets the step time",
    "dependency": "waits of one stream for another set the step time",
    "device_latency": "the time from queued to begun sets the step time",
    "start_up": "the host's start-up work sets the step time",
    "capture": "it records how graphs are captured",
    "host": "the host's own work sets the step time",
    "unrecorded": "work that was not recorded sets the step time",
    "unknown": "what sets the step time was not recorded",
}

PREDICTION_BASES: dict[str, str] = {"first_order": "first-order", "replay": "simulated"}


def bottleneck(name: str) -> str:
    """Plain words for a bottleneck; a name this version does not know stands for itself."""
    return BOTTLENECKS.get(name, f"{name} sets the step time")
