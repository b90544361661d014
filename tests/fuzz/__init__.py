"""Fuzzing: every reader is given what its files never should hold. ``docs/fuzzing.md`` says how to run it."""
