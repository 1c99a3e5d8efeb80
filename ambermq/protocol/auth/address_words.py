"""The words of an address and of a pattern of addresses: a rule compares nothing else.

    orders.eu, /queues/orders.eu       queues  orders  eu            $...  in /queues/ and /topics/: kinds of their own
    /topics/news.#                     topics  news  #
    /muxers/NAME                       muxers  NAME  ./.  #          as a pattern: with all its destinations
    /muxers/NAME/orders.eu             muxers  NAME  ./.  orders  eu
    /muxers/QUEUE/a, /muxers/TOPIC/a   as /queues/a and /topics/a
    /log, $snapshots                   nodes  /log                   a node of the broker
    /#                                 #                             a pattern of every address

Rule 1. Two texts that name one node have the same words. The engine's own grammar reads the address.
Rule 2. The first word is the kind. The word between a muxer and its destination has a dot, so no name contains it.
Rule 3. `#` is a pattern of all queues, except those whose names begin with $: those names are the broker's.
"""

import re
import sys
from functools import lru_cache
from typing import Final

from ambermq.engine.address import NodeKind, parse_address
from ambermq.engine.errors import Refused
from ambermq.engine.model.muxer import QUEUE_MUXER, TOPIC_MUXER
from ambermq.engine.patterns.pattern import ANY_WORDS, check_pattern

__all__ = [
    "ADDRESS_LENGTH_MAX",
    "EVERY_ADDRESS",
    "SERVER_NODES",
    "USERS_ADDRESS",
    "Words",
    "address_words",
    "pattern_words",
    "rule_words",
    "without_host",
]

Words = tuple[str, ...]

EVERY_ADDRESS: Final = "/#"
"""The pattern of every address."""
USERS_ADDRESS: Final = "$users"
"""The affairs of users and rules."""
SERVER_NODES: Final = ("$config", "$connections", USERS_ADDRESS, "$vhosts")
"""The affairs of the whole server: a rule for one virtual host covers them only if it names them."""
ADDRESS_LENGTH_MAX: Final = 4096
"""Characters of an address that has words: a message names addresses of any length, and every deny touches such one."""
_PATTERNS_KEPT_MAX: Final = 16_384
"""The patterns whose words are kept."""
_DOT: Final = "."
_DESTINATION: Final = "./."
_NODES: Final = "nodes"
_TEMPORARY: Final = "$temporary."
_URL: Final = re.compile(r"(?:amqps?|sb)://[^/]*/")
_PATHS: Final = ("queues/", "topics/", "muxers/")
_ALIASES: Final = {QUEUE_MUXER: "queues", TOPIC_MUXER: "topics"}
_KINDS: Final = {NodeKind.QUEUE: "queues", NodeKind.TOPIC: "topics"}


def without_host(text: str) -> str:
    """Return an address without scheme and host."""
    url = _URL.match(text)
    if url is None:
        return text
    rest = text[url.end() :]
    return f"/{rest}" if rest.startswith(_PATHS) else rest


def address_words(address: str) -> Words:
    """Return the words of an address; it is total: an address that no node has is a node of its own."""
    if len(address) > ADDRESS_LENGTH_MAX:
        return (_NODES, address)
    try:
        parsed = parse_address(address, name_bytes_max=sys.maxsize)
    except Refused:
        return (_NODES, address)
    if parsed.kind is not NodeKind.MUXER:
        return _named(_KINDS[parsed.kind], parsed.name)
    if parsed.name.startswith(_TEMPORARY):
        return _named("topics", parsed.name)
    if parsed.destination is None:
        return (*_named("muxers", parsed.name), _DESTINATION)
    if parsed.name in _ALIASES:
        return _named(_ALIASES[parsed.name], parsed.destination)
    return (*_named("muxers", parsed.name), _DESTINATION, *parsed.destination.split(_DOT))


@lru_cache(maxsize=_PATTERNS_KEPT_MAX)
def rule_words(text: str) -> Words:
    """Return the words of the pattern of a rule, which a person may write with scheme and host. Raises EngineError.

    A changed rule makes another set of rules: the patterns of all others are read once.
    """
    return pattern_words(without_host(text))


def pattern_words(text: str) -> Words:
    """Return the words of a pattern. Raises EngineError for text that is neither a pattern nor an address."""
    if text == EVERY_ADDRESS:
        return (ANY_WORDS,)
    if text == "/log" or text.startswith("$"):
        return (_NODES, text)
    parsed = parse_address(text, name_bytes_max=sys.maxsize)
    check_pattern(parsed.name, _DOT)
    if parsed.kind is NodeKind.MUXER and parsed.name == ANY_WORDS and parsed.destination is None:
        return ("muxers", ANY_WORDS)
    words = address_words(text)
    if parsed.kind is NodeKind.MUXER and parsed.destination is None:
        return (*words, ANY_WORDS) if words[-1] == _DESTINATION else words
    if parsed.kind is NodeKind.MUXER and parsed.destination:
        check_pattern(parsed.destination, _DOT)
    return words


def _named(kind: str, name: str) -> Words:
    """Return the words of a name; names that begin with $ have a kind of their own."""
    return (f"{kind}$" if name.startswith("$") else kind, *name.split(_DOT))
