"""A broker whose file of users cannot be written at the start: it warns, goes on, and writes it later."""

import asyncio
import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import structlog

from ambermq.protocol.auth.rules import Accounts
from ambermq.protocol.auth.users import User
from ambermq.protocol.server_limits import ServerLimits
from ambermq.tools.broker import serve
from ambermq.tools.broker.serve import Broker
from ambermq.tools.broker.users import user_administration
from ambermq.tools.broker.users.rule_store import RuleStore
from ambermq.tools.broker.users.user_administration import UserAdministration
from ambermq.tools.broker.users.user_file import has_users_file, load_users, save_users
from ambermq.tools.config.settings import Settings


def test_a_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret and the users are in memory; the second attempt after the start writes them."""
    attempts: list[int] = []

    def full_at_first(directory: str, secret: bytes, stored: Iterable[User]) -> None:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_users(directory, secret, stored)

    for module in (serve, user_administration):
        monkeypatch.setattr(module, "save_users", full_at_first)
    users = load_users(str(tmp_path), 4096)
    settings = Settings(users={"alice": "secret"}, server=ServerLimits(scram_iterations=4096))
    with structlog.testing.capture_logs() as lines:
        Broker(str(tmp_path), (), settings)._configure(users)
    assert [line["reason"] for line in lines if line["event"] == "users not saved"] == ["No space left on device"]
    assert users.find("alice") is not None
    assert not has_users_file(str(tmp_path))

    async def go() -> Any:
        rules = RuleStore(str(tmp_path), Accounts(has_users=True))
        administration = UserAdministration(str(tmp_path), users, settings.server, rules)
        administration.save_seconds = 0.01
        administration.save_missing()
        assert administration._saving is not None
        await asyncio.wait_for(administration._saving, 20)
        await administration.end()

    asyncio.run(go())
    assert load_users(str(tmp_path), 4096).secret == users.secret
