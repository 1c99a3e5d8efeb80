"""The end of the validity of X.509 certificates, read from their PEM text. Pure: bytes in, seconds out.

    Certificate    SEQUENCE { tbsCertificate, ... }
    tbsCertificate SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity, ... }
    validity       SEQUENCE { notBefore, notAfter }         each UTCTime or GeneralizedTime (RFC 5280, 4.1.2.5)

Rule: `ssl` checks certificates. This module only reads their end, so what it cannot read has none.
"""

import binascii
import re
from base64 import b64decode
from calendar import timegm
from typing import Final, NamedTuple

__all__ = ["certificate_ends"]

_PEM: Final = re.compile(rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----(.+?)-----END", re.DOTALL)
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_LONG: Final = 0x80
_LENGTH_BYTES_MAX: Final = 4
_CENTURY: Final = 50
"""A UTCTime below this year of its century is after 2000."""
_FIELDS_BEFORE_VALIDITY: Final = 3
_DATE: Final = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z")


class _Element(NamedTuple):
    """One element of DER."""

    tag: int
    content: bytes
    rest: bytes
    """The bytes after it."""


def certificate_ends(pem: bytes) -> list[int]:
    """Return the end of each certificate in a PEM text, in seconds since 1970; without those that cannot be read."""
    ends = []
    for text in _PEM.findall(pem):
        try:
            ends.append(_end_of(b64decode(text)))
        except (binascii.Error, ValueError):
            continue
    return ends


def _end_of(certificate: bytes) -> int:
    """Return the notAfter of a certificate in DER. Raises ValueError."""
    element = _element(_element(_element(certificate).content).content)
    if element.tag == _VERSION:
        element = _element(element.rest)
    for _ in range(_FIELDS_BEFORE_VALIDITY):
        element = _element(element.rest)
    return _seconds(_element(_element(element.content).rest))


def _element(data: bytes) -> _Element:
    """Return the first element of DER. Raises ValueError if it is cut."""
    if len(data) < 2:
        raise ValueError("no element")
    length, start = data[1], 2
    if length & _LONG:
        start += length & ~_LONG
        if not 2 < start <= 2 + _LENGTH_BYTES_MAX:
            raise ValueError("the length is not one of DER")
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise ValueError("a cut element")
    return _Element(data[0], data[start : start + length], data[start + length :])


def _seconds(time: _Element) -> int:
    text = time.content
    if time.tag == _UTC_TIME:
        text = (b"20" if int(text[:2]) < _CENTURY else b"19") + text
    elif time.tag != _GENERALIZED_TIME:
        raise ValueError("not a time")
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError("not a time in UTC")
    return timegm((*map(int, found.groups()), 0, 0, 0))
