"""The messages, against what real clients send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.remote.messages import (
    KINETO,
    XPLANE,
    ProfileRequest,
    ProfileResponse,
    encoded_monitor_response,
    encoded_response,
    monitor_text,
    terminated_session,
)
from stepscope.wire import field

TENSORFLOW = bytes.fromhex(
    "08f40310c0843d1a0c74726163655f7669657765721a0a6f705f70726f66696c651a0e696e7075745f706970656c696e651a0c6b65726e65"
    "6c5f73746174731a0d6d656d6f72795f7669657765721a0e6d656d6f72795f70726f66696c651a0d6f766572766965775f706167651a0a70"
    "6f645f7669657765721a1074656e736f72666c6f775f73746174731a0978706c616e652e706222250801100218012801380140e581f4d1bb"
    "9384f51848f403520c2f6c6f67732f747261696e312a1c2f6c6f67732f747261696e312f706c7567696e732f70726f66696c653213323032"
    "365f31315f32315f31325f35345f32323a0e6c6f63616c686f73743a39383031"
)
"""What ``tf.profiler.experimental.client.trace`` of TensorFlow 2.21 sends."""


def test_a_real_clients_request_is_understood() -> None:
    request = ProfileRequest.decode(TENSORFLOW)
    assert (request.duration_ms, request.session_id) == (500, "2026_11_21_12_54_22")
    assert (request.host_name, request.repository_root) == ("localhost:9801", "/logs/train1/plugins/profile")
    assert (request.stacks, request.steps, request.emit_xspace, XPLANE in request.tools) == (False, 0, False, True)
    assert request.starts_ns == 1795265662491099365


@pytest.mark.parametrize(
    "request_",
    [
        ProfileRequest(),
        ProfileRequest(duration_ms=2000, stacks=True, repository_root="/a", session_id="b", host_name="c:1"),
        ProfileRequest(steps=5, shapes=True, memory=True, tools=(XPLANE, KINETO), emit_xspace=True, starts_ns=1 << 60),
    ],
)
def test_a_request_is_read_as_it_was_written(request_: ProfileRequest) -> None:
    assert ProfileRequest.decode(request_.encode()) == request_


def test_a_profile_lies_where_its_client_looks() -> None:
    """TensorFlow's client writes tool data to files, and passes ``xspace`` over; JAX's own servers answer in it."""
    in_tool = encoded_response(ProfileRequest(), XPLANE, b"data")
    in_space = encoded_response(ProfileRequest(emit_xspace=True), XPLANE, b"data")
    assert in_tool == field(6, field(1, "xplane.pb") + field(2, b"data"))
    assert in_space == field(8, b"data")
    for message in (in_tool, in_space):
        assert ProfileResponse.decode(message) == ProfileResponse(XPLANE, memoryview(b"data"))
    own = encoded_response(ProfileRequest(emit_xspace=True), KINETO, b"data")
    assert ProfileResponse.decode(own).form == KINETO


def test_what_is_empty_or_nothing_is_told_apart() -> None:
    assert ProfileResponse.decode(b"") == ProfileResponse(data=memoryview(b""))
    assert ProfileResponse.decode(field(7, 1)).empty
    assert ProfileResponse.decode(b"HTTP/1.1 400").garbled
    # A name that is no form known, as a path would be, is none.
    assert ProfileResponse.decode(field(6, field(1, "../../x") + field(2, b"data"))).form == ""


@given(st.binary(max_size=200))
def test_any_bytes_are_read(message: bytes) -> None:
    ProfileRequest.decode(message)
    ProfileResponse.decode(message)
    monitor_text(message)
    terminated_session(message)


def test_what_a_server_says_of_itself() -> None:
    assert monitor_text(encoded_monitor_response("stepscope: 12 steps")) == "stepscope: 12 steps"
