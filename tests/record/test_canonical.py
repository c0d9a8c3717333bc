"""Canonical JSON against the reference library, and what a record may not hold."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from flowproof.canonical import canonical, printable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(codec="utf-8"))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_bytes_are_those_of_rfc_8785(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]  # any JSON value


def test_names_are_sorted_by_utf_16_code_units() -> None:
    assert canonical({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


def test_a_float_is_refused() -> None:
    with pytest.raises(TypeError, match="floating-point"):
        canonical({"a": [1.5]})


def test_undecodable_bytes_of_a_path_become_escapes() -> None:
    assert printable(b"/tmp/\xff".decode("utf-8", "surrogateescape")) == "/tmp/\\udcff"
