"""``stepscope convert``: a profile in another format."""

from __future__ import annotations

import click

from stepscope.cli import outputs
from stepscope.cli.progress import ProgressBar
from stepscope.cli.timings import now, timings_option, watched


@click.command()
@click.argument("path", metavar="IN")
@click.argument("out", metavar="OUT")
@outputs.to_option
@outputs.force_option
@timings_option
def convert(path: str, out: str, to: str | None, force: bool) -> int:
    """Write a profile in another format.

    IN is a profile in any format stepscope reads. What OUT's name ends in says the format ("stepscope formats" lists
    them all): .stepscope is stepscope's own, which opens at once, .json is for Perfetto, .xplane.pb for XProf, and a
    name without an ending is a folder of Parquet files, one per table.

    Exit status: 0 done, 1 the profile could not be read, 2 wrong usage, 3 the profile was damaged and OUT holds what
    was left of it.
    """
    from stepscope import pipeline

    writer = outputs.chosen_writer(out, to)
    outputs.check_target(out, path, force)
    now("reading")
    with ProgressBar() as progress:
        profile = pipeline.open_profile(path, progress=watched(progress))
    now("writing")
    outputs.write(profile.trace, out, writer)
    return profile.exit_status
