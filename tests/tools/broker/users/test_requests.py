"""The requests about users and rules of a running broker: each is checked again when its turn comes."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ambermq.engine.effects import Answered, Effect, RefusedCommand
from ambermq.engine.errors import Refused
from ambermq.protocol.auth.access import Access, Action
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.rules import Accounts, Rule
from ambermq.protocol.auth.rules import Effect as RuleEffect
from ambermq.protocol.auth.users import ADMINISTRATOR, User, Users
from ambermq.protocol.auth.verifier import scram_verifier
from ambermq.protocol.management.access.rules import CreateRule, QueryRules
from ambermq.protocol.management.access.users import CreateUser
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker.users.rule_store import RuleStore
from ambermq.tools.broker.users.user_administration import UserAdministration

SALT = b"0123456789abcdef"


@dataclass
class _Peer:
    identity: Identity


@dataclass(eq=False)
class _Key:
    """The key of a command: the request of a connection."""

    peer: _Peer


@dataclass
class _Server:
    """Collects the answers."""

    effects: list[Effect] = field(default_factory=list)
    access: Access | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def set_access(self, access: Access) -> None:
        self.access = access

    def answer(self, gateway: Any, effects: Iterable[Effect]) -> None:
        del gateway
        self.effects += effects
        self.arrived.set()


@dataclass
class _Gateway:
    vhost: str = "default"

    def carry_out(self, effects: Iterable[Effect]) -> None:
        raise NotImplementedError


def key(name: str | None) -> _Key:
    """Return the key of a request of a user."""
    return _Key(_Peer(Identity(name)))


def rule(subject: str, pattern: str = "a") -> Rule:
    return Rule(RuleEffect.ALLOW, subject, (Action.SEND,), pattern)


async def _settled(server: _Server, count: int) -> list[Effect]:
    async with asyncio.timeout(20):
        while len(server.effects) < count:
            server.arrived.clear()
            await server.arrived.wait()
    return server.effects


def test_a_request_for_a_rule_is_checked_again_in_its_turn(tmp_path: Path) -> None:
    """Two requests of a stranger on a broker without users: after the first user the second one is refused."""

    async def run() -> None:
        store, server, gateway = RuleStore(str(tmp_path), Accounts()), _Server(), _Gateway()
        store.serve(server)
        store.ask(gateway, CreateRule(key(None), rule("mallory")))
        store.ask(gateway, CreateRule(key(None), rule("mallory", "b")))
        await asyncio.sleep(0)
        store.set_accounts(Accounts(has_users=True, roles={"root": (ADMINISTRATOR,)}))
        first, second = await _settled(server, 2)
        assert isinstance(first, Answered)
        assert isinstance(second, RefusedCommand)
        assert second.condition == "amqp:unauthorized-access"
        assert [one.pattern for one in store.access.rules] == ["a"]

    asyncio.run(run())


def test_the_requests_for_rules_that_wait_are_bounded(tmp_path: Path) -> None:
    """A slow disk under the file of rules does not fill the memory."""

    async def run() -> None:
        store, server = RuleStore(str(tmp_path), Accounts()), _Server()
        store.serve(server)
        for _ in range(100):
            store.ask(_Gateway(), QueryRules(key(None), 0, 10, ()))
        with pytest.raises(Refused, match="wait"):
            store.ask(_Gateway(), QueryRules(key(None), 0, 10, ()))
        assert len(await _settled(server, 100)) == 100

    asyncio.run(run())


def test_the_last_administrator_of_the_configuration_is_not_replaced_by_another_user(tmp_path: Path) -> None:
    """A stored user of its name goes before it, and has the roles of the request alone."""

    async def run() -> None:
        users = Users(b"s" * 32)
        keys = scram_verifier(b"word", (SALT, SALT), 4096)
        users.configure([User("root", keys, (ADMINISTRATOR,))], 4096)
        store, server = RuleStore(str(tmp_path), Accounts(users=frozenset(("root",)), has_users=True)), _Server()
        administration = UserAdministration(str(tmp_path), users, ServerLimits(scram_iterations=4096), store)
        administration.server = server  # type: ignore[assignment]  # no more is called
        server.connections_of = lambda _name: 0  # type: ignore[attr-defined]
        for roles, enabled in (((), True), ((ADMINISTRATOR,), False), ((ADMINISTRATOR,), True)):
            administration.ask(_Gateway(), CreateUser(key("root"), "root", "word", roles, enabled=enabled))
        found = await _settled(server, 3)
        assert [type(one) for one in found] == [RefusedCommand, RefusedCommand, Answered]

    asyncio.run(run())
