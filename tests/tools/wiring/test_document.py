"""Wiring as a document."""

import pytest
from hypothesis import example, given

from ambermq.engine.model.attachment import Condition
from ambermq.engine.model.muxer import MuxerKind, Options
from ambermq.tools.config.attachment_options import AttachmentOptions
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode
from ambermq.tools.wiring.document import AttachmentEntry, MuxerEntry, QueueEntry, Wiring, read_wiring, write_wiring
from tests.tools.wirings import documents


def _written(argument: str) -> Wiring:
    """A document of one attachment that says this text."""
    return Wiring((), (), (AttachmentEntry("d", "q", AttachmentOptions(argument, "destination")),))


@given(documents())
@example(_written("\x7f\x85\u2028\r\n\t\"\\'"))
@example(Wiring((MuxerEntry("net", MuxerKind.LOSSY, Options(probability=1e-300, seed=-(1 << 62))),)))
def test_a_document_is_read_as_it_was_written(wiring: Wiring) -> None:
    """In TOML and in JSON, values with their types."""
    for path in ("w.toml", "w.json"):
        again = read_wiring(write_wiring(wiring, is_json=path.endswith("json")), path)
        assert (again, repr(again)) == (wiring, repr(wiring))


def test_toml_has_a_line_for_each_key() -> None:
    """A table, its keys a line each, and a line between two."""
    said = AttachmentOptions((Condition("x"), Condition("y", True, 1)), "conditions")
    wiring = Wiring(
        (MuxerEntry("net", MuxerKind.LOSSY, Options(probability=0.5, seed=3)),), (), (AttachmentEntry("c", "q", said),)
    )
    assert write_wiring(wiring, is_json=False) == (
        '[[muxers]]\nname = "net"\nclass = "lossy"\nprobability = 0.5\nseed = 3\n\n'
        '[[attachments]]\nmuxer = "c"\nmember = "q"\nproperty = [\n    "x",\n    "y=1",\n]\n'
    )
    assert write_wiring(Wiring(), is_json=False) == ""


def test_a_document_says_what_there_shall_be() -> None:
    """Each array and each key; what is left out is the default."""
    text = """
        [[muxers]]
        name = "net"
        class = "lossy"
        probability = 1
        seed = 3

        [[queues]]
        name = "q"

        [[attachments]]
        muxer = "colours"
        member = "muxer:net"
        property = ["urgent", "size=3"]
    """
    conditions = (Condition("urgent"), Condition("size", True, 3))
    assert read_wiring(text, "w.toml") == Wiring(
        (MuxerEntry("net", MuxerKind.LOSSY, Options(seed=3)),),
        (QueueEntry("q"),),
        (AttachmentEntry("colours", "muxer:net", AttachmentOptions(conditions, "conditions")),),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "w.toml: the file is invalid: expected TOML"),
        ("muxer = 1", "w.toml: muxer is unknown; known are muxers, queues, attachments"),
        ("muxers = 1", r"w.toml: muxers is invalid: expected tables \[\[muxers\]\], found 1"),
        ("[[muxers]]\nname = 'a'", r"w.toml \[\[muxers\]\] 1: class is invalid: expected text in quotes, found none"),
        ("[[muxers]]\nclass = 'fast'", "class is invalid: expected one of simple, destination, .*found 'fast'"),
        ("[[muxers]]\nclass = 'simple'", "name is invalid: expected text in quotes, found none"),
        ("[[muxers]]\nkind = 'simple'", "kind is unknown; known are name, class, separator, probability, seed"),
        ("[[muxers]]\nname = 'a'\nclass = 'lossy'\nseed = 1.5", "seed is invalid: expected a whole number, found 1.5"),
        ("[[muxers]]\nname = 'a'\nclass = 'lossy'\nprobability = true", "probability is invalid: expected a number"),
        ("[[queues]]\nname = 'a'\n[[queues]]\nname = 1", r"\[\[queues\]\] 2: name is invalid: expected text in quotes"),
        ("[[queues]]\nname = 'a'\nmessages_max = -1", "messages_max is invalid: expected a whole number from 0"),
        ("[[attachments]]\nmuxer = 'a'", "member is invalid: expected text in quotes, found none"),
        (
            "[[attachments]]\nmuxer = 'a'\nmember = 'b'\npattern = 'c'\nselector = 'd'",
            "expected an attachment, found pattern and selector are given",
        ),
        ("[[attachments]]\nmuxer = 'a'\nmember = 'b'\nproperty = ['=1']", "names no property"),
        ("[[attachments]]\nmuxer = 'a'\nmember = 'b'\nproperty = [1]", "property must be text"),
    ],
)
def test_what_is_no_document_is_one_message(text: str, words: str) -> None:
    """With file, table, key, what was expected and what was found; exit code 2."""
    with pytest.raises(ToolError, match=words) as refused:
        read_wiring(text, "w.toml")
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("text", ["[]", "{", "[" * 100_000])
def test_json_that_is_none_is_told(text: str) -> None:
    """Alike."""
    with pytest.raises(ToolError, match="the file is invalid"):
        read_wiring(text, "w.json")


_SIMPLE = "[[muxers]]\nname = 'a'\nclass = 'simple'\n"
_LOSSY = "[[muxers]]\nname = 'a'\nclass = 'lossy'\n"
_OTHER = "[[muxers]]\nname = 'b'\nclass = 'simple'\n"
_QUEUE = "[[queues]]\nname = 'q'\n"
_TO_Q = "[[attachments]]\nmuxer = 'a'\nmember = 'q'\n"
_TO_B = "[[attachments]]\nmuxer = 'a'\nmember = 'muxer:b'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_SIMPLE + _OTHER + _LOSSY, "[[muxers]] 3: muxer 'a' is a duplicate of [[muxers]] 1"),
        (_SIMPLE + _SIMPLE, "[[muxers]] 2: muxer 'a' is a duplicate of [[muxers]] 1"),
        (_QUEUE + "messages_max = 1\n" + _QUEUE, "[[queues]] 2: queue 'q' is a duplicate of [[queues]] 1"),
        (
            _QUEUE + "[[queues]]\nname = '/queues/%71'",
            "[[queues]] 2: queue '/queues/%71' is a duplicate of [[queues]] 1",
        ),
        (
            _TO_B + _TO_Q + _TO_Q.replace("'q'", "'/queues/q'"),
            "[[attachments]] 3: the attachment of '/queues/q' to 'a' is a duplicate of [[attachments]] 2",
        ),
        (_TO_B + _TO_B, "[[attachments]] 2: the attachment of 'muxer:b' to 'a' is a duplicate of [[attachments]] 1"),
        (
            (_TO_Q + "property = ['x=1', 'y']\n") * 2,
            "[[attachments]] 2: the attachment of 'q' to 'a' by 'x=1 and y' is a duplicate of [[attachments]] 1",
        ),
    ],
)
def test_what_stands_there_twice_is_one_message(text: str, words: str) -> None:
    """Alike or otherwise, by whatever address: with both places; exit code 2."""
    with pytest.raises(ToolError) as refused:
        read_wiring(text, "w.toml")
    assert refused.value.message.startswith(f"w.toml {words}")
    assert refused.value.message.endswith("; remove one of them")
    assert refused.value.exit_code == ExitCode.USAGE


def test_what_differs_in_anything_stands_there_beside_the_other() -> None:
    """A queue and a muxer of one name, and attachments of one member: by other values, and by values of other types."""
    by = "".join(f"{_TO_Q}property = ['x={value}']\n" for value in ("1", "1.0", "true", '"1"', "2"))
    queues = _QUEUE + "[[queues]]\nname = 'a'\n[[queues]]\nname = '/nowhere'\n"
    wiring = read_wiring(_SIMPLE + _OTHER + queues + by + _TO_Q + _TO_B, "w.toml")
    assert [len(entries) for entries in wiring] == [2, 3, 7]
