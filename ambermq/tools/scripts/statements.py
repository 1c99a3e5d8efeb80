"""What the statements of clients and of the broker do.

Rule 1. A statement that sends a request waits for its answer: connect, attach, detach, close.
Rule 2. A refusal fails a statement unless its option `refused` has a pattern for the condition.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ambermq.protocol.amqp10.link.sender import Sender
from ambermq.protocol.amqp10.message.message import AmqpValue, Message
from ambermq.protocol.amqp10.performatives.classes import (
    Accepted,
    DeliveryState,
    Error,
    Header,
    Modified,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
)
from ambermq.protocol.amqp10.spec import AmqpCondition
from ambermq.tools.broker.child_broker import ChildBroker
from ambermq.tools.client.password_option import read_password
from ambermq.tools.scripts.expectations import EXPECTATIONS
from ambermq.tools.scripts.grammar import Statement
from ambermq.tools.scripts.patterns import is_match, switch
from ambermq.tools.scripts.script_client import ConnectOptions, ScriptClient, ScriptLink, error_text, pump
from ambermq.tools.scripts.script_run import ScriptRun, StatementFailed

__all__ = ["STATEMENTS"]

_SIZE_MAX: Final = 64 << 20


def _broker(run: ScriptRun, statement: Statement) -> None:
    action, *arguments = statement.words
    if action in ("kill", "stop"):
        if run.broker is None:
            raise StatementFailed("the script has no broker", expected="`broker start` before")
        run.broker.kill() if action == "kill" else run.broker.stop()
        return
    if run.broker is not None:
        run.broker.stop()
    if run.broker is None or arguments:
        run.broker = ChildBroker(run.own_directory(), arguments=[run.text(argument) for argument in arguments])
    run.broker.start()


def _connect(run: ScriptRun, statement: Statement) -> None:
    (name,) = statement.words
    if name in run.clients:
        run.clients.pop(name).close_socket()
    options = {key: run.text(value) for key, value in statement.options.items()}
    given = ConnectOptions(
        container=options.get("container", ""),
        host=options.get("host", ""),
        user=options.get("user"),
        password=_password(options),
        idle_ms=run.number(options["idle"]) if "idle" in options else None,
        frame_bytes=run.number(options["frame"]) if "frame" in options else None,
    )
    client = ScriptClient(run.target(options.get("url")), given)
    run.clients[name] = client
    run.wait(
        statement,
        "the broker's open",
        lambda: True if client.is_closed or (client.session.is_live and client.connection.remote_open) else None,
    )
    # A refusal is an open that a close follows.
    pump(run.clients.values(), 0.0)
    _check_refusal(run, statement, "connection", client.error, is_refused=client.is_closed)


def _password(options: Mapping[str, str]) -> str:
    """Return the password of a connection: that of the script, or the one in a file, which the script does not show."""
    if "password_file" not in options:
        return options.get("password", "")
    if "password" in options:
        raise StatementFailed("two passwords", expected="password or password_file", found="both")
    return read_password(options["password_file"])


def _attach_sender(run: ScriptRun, statement: Statement) -> None:
    name, link_name, address = statement.words
    client = run.client(name)
    mode = 1 if switch(run.text(statement.options.get("settled", "false"))) else 0
    endpoint = client.session.attach_sender(
        run.text(statement.options.get("name", f"{name}-{link_name}")),
        Source(),
        Target(address=run.text(address)),
        sender_settle_mode=mode,
    )
    _await_attached(run, statement, client, ScriptLink(link_name, endpoint))


def _attach_receiver(run: ScriptRun, statement: Statement) -> None:
    name, link_name, address = statement.words
    client = run.client(name)
    options = statement.options
    endpoint = client.session.attach_receiver(
        run.text(options.get("name", f"{name}-{link_name}")),
        Source(address=run.text(address), distribution_mode=options.get("mode")),
        Target(),
        receiver_settle_mode=1 if switch(run.text(options.get("second", "false"))) else 0,
    )
    _await_attached(run, statement, client, ScriptLink(link_name, endpoint))
    if "credit" in options and "refused" not in options:
        endpoint.grant(run.number(options["credit"]))


def _await_attached(run: ScriptRun, statement: Statement, client: ScriptClient, link: ScriptLink) -> None:
    client.links[link.name] = link
    run.wait(
        statement,
        "the broker's attach",
        lambda: True if link.is_attached or link.is_detached or client.is_closed else None,
    )
    is_refused = link.is_detached or client.is_closed
    _check_refusal(run, statement, f"link {link.name}", link.error or client.error, is_refused=is_refused)


def _check_refusal(run: ScriptRun, statement: Statement, what: str, error: Error | None, *, is_refused: bool) -> None:
    pattern = statement.options.get("refused")
    if pattern is None:
        if is_refused:
            raise StatementFailed(f"the {what} was refused", expected="no error", found=error_text(error))
        return
    pattern = run.text(pattern)
    if not is_refused or not is_match(pattern, "" if error is None else str(error.condition)):
        found = error_text(error) if is_refused else "no refusal"
        raise StatementFailed(f"the {what} was not refused so", expected=pattern, found=found)


def _credit(run: ScriptRun, statement: Statement) -> None:
    _, link = run.link(statement)
    if isinstance(link.endpoint, Sender):
        raise StatementFailed(f"link {link.name} is a sender", expected="a receiver")
    drain = switch(run.text(statement.options.get("drain", "false")))
    link.endpoint.grant(run.number(statement.words[2]), drain=drain)


def _send(run: ScriptRun, statement: Statement) -> None:
    client, link = run.link(statement)
    endpoint = link.endpoint
    if not isinstance(endpoint, Sender):
        raise StatementFailed(f"link {link.name} is a receiver", expected="a sender")
    number = 0
    for _ in range(run.number(statement.options.get("count", "1"))):
        for body in statement.words[2:]:
            number += 1
            payload = _message(run, statement, body, number)
            run.wait(
                statement,
                f"credit for message {number}",
                lambda: True if endpoint.sendable or link.is_detached or client.is_closed else None,
            )
            if link.is_detached or client.is_closed:
                raise StatementFailed(f"link {link.name} has ended", found=error_text(link.error or client.error))
            endpoint.send_run([number], [payload], settled=endpoint.sender_settle_mode == 1)
    run.wait(statement, "a broker that reads", lambda: _is_written(run, client))


def _is_written(run: ScriptRun, client: ScriptClient) -> bool | None:
    pump(run.clients.values(), 0.0)
    return None if client.has_output and not client.is_closed else True


def _message(run: ScriptRun, statement: Statement, body: str, number: int) -> bytes:
    options = {key: run.text(value, n=number) for key, value in statement.options.items()}
    size = run.number(options.get("size", "0"))
    if size > _SIZE_MAX:
        raise ValueError(f"expected a size of at most {_SIZE_MAX} bytes, found {size}")
    message = Message(
        header=Header(durable=switch(options.get("durable", "true"))),
        properties=Properties(message_id=options.get("id"), subject=options.get("subject")),
        body=(AmqpValue(run.text(body, n=number).ljust(size, ".")),),
    )
    return message.encode()


def _settle(run: ScriptRun, statement: Statement) -> None:
    _, link = run.link(statement)
    count = run.number(statement.options.get("count", str(len(link.held))))
    if count > len(link.held):
        found = f"{len(link.held)}"
        raise StatementFailed("too few messages are held", expected=f"{count} that were expected before", found=found)
    state = _state(run, statement)
    for number in link.held[:count]:
        link.endpoint.settle(number, 1, state)
    del link.held[:count]
    pump(run.clients.values(), 0.0)


def _state(run: ScriptRun, statement: Statement) -> DeliveryState:
    options = {name: switch(run.text(statement.options.get(name, "false"))) for name in ("failed", "undeliverable")}
    match statement.words[2]:
        case "accepted":
            return Accepted()
        case "released":
            return Released()
        case "rejected":
            return Rejected(error=Error(condition=AmqpCondition.NOT_ALLOWED, description="rejected by a script"))
        case _:
            return Modified(delivery_failed=options["failed"], undeliverable_here=options["undeliverable"])


def _detach(run: ScriptRun, statement: Statement) -> None:
    client, link = run.link(statement)
    link.endpoint.detach(closed=switch(run.text(statement.options.get("closed", "true"))))
    del client.links[link.name]
    run.wait(statement, "the broker's detach", lambda: None if link.endpoint in client.session.links() else True)


def _close(run: ScriptRun, statement: Statement) -> None:
    client = run.client(statement.words[0])
    client.connection.close()
    run.wait(statement, "the broker's close", lambda: True if client.is_closed else None)
    client.close_socket()


def _drop(run: ScriptRun, statement: Statement) -> None:
    client = run.client(statement.words[0])
    run.wait(statement, "a broker that reads", lambda: _is_written(run, client))
    client.drop()


STATEMENTS: Final[Mapping[str, Callable[[ScriptRun, Statement], None]]] = {
    "broker": _broker,
    "connect": _connect,
    "attach_sender": _attach_sender,
    "attach_receiver": _attach_receiver,
    "credit": _credit,
    "send": _send,
    "settle": _settle,
    "detach": _detach,
    "close": _close,
    "drop": _drop,
    **EXPECTATIONS,
}
"""What each kind of statement does."""
