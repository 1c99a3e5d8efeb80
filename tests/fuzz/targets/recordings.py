"""The recordings of the proxy: the reader of the file, the trace, and the model of a replay.

bytes that begin with the magic of a recording   the file
other bytes                                      a record for each line: a byte of the kind, one of the connection,
                                                 the content; the checksums are right then
"""

import io
from collections.abc import Iterator
from typing import Final

from ambermq.log.errors import DamageError, ForeignError
from ambermq.tools.proxy.broker_facts import DynamicAddresses
from ambermq.tools.proxy.connection_model import ConnectionModel
from ambermq.tools.proxy.frame_stream import FrameStream
from ambermq.tools.proxy.recording import Kind, Record, RecordingReader, encode_header, encode_record
from ambermq.tools.proxy.trace import Trace
from ambermq.tools.terminal.output import _encode as encoded_json
from tests.fuzz.target import Target
from tests.golden import GOLDEN_DIRECTORY
from tests.protocol.amqp10.connection.test_bad_input import conversation

_MAGIC: Final = b"AMBERREC"
_SEPARATOR: Final = b"\n--\n"


def run(data: bytes) -> None:
    """Read the records, and show and replay them."""
    text = data if data.startswith(_MAGIC) else _file(data)
    trace, replay = Trace(), _Replay()
    try:
        for record in RecordingReader(io.BytesIO(text), name="f"):
            for line in trace.lines(record):
                assert line.line.isprintable()
                encoded_json(line.document)
            replay.take(record)
    except (DamageError, ForeignError):
        return


def _file(data: bytes) -> bytes:
    """Return a recording with right checksums."""
    return encode_header(1_700_000_000_000_000) + b"".join(map(encode_record, _records(data)))


def _records(data: bytes) -> Iterator[Record]:
    for number, part in enumerate(data.split(_SEPARATOR)):
        if len(part) >= 2:
            yield Record(number, part[1] % 4, Kind(part[0] % len(Kind) + 1), part[2:])


class _Replay:
    """The models of a replay, without sockets."""

    def __init__(self) -> None:
        self._models: dict[int, ConnectionModel] = {}
        self._streams: dict[tuple[int, Kind], FrameStream] = {}

    def take(self, record: Record) -> None:
        """Note the parts of a record."""
        if record.kind not in {Kind.CLIENT, Kind.BROKER}:
            return
        stream = self._streams.setdefault((record.connection, record.kind), FrameStream())
        model = self._models.setdefault(record.connection, ConnectionModel(record.connection, DynamicAddresses()))
        for part in stream.feed(record.content):
            if record.kind is Kind.CLIENT:
                model.sent(part)
            else:
                list(model.facts(part))


def seeds() -> list[bytes]:
    """Return the golden recording, and a conversation as both peers."""
    golden = bytes.fromhex((GOLDEN_DIRECTORY / "recording.hex").read_text())
    whole = bytes(conversation())
    both = [bytes([kind, 1]) + whole for kind in (Kind.CLIENT - 1, Kind.BROKER - 1)]
    ends = [bytes([kind, 1]) + b"reset" for kind in (Kind.CLIENT_END - 1, Kind.BROKER_END - 1)]
    return [golden, golden[:-30], _SEPARATOR.join([b"\0\1127.0.0.1:1", *both, *ends, b"\6\0"]), *both, b"\0\1\x1b[31m"]


TARGET: Final = Target(
    run,
    seeds,
    words=(
        _MAGIC,
        *(_SEPARATOR + bytes([kind, 1]) for kind in range(len(Kind))),
        *(b"\2\0\0\0\0\x53" + bytes([code]) for code in range(0x10, 0x19)),
        *(b"\2\1\0\0\0\x53" + bytes([code]) for code in range(0x40, 0x45)),
        *(b"$cbs", b"org.ambermq.user", b"AMQP\3\1\0\0", b"AMQP\0\1\0\0", b"\0\x53\x75\xa0", b"\0\x53\x77\xa1"),
    ),
)
