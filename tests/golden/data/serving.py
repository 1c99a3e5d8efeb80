"""A broker of this version on a copy of a golden directory, and what it delivers."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ambermq.tools.broker.child_broker import ChildBroker
from tests.golden.data.observation import Questions, command

__all__ = ["delivered"]

_CONFIG: Final = "[log]\nsegment_bytes_min = 65536\nballast_bytes = 0\n"
"""Nothing that takes time to allocate."""
_FIELDS: Final = (
    *("id", "to", "subject", "reply_to", "correlation_id", "content_type", "group_id"),
    *("durable", "priority", "ttl_ms", "delivery_count", "properties", "annotations", "text", "value", "base64"),
)
_BODIES: Final = ("text", "value", "base64")
_BODY_SHOWN_MAX: Final = 64
"""Characters."""


def delivered(directory: Path, questions: Questions) -> dict[str, dict[str, Any]]:
    """Start a broker on the directory, receive from its queues as the questions say, and stop it.

    Returns virtual host to queue to messages.
    """
    config = directory.with_name(f"{directory.name}.toml")
    config.write_text(_CONFIG)
    broker = ChildBroker(directory, arguments=("--config", str(config)))
    broker.start()
    try:
        found = {
            vhost: {queue: _received(broker.url, vhost, queue, count) for queue, count in asked["received"].items()}
            for vhost, asked in questions.items()
        }
        assert broker.stop() == 0
    finally:
        broker.kill()
    return found


def _received(url: str, vhost: str, queue: str, count: int) -> list[Any]:
    lines = command("receive", f"/queues/{queue}", "--count", count, "--ndjson", "--url", url, "--vhost", vhost)
    return [_short(json.loads(line)) for line in lines.splitlines()]


def _short(message: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message, and the SHA-256 of its body where that is long.

    The lines are as version 0.1.0 printed them: `durable` only if it was true, and an id of any type as text.
    """
    message = {name: message[name] for name in _FIELDS if name in message}
    if not message["durable"]:
        del message["durable"]
    if isinstance(message.get("id"), dict):
        message["id"] = message["id"]["value"]
    texts = {name: str(message[name]) for name in _BODIES if name in message}
    long = {name: text for name, text in texts.items() if len(text) > _BODY_SHOWN_MAX}
    return message | {name: sha256(text.encode()).hexdigest() for name, text in long.items()}
