"""What tests of inputs share: either way of inflating."""

from __future__ import annotations

import pytest

from stepscope.inputs import inflate


@pytest.fixture(params=["isal", "zlib"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What inflates: the faster library, or the one of Python."""
    if request.param == "zlib":
        monkeypatch.setattr(inflate, "igzip", None)
    elif inflate.igzip is None:
        pytest.skip("isal is not installed")
    return str(request.param)
