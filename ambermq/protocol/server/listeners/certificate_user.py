"""The user that a verified client certificate names.

Rule 1. The user is the first of URI, DNS name and e-mail address of subjectAltName, else the common name.
Rule 2. `tls_user_from` chooses one of these kinds; a certificate without it names no user.
Rule 3. Of several names of one kind the first one counts.
"""

from collections.abc import Mapping
from typing import Any, Final

from ambermq.protocol.server.listeners.listener_config import CERTIFICATE_NAMES

__all__ = ["certificate_user"]

_ALTERNATIVE: Final = {"URI": "uri", "DNS": "dns", "email": "email"}


def certificate_user(certificate: Mapping[str, Any], kind: str = "") -> str | None:
    """Return the user of a certificate as `ssl` decodes it; None if it names none. `kind` is `tls_user_from`."""
    names: dict[str, str] = {}
    for form, value in certificate.get("subjectAltName", ()):
        if form in _ALTERNATIVE:
            names.setdefault(_ALTERNATIVE[form], value)
    for relative in certificate.get("subject", ()):
        for form, value in relative:
            if form == "commonName":
                names.setdefault("cn", value)
    kinds = (kind,) if kind else CERTIFICATE_NAMES
    return next((names[one] for one in kinds if names.get(one)), None)
