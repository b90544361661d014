"""``stepscope run`` and the session API, against pretended profilers, real processes and the real frameworks."""
