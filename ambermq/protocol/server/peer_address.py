"""The address of a peer, as limits count it.

Rule 1. A peer of this machine has no address: it comes over the loopback interface or a unix socket.
Rule 2. The addresses of an IPv6 network with a prefix of 64 bits are one: a single machine may use them all.
"""

import ipaddress
from typing import Any, Final

__all__ = ["LOCAL", "address_of"]

LOCAL: Final = ""
"""The address of every peer of this machine."""
_NETWORK_BITS: Final = 64


def address_of(name: Any) -> str:
    """Return the address of a peer by the socket's name for it, `LOCAL` for a peer of this machine."""
    if not isinstance(name, tuple) or not name:
        return LOCAL
    # A link-local address names its interface after a %.
    text = str(name[0]).partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return LOCAL
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))
    return str(address)
