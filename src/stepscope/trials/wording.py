"""What to write by hand, where no patch can be made."""

from __future__ import annotations

from stepscope.capture.cures.cure import After, AfterImport, Around, Decorator, Edit, First, Keywords, Shell
from stepscope.capture.cures.places import Place


def by_hand(edit: Edit, place: Place, value: int | str | None) -> str:
    """Lines for a person; code is indented by four spaces. ``value`` is the cure's number, or what stands for it."""
    at = f" in {place['file']}:{place['line']}" if "line" in place else ""
    if isinstance(edit, Keywords):
        given = [f"{name}={code}" for name, code in edit.arguments if code is not None]
        gone = [name for name, code in edit.arguments if code is None]
        text = f"Give the call{at} these arguments:\n    {', '.join(given)}" if given else f"In the call{at}"
        text += f"{' and leave' if given else ' leave'} out {', '.join(gone)}" if gone else ""
    elif isinstance(edit, First):
        text = f"Call it{at} with:\n    {edit.expression}"
    elif isinstance(edit, After):
        text = f"Behind the statement{at} that makes the {edit.what} write:\n    {edit.code.format(target=edit.what)}"
    elif isinstance(edit, Decorator):
        text = f"Above the function{at} write:\n    {edit.code}"
    elif isinstance(edit, Around):
        text = f"Around the call of the model{at} write:\n    {edit.code.format(device=place.get('device', 'cuda'))}"
    elif isinstance(edit, AfterImport):
        text = f"Behind the imports of the script write:\n    {edit.code}"
    elif isinstance(edit, Shell):
        text = f"Before the job is started:\n    export {edit.variable}={edit.value}"
    else:
        text = "\n".join(f"    {line}" for line in edit.text.splitlines())
    return text.replace("{value}", str(value)).replace("{given}", str(place.get("given", "...")))
