"""The end of certificates, as OpenSSL reads it."""

import datetime as dt
import ssl

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from ambermq.protocol.server.listeners.certificate_expiry import certificate_ends


@pytest.mark.parametrize("year", [2027, 2049, 2050, 2126])
def test_the_end_is_that_of_the_certificate(year: int) -> None:
    """Both forms of a time: RFC 5280 writes years from 2050 on with four digits."""
    end = dt.datetime(year, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
    leaf = trustme.CA().issue_cert("localhost", not_after=end)
    assert certificate_ends(leaf.cert_chain_pems[0].bytes()) == [int(end.timestamp())]


def test_a_chain_has_the_end_of_each() -> None:
    """Text around them is ignored, as in bundles of distributions."""
    ends = [dt.datetime(2030, 1, day, tzinfo=dt.UTC) for day in (2, 1)]
    certificates = [trustme.CA().issue_cert("a", not_after=end).cert_chain_pems[0].bytes() for end in ends]
    text = b"# first\n" + b"\nsubject=CN\n".join(certificates)
    assert certificate_ends(text) == [int(end.timestamp()) for end in ends]
    assert ssl.cert_time_to_seconds("Jan  1 00:00:00 2030 GMT") == certificate_ends(text)[1]


@given(st.binary(max_size=200))
def test_any_bytes_are_no_certificate(content: bytes) -> None:
    """Nothing raises."""
    pem = ssl.DER_cert_to_PEM_cert(content).encode()
    assert certificate_ends(pem) == certificate_ends(content) == []


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_damaged_certificate_raises_nothing(place: int, damage: bytes) -> None:
    """Its end may be another one, or none."""
    der = ssl.PEM_cert_to_DER_cert(_LEAF)
    assert len(certificate_ends(ssl.DER_cert_to_PEM_cert(der[:place] + damage + der[place + 1 :]).encode())) <= 1


_LEAF = trustme.CA().issue_cert("localhost").cert_chain_pems[0].bytes().decode()
