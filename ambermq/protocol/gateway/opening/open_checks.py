"""The opens of a connection: what ours says, and why the peer's is refused.

Rule: a refused open is answered with our open and a close, so that the peer reads the reason (transport, 2.4.3).
"""

from typing import Any, Final

from ambermq.protocol.amqp10.performatives.classes import Error, Open
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.protocol.amqp10.types.values import Symbol
from ambermq.protocol.auth.access import Access
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.gateway.links.attach_terms import DELAYED_DELIVERY
from ambermq.protocol.gateway.opening.container_ids import DETECTION, SOLE_CONNECTION

__all__ = ["OFFERED", "PRODUCT", "check_idle_timeout", "check_rules", "check_vhost", "open_properties"]

PRODUCT: Final = {Symbol("product"): "AmberMQ", Symbol("topic-prefix"): "/topics/"}
"""The properties of our open. Qpid JMS writes topics with the prefix where no capability declares them."""

OFFERED: Final = (Symbol("ANONYMOUS-RELAY"), Symbol("SHARED-SUBS"), DELAYED_DELIVERY, SOLE_CONNECTION)
"""The capabilities that our open offers."""


def open_properties(vhost: str) -> dict[Symbol, Any]:
    """Return the properties of our open to a connection of a virtual host."""
    return {**PRODUCT, **DETECTION, Symbol("vhost"): vhost}


def check_vhost(identity: Identity, vhost: str) -> Error | None:
    """Return why a connection may not use the virtual host that its open names; None if it may."""
    scope = identity.scope
    if scope is None or scope.vhost == vhost:
        return None
    why = f"this connection is bound to the virtual host {scope.vhost!r}, not to {vhost!r}"
    return Error(condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS), description=why)


def check_rules(access: Access, identity: Identity, vhost: str) -> Error | None:
    """Return why the rules do not allow a connection to a virtual host; None if they do.

    A connection that waits for its first token has no rules before.
    """
    if identity.awaits_token or access.can_use(identity, vhost).is_allowed:
        return None
    user = "an anonymous client" if identity.username is None else f"user {identity.username!r:.80}"
    why = f"no rule allows {user} anything on the virtual host {vhost!r}"
    return Error(condition=Symbol(AmqpCondition.UNAUTHORIZED_ACCESS), description=why)


def check_idle_timeout(remote: Open, least_ms: int) -> Error | None:
    """Return why the idle timeout that an open asks for is refused; None if it is not (transport, 2.4.5)."""
    asked_ms = remote.idle_time_out or 0
    if not asked_ms or asked_ms >= least_ms:
        return None
    why = f"idle-time-out {asked_ms} ms, expected at least {least_ms} ms (idle_timeout_ms_min), or none"
    return Error(condition=Symbol(AmqpCondition.NOT_ALLOWED), description=why)
