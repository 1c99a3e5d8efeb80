"""The files of users and rules, with the checksum that is right for them, and as they are.

Rule: a file that was read is written as a file that is read as the same.
"""

from typing import Final

from ambermq.log.format.crc_document import with_crc_line
from ambermq.protocol.auth.access import Action
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.rule_document import RulesDamaged, decode_rules, encode_rules
from ambermq.protocol.auth.rules import RuleSet
from ambermq.protocol.auth.users import UsersDamaged, decode_users, encode_users
from tests.fuzz.target import Target
from tests.protocol.auth.sasl.test_authenticator import some_users


def run(data: bytes) -> None:
    """Read the bytes as both files."""
    for text in (data, with_crc_line(data)):
        _read_users(text)
        _read_rules(text)


def _read_users(text: bytes) -> None:
    try:
        users = decode_users(text)
    except UsersDamaged:
        return
    encoded = encode_users(users.secret, users.stored())
    assert decode_users(encoded).stored() == users.stored()
    for user in users:
        users.scram_keys(user.name, "sha256")
    users.has_other_administrator("")


def _read_rules(text: bytes) -> None:
    try:
        rules = decode_rules(text, file="rules")
    except RulesDamaged:
        return
    assert decode_rules(encode_rules(rules), file="rules") == tuple(sorted(set(rules)))
    decided = RuleSet(rules)
    for rule in rules:
        decided.decide(Identity(rule.subject), rule.vhost, Action.SEND, "/topics/orders.eu")


def seeds() -> list[bytes]:
    """Return a file of each kind, with its checksum and without."""
    stored = some_users().stored()
    documents = [encode_users(b"s" * 32, stored), encode_users(b"s" * 32, ()), *map(with_crc_line, _RULES)]
    return [*documents, *(one[: one.rindex(b"crc32c")] for one in documents), b"", b"crc32c 00000000\n"]


_RULES: Final = (
    b"ambermq rules 1\n",
    b"ambermq rules 1\nallow alice receive,send orders.# default\ndeny role:application send /topics/a%20b.* *\n",
    b"ambermq rules 1\ngrant bob operator *\nallow bob all # default\n",
    b"ambermq rules 2\n",
)

TARGET: Final = Target(
    run,
    seeds,
    words=(
        *(
            b"ambermq rules 1\n",
            b"allow ",
            b"deny ",
            b"grant ",
            b"role:",
            b" all ",
            b"send,receive",
            b"/topics/",
            b"/queues/",
        ),
        *(
            b"%20",
            b"%25",
            b"%ff",
            b"%00",
            b".#.",
            b".*.",
            b" default\n",
            b" *\n",
            b"\xc2\x85",
            b"\xe2\x80\xa8",
            b"\x0c",
        ),
        *(
            b'"format":"ambermq users"',
            b'"version":1',
            b'"secret":"',
            b'"name":"',
            b'"verifier":{',
            b'"argon2":"$argon2id$',
        ),
        *(
            b'"sha256":null',
            b'"roles":[]',
            b'"is_enabled":false',
            b'"iterations":4096',
            b"1e999",
            b"\\ud800",
            b"[[[[[[[[",
        ),
    ),
)
