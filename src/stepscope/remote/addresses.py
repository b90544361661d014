"""HOST:PORT as people type it, and whether anything listens there."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from stepscope.errors import StepscopeError, UsageError

CONNECT_S = 10.0
"""A host that does not answer a connection within this time is behind a firewall, or off."""


@dataclass(frozen=True)
class Address:
    """Where a job's profiler server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """As gRPC and people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine alone."""
        return is_loopback(self.host)

    @property
    def file_stem(self) -> str:
        """``host_port``, which is what servers make of an address."""
        return re.sub(r"[^\w.-]", "_", f"{self.host}_{self.port}")

    @property
    def tunnel(self) -> str:
        """The ssh line that makes a job's loopback reachable from here."""
        return f"ssh -N -L {self.port}:localhost:{self.port} {self.host}"


def is_loopback(host: str) -> bool:
    """Whether a name or number means this machine alone.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("node7")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def parsed(text: str) -> tuple[Address, ...]:
    """``HOST:PORT[,HOST:PORT...]``; a prefix ``grpc://`` and repetitions are dropped.

    >>> [str(address) for address in parsed("grpc://node7:9012,[::1]:9012,node7:9012")]
    ['node7:9012', '[::1]:9012']

    Raises UsageError for what is no address.
    """
    return tuple(dict.fromkeys(_one(part.strip()) for part in text.split(",")))


def _one(text: str) -> Address:
    match = re.fullmatch(r"(?:grpc://)?(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s\[\]:/]+)):([0-9]{1,5})", text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise UsageError(f"{text or 'an empty address'}: an address is HOST:PORT, as localhost:9012")
    return Address(match[1] or match[2], int(match[3]))


def check_listening(address: Address) -> None:
    """Connect and hang up. Raises StepscopeError, with what to do, where nothing can be connected to."""
    try:
        socket.create_connection((address.host, address.port), timeout=CONNECT_S).close()
    except socket.gaierror:
        raise StepscopeError(f"{address}: there is no host {address.host}; check its name") from None
    except TimeoutError:
        raise StepscopeError(
            f"{address}: no answer within {CONNECT_S:g} s; a firewall may be in between", _through(address)
        ) from None
    except ConnectionRefusedError:
        raise StepscopeError(f"{address}: nothing listens there", *_refused(address)) from None
    except OSError as error:
        raise StepscopeError(f"{address}: cannot be reached: {error.strerror or error}") from None


def _refused(address: Address) -> list[str]:
    causes = [
        "Is the job running, and does it start its profiler server? PyTorch: stepscope.start_server(PORT); JAX: "
        "jax.profiler.start_server(PORT); TensorFlow: tf.profiler.experimental.server.start(PORT).",
        "PyTorch/XLA's server ends with the object that start_server returns, so the script must keep it: "
        f"server = xp.start_server({address.port}).",
    ]
    return causes if address.is_loopback else [*causes, f"If it listens on its own machine alone: {_through(address)}"]


def _through(address: Address) -> str:
    return f"`{address.tunnel}`, and then stepscope capture localhost:{address.port}"
