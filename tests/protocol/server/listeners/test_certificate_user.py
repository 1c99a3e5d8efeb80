"""The user of a client certificate."""

from typing import Any

import pytest

from ambermq.protocol.server.listeners.certificate_user import certificate_user

SUBJECT = ((("organizationName", "x"),), (("commonName", "carol"),))
NAMES = (("email", "carol@example.org"), ("DNS", "carol.example.org"), ("DNS", "b"), ("URI", "spiffe://carol"))


@pytest.mark.parametrize(
    ("names", "kind", "user"),
    [
        (NAMES, "", "spiffe://carol"),
        (NAMES[:3], "", "carol.example.org"),
        (NAMES[:1], "", "carol@example.org"),
        ((), "", "carol"),
        ((("IP Address", "10.0.0.1"),), "", "carol"),
        (NAMES, "dns", "carol.example.org"),
        (NAMES, "cn", "carol"),
        (NAMES[:1], "uri", None),
    ],
)
def test_the_first_name_is_the_user(names: Any, kind: str, user: str | None) -> None:
    """URI, DNS, e-mail, then the common name; a chosen kind that is missing names no user."""
    assert certificate_user({"subject": SUBJECT, "subjectAltName": names}, kind) == user


def test_a_certificate_without_a_name_has_no_user() -> None:
    """Nor does an empty name."""
    assert certificate_user({}) is None
    assert certificate_user({"subject": ((("commonName", ""),),)}) is None
