"""The two backends of `ambermq acl`: a running broker, or the file of a data directory without one.

Rule 1. A running broker changes its rules itself, by requests of type `org.ambermq.rule`.
Rule 2. Without a broker the file is changed under the lock of the data directory, also before the first start.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, final

from ambermq.log.manifest.writer_lock import lock_path
from ambermq.log.storage.disk import DiskStorage
from ambermq.protocol.auth.rules import Accounts, Rule, RuleSet
from ambermq.protocol.auth.verifier import ITERATIONS_MIN
from ambermq.protocol.management.access.rules import RULE_TYPE, rule_of, rule_rows
from ambermq.tools.broker.users.rule_file import RULES_MAX, RuleFile
from ambermq.tools.broker.users.rule_store import with_users
from ambermq.tools.broker.users.user_file import load_users
from ambermq.tools.client.broker_option import broker_of_directory
from ambermq.tools.client.broker_url import BrokerUrl
from ambermq.tools.client.link_client import LinkClient
from ambermq.tools.client.management_client import Management
from ambermq.tools.terminal.errors import ToolError
from ambermq.tools.terminal.exit_codes import ExitCode

__all__ = ["RuleBackend", "RunningRules", "StoppedRules", "backend_of"]


class RuleBackend(Protocol):
    """The operations on rules. All may raise ToolError and LogError."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the attributes of all rules."""

    def add(self, rule: Rule) -> bool:
        """Add a rule, and return whether it is new."""

    def remove(self, rule: Rule) -> None:
        """Remove a rule. Raises ToolError with exit code 6 if there is none."""

    def rules(self) -> RuleSet:
        """Return the rules for decisions."""


@final
class RunningRules:
    """The rules of a running broker."""

    def __init__(self, url: str) -> None:
        self._url = replace(BrokerUrl.parse(url), vhost="")

    def rows(self) -> list[dict[str, Any]]:
        """See RuleBackend."""
        with LinkClient.connect(self._url) as client:
            return list(Management(client).rows(RULE_TYPE))

    def add(self, rule: Rule) -> bool:
        """See RuleBackend."""
        body = {"effect": rule.effect.value, "subject": rule.subject, "pattern": rule.pattern, "vhost": rule.vhost}
        if rule.actions:
            body["actions"] = ",".join(rule.actions)
        with LinkClient.connect(self._url) as client:
            return Management(client).request("CREATE", RULE_TYPE, {"name": str(rule)}, body)[0] == 201

    def remove(self, rule: Rule) -> None:
        """See RuleBackend."""
        with LinkClient.connect(self._url) as client:
            Management(client).request("DELETE", RULE_TYPE, {"name": str(rule)})

    def rules(self) -> RuleSet:
        """See RuleBackend. A user of the configuration is an administrator by a rule that the broker implies."""
        return RuleSet(map(rule_of, self.rows()), Accounts(has_users=True))


@final
class StoppedRules:
    """The rules in the file of a data directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file = RuleFile(directory)

    def rows(self) -> list[dict[str, Any]]:
        """See RuleBackend."""
        return rule_rows(self.rules())

    def add(self, rule: Rule) -> bool:
        """See RuleBackend."""
        Path(self._directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = DiskStorage().lock(lock_path(self._directory))
        try:
            known = self._file.read()
            if rule not in known and len(known) >= RULES_MAX:
                raise ToolError(f"there are {RULES_MAX} rules, which is the most", advice="delete one")
            if rule not in known:
                self._file.write((*known, rule))
            return rule not in known
        finally:
            lock.release()

    def remove(self, rule: Rule) -> None:
        """See RuleBackend."""
        known = self._file.read()
        if rule not in known:
            raise ToolError(f"no rule {str(rule)!r}", where=self._directory, code=ExitCode.NOT_FOUND)
        lock = DiskStorage().lock(lock_path(self._directory))
        try:
            self._file.write(one for one in self._file.read() if one != rule)
        finally:
            lock.release()

    def rules(self) -> RuleSet:
        """See RuleBackend."""
        users = load_users(self._directory, ITERATIONS_MIN)
        return RuleSet(self._file.read(), replace(with_users(Accounts(), users), has_users=True))


def backend_of(directory: str) -> RuleBackend:
    """Return the backend for the rules of a data directory, which may not exist yet."""
    holder = broker_of_directory(directory) if Path(directory).is_dir() else None
    return StoppedRules(directory) if holder is None else RunningRules(holder.local_url)
