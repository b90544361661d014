"""The function a kernel's name stands for, whether the profile wrote it demangled, mangled or plain."""

from __future__ import annotations

from stepscope.names.remembered import remembered
from stepscope.regex import regex

LONGEST = 16_384
"""Characters of a name that are read; real names end earlier, and hostile ones must not cost time."""

ANONYMOUS = regex(r"\(anonymous namespace\)::|<unnamed>::")
_OPENING = {">": "<", ")": "(", "]": "[", "}": "{"}
_LENGTH = regex(r"(\d{1,4})")
_PLAIN = regex(r"_ZL?(\d{1,4})")
"""A mangled function outside of all namespaces: the length of its name follows."""
_WRAPPER = regex(r"(?:^|::)(?:kentry|device_kernel|kernel2?|kernel_entry)$")


@remembered
def base_name(text: str) -> str:
    """The qualified function name: no return type, template arguments or parameters.

    >>> base_name("void at::native::reduce_kernel<512, 1, float>(float)"), base_name("_ZN2ck4gemmILi1EEE")
    ('at::native::reduce_kernel', 'ck::gemm')
    """
    if text.startswith("_ZN"):
        return _mangled_base(text)
    if plain := _PLAIN.match(text):
        return text[plain.end() : plain.end() + int(plain[1])]
    if text.startswith(("Memcpy ", "Memset ")):
        return text
    opened: list[str] = []
    outside: list[str] = []
    for char in ANONYMOUS.sub("", text):
        if char in "<([{":
            opened.append(char)
        elif char not in _OPENING:
            if not opened:
                outside.append(char)
        elif char != ">" or (opened and opened[-1] == "<"):
            # A ">" inside parentheses is a comparison; other brackets also close what was left open inside.
            while opened and opened.pop() != _OPENING[char]:
                pass
    words = "".join(outside).split()
    return words[-1] if words else text


def subject(text: str) -> str:
    """The part of a name that tells what the kernel does, in lower case.

    That is its function, but of a wrapper (``cutlass::Kernel2<...>``) the template arguments too.
    """
    base = base_name(text).lower()
    return text.lower() if _WRAPPER.search(base) else base


def without_parameters(text: str) -> str:
    """A demangled name without its list of parameters.

    >>> without_parameters("void copy<float, f(int)>(float*, void (*)(int))")
    'void copy<float, f(int)>'
    """
    if not text.endswith(")"):
        return text
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return text[:at]
    return text


def _mangled_base(text: str) -> str:
    """The nested name of an Itanium-mangled symbol, as far as its plain identifiers go."""
    parts: list[str] = []
    at = len("_ZN")
    while match := _LENGTH.match(text, at):
        begin = match.end()
        at = begin + int(match[1])
        parts.append(text[begin:at])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))
