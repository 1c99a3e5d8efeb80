"""Rules: `allow|deny SUBJECT ACTIONS PATTERN --vhost NAME`, and `grant USER ROLE`.

Rule 1. What no rule allows is refused. A deny goes before every allow, and the order of rules says nothing.
Rule 2. A pattern, such as the topic of a subscription, is allowed if it lies wholly inside an allowed pattern, and if
        it has no text in common with a denied one.
Rule 3. A user of the configuration is an administrator until a rule names it. A process of the broker's own user, and
        a child process of the broker within its scope, may do everything.
Rule 4. Decisions are cached, so a rule costs work for each address and not for each message. The cache is bounded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, final

from ambermq.engine.errors import EngineError
from ambermq.engine.patterns.words import Words as TextWords
from ambermq.protocol.auth.access import Action, Decision
from ambermq.protocol.auth.address_words import (
    ADDRESS_LENGTH_MAX,
    EVERY_ADDRESS,
    SERVER_NODES,
    Words,
    address_words,
    pattern_words,
    rule_words,
)
from ambermq.protocol.auth.identity import Identity
from ambermq.protocol.auth.roles import ADMINISTRATOR, ROLES
from ambermq.protocol.auth.word_inclusion import is_inside, overlaps

__all__ = ["ANONYMOUS", "EVERY_VHOST", "ROLE_PREFIX", "Accounts", "Effect", "Rule", "RuleSet", "actions_named"]

ANONYMOUS: Final = "anonymous"
"""The user of a client without a user name, on a broker that has users."""
DEFAULT_VHOST: Final = "default"
EVERY_VHOST: Final = "*"
ROLE_PREFIX: Final = "role:"
LOG: Final = "/log"
_CACHE_MAX: Final = 16_384
_CACHED_LENGTH_MAX: Final = 256
"""Characters of an address whose decision is cached: a peer chooses addresses."""
_SERVER_WIDE: Final = frozenset(("nodes", node) for node in SERVER_NODES)


class Effect(StrEnum):
    """What a rule does."""

    ALLOW = "allow"
    DENY = "deny"
    GRANT = "grant"


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """One rule. Raises EngineError for a bad subject or pattern."""

    effect: Effect
    subject: str
    """A user, or `role:NAME`."""
    actions: tuple[Action, ...]
    """Sorted; empty for a grant."""
    pattern: str
    """A pattern of addresses; of a grant the name of the role."""
    vhost: str = DEFAULT_VHOST
    """The virtual host; `*` for all."""

    def __post_init__(self) -> None:
        """Check the parts that a person writes."""
        if not self.subject or self.subject == ROLE_PREFIX or not self.subject.isprintable():
            raise EngineError(f"a rule names a user or {ROLE_PREFIX}NAME, found {self.subject!r:.80}")
        if not self.vhost or not self.vhost.isprintable():
            raise EngineError(f"a rule names a virtual host or {EVERY_VHOST}, found {self.vhost!r:.80}")
        if not self.pattern.isprintable():
            raise EngineError(f"a pattern has only printable characters, found {self.pattern!r:.80}")
        if self.effect is not Effect.GRANT:
            rule_words(self.pattern)
        elif self.subject.startswith(ROLE_PREFIX) or not self.pattern:
            raise EngineError(f"a grant gives a user a role, found {self.subject!r:.80} and {self.pattern!r:.80}")

    def __str__(self) -> str:
        """Return the rule in words."""
        actions = f" {','.join(self.actions)}" if self.actions else ""
        vhost = "" if self.vhost == DEFAULT_VHOST else f" --vhost {self.vhost}"
        return f"{self.effect} {self.subject}{actions} {self.pattern}{vhost}"


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the configuration and the file of users say of users."""

    users: frozenset[str] = frozenset()
    """The users of `[users]` and `--user`."""
    log_readers: frozenset[str] = frozenset()
    """The users of `[permissions] log`."""
    has_users: bool = False
    """Whether the broker has users, of the configuration or of its own file."""
    reads_log: bool = True
    """Whether clients without a user name may replay `/log` on a broker without users."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Enabled user of the file to the roles that it has there, in all virtual hosts."""


class _Asked(NamedTuple):
    """An address or a pattern that is compared with entries."""

    words: Words
    text: TextWords | None
    """The words of an address; None for a pattern."""
    is_long: bool = False
    """Whether it has no words because of its length."""


class _Entry(NamedTuple):
    """A rule that is ready for comparison."""

    effect: Effect
    actions: frozenset[Action]
    words: Words
    vhost: str
    is_server_wide: bool
    """Whether it covers the affairs of the whole server."""
    text: str

    def covers(self, asked: _Asked) -> bool:
        """Return whether all that is asked for is inside."""
        if not self.is_server_wide and asked.words in _SERVER_WIDE:
            return False
        return is_inside(asked.words, self.words) if asked.text is None else asked.text.match(self.words)

    def touches(self, asked: _Asked) -> bool:
        """Return whether a part of what is asked for is inside."""
        if asked.text is None:
            return overlaps(asked.words, self.words)
        return asked.is_long or asked.text.match(self.words)


_ALLOWED: Final = Decision(is_allowed=True, reason="a process of the broker's own user is an administrator")
_NO_USERS: Final = Decision(is_allowed=True, reason="this broker has no users")
_NO_RULE: Final = Decision(is_allowed=False, reason="no rule allows it")
_WAITS: Final = Decision(is_allowed=False, reason="the connection has put no token yet")
_SEES: Final = "see"
_EVERY_ACTION: Final = frozenset(Action)


@final
class RuleSet:
    """The rules of a broker; see Access. A changed rule makes another value."""

    def __init__(self, rules: Iterable[Rule] = (), accounts: Accounts | None = None) -> None:
        self.rules = tuple(sorted(set(rules)))
        self.accounts = accounts or Accounts()
        self._named = frozenset(rule.subject for rule in self.rules)
        self._by_subject: dict[str, list[Rule]] = {}
        for rule in self.rules:
            self._by_subject.setdefault(rule.subject, []).append(rule)
        self._numbers = {rule: number for number, rule in enumerate(self.rules, 1)}
        self._implied = self._implied_grants()
        self._entries: dict[tuple[str, str], tuple[_Entry, ...]] = {}
        self._decisions: dict[tuple[str, str, str, str, bool], Decision] = {}

    def decide(self, identity: Identity, vhost: str, action: Action, address: str) -> Decision:
        """Return the decision for one address."""
        return self._free(identity, address) or self._decision(_user(identity), vhost, action, address)

    def decide_all(self, identity: Identity, vhost: str, action: Action, pattern: str) -> Decision:
        """Return the decision for every address of a pattern, such as the topic of a subscription."""
        return self._free(identity, pattern) or self._decision(_user(identity), vhost, action, pattern, is_pattern=True)

    def sees(self, identity: Identity, vhost: str, address: str) -> bool:
        """Return whether QUERY and READ show an address, which may be a pattern: any action on it is allowed.

        What a role such as `monitor` shows stays visible until every action is denied.
        """
        free = self._free(identity, address)
        if free is not None:
            return free.is_allowed
        return self._decision(_user(identity), vhost, _SEES, address, is_pattern=True).is_allowed

    def sees_all(self, identity: Identity, vhost: str) -> bool:
        """Return whether QUERY and READ show every address."""
        return self.sees(identity, vhost, EVERY_ADDRESS)

    def can_use(self, identity: Identity, vhost: str) -> Decision:
        """Return whether an identity may open a connection to a virtual host: it has a rule there."""
        free = self._free(identity, "")
        if free is not None:
            return free
        user = _user(identity)
        for entry in self._entries_of(user, vhost):
            if entry.effect is not Effect.DENY:
                return Decision(is_allowed=True, reason=entry.text)
        return Decision(is_allowed=False, reason=f"no rule of user {user!r:.80} names the virtual host {vhost!r:.80}")

    def administrators(self) -> frozenset[str]:
        """Return the users that may change users and rules."""
        users = self.accounts.users | self.accounts.roles.keys()
        return frozenset(
            user for user in users if self._decision(user, DEFAULT_VHOST, Action.MANAGE, "$users").is_allowed
        )

    def implied(self) -> tuple[Rule, ...]:
        """Return the grants that the configuration and the users imply."""
        return self._implied

    def _implied_grants(self) -> tuple[Rule, ...]:
        users = sorted(self.accounts.users - self._named)
        granted = [(user, ADMINISTRATOR) for user in users]
        granted += [(user, role) for user, roles in sorted(self.accounts.roles.items()) for role in roles]
        return tuple(Rule(Effect.GRANT, user, (), role, EVERY_VHOST) for user, role in dict.fromkeys(granted))

    def _free(self, identity: Identity, address: str) -> Decision | None:
        """Return the decision for an identity that rules do not bind; None for a user."""
        if identity.awaits_token:
            return _WAITS
        if identity.is_local or identity.scope is not None:
            return _ALLOWED
        if identity.username is None and not self.accounts.has_users:
            if address == LOG and (identity.is_remote or not self.accounts.reads_log):
                return Decision(is_allowed=False, reason="an anonymous client may not read /log")
            return _NO_USERS
        return None

    def _decision(
        self, user: str, vhost: str, action: Action | str, address: str, *, is_pattern: bool = False
    ) -> Decision:
        key = (user, vhost, action, address, is_pattern)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(user, vhost, action, address, is_pattern=is_pattern)
            if len(address) <= _CACHED_LENGTH_MAX:
                if len(self._decisions) >= _CACHE_MAX:
                    self._decisions.clear()
                self._decisions[key] = decision
        return decision

    def _decide(self, user: str, vhost: str, action: Action | str, address: str, *, is_pattern: bool) -> Decision:
        try:
            asked = _asked(address, is_pattern=is_pattern)
        except EngineError as error:
            return Decision(is_allowed=False, reason=str(error))
        entries = self._entries_of(user, vhost)
        if action == _SEES:
            return _visibility(entries, asked)
        for entry in entries:
            if entry.effect is Effect.DENY and action in entry.actions and entry.touches(asked):
                return Decision(is_allowed=False, reason=entry.text)
        for entry in entries:
            if entry.effect is Effect.ALLOW and action in entry.actions and entry.covers(asked):
                return Decision(is_allowed=True, reason=entry.text)
        return _NO_RULE

    def _entries_of(self, user: str, vhost: str) -> tuple[_Entry, ...]:
        key = (user, vhost)
        entries = self._entries.get(key)
        if entries is None:
            if len(self._entries) >= _CACHE_MAX:
                self._entries.clear()
            entries = self._entries[key] = tuple(self._compile(user, vhost))
        return entries

    def _compile(self, user: str, vhost: str) -> Iterator[_Entry]:
        """Yield the entries of a user's own rules, of its roles and of the configuration."""
        for rule in self._by_subject.get(user, ()):
            if rule.vhost in (vhost, EVERY_VHOST):
                yield from self._of_rule(rule, vhost, f"rule {self._numbers[rule]}: {rule}")
        for rule in self._implied:
            if rule.subject == user:
                source = "users" if user in self.accounts.roles else "configuration"
                yield from self._of_rule(rule, vhost, f"the {source}: {rule}")
        if user in self.accounts.log_readers:
            text = f"[permissions] log names {user}"
            yield _Entry(Effect.ALLOW, frozenset((Action.REPLAY,)), pattern_words(LOG), EVERY_VHOST, True, text)
        elif user in self.accounts.users and user not in self._named:
            # It read no log before there were rules: an upgrade gives it no more than it had.
            text = f"[permissions] log does not name {user}"
            yield _Entry(Effect.DENY, frozenset((Action.REPLAY,)), pattern_words(LOG), EVERY_VHOST, True, text)

    def _of_rule(self, rule: Rule, vhost: str, text: str) -> Iterator[_Entry]:
        if rule.effect is Effect.GRANT:
            yield from self._of_role(rule.pattern, vhost, rule.vhost, text)
            return
        words = rule_words(rule.pattern)
        is_server_wide = rule.vhost == EVERY_VHOST or words[0] == "nodes"
        yield _Entry(rule.effect, frozenset(rule.actions), words, rule.vhost, is_server_wide, text)

    def _of_role(self, role: str, vhost: str, granted: str, text: str) -> Iterator[_Entry]:
        """Yield the entries of a role: those that it has everywhere, and those of rules for it."""
        known, is_server_wide = ROLES.get(role), granted == EVERY_VHOST
        if known is not None:
            for pattern in known.patterns:
                yield _Entry(Effect.ALLOW, known.actions, pattern_words(pattern), granted, is_server_wide, text)
            for pattern in known.shows:
                yield _Entry(Effect.GRANT, frozenset(), pattern_words(pattern), granted, is_server_wide, text)
        for rule in self._by_subject.get(f"{ROLE_PREFIX}{role}", ()):
            if rule.vhost in (vhost, EVERY_VHOST):
                yield from self._of_rule(rule, vhost, f"{text}; rule {self._numbers[rule]}: {rule}")


def _asked(address: str, *, is_pattern: bool) -> _Asked:
    """Return an address or a pattern, ready for comparison. Raises EngineError for a bad pattern."""
    if is_pattern:
        return _Asked(pattern_words(address), None)
    words = address_words(address)
    return _Asked(words, TextWords(words), len(address) > ADDRESS_LENGTH_MAX)


def _visibility(entries: tuple[_Entry, ...], asked: _Asked) -> Decision:
    """Return whether an action is left on what is asked for; an entry without actions shows by itself."""
    denied = frozenset[Action]().union(
        *(entry.actions for entry in entries if entry.effect is Effect.DENY and entry.touches(asked))
    )
    for entry in entries:
        if entry.effect is not Effect.DENY and (entry.actions or _EVERY_ACTION) - denied and entry.covers(asked):
            return Decision(is_allowed=True, reason=entry.text)
    return _NO_RULE


def actions_named(text: str) -> tuple[Action, ...]:
    """Return the sorted actions in a text such as `send,receive`; `all` names all. Raises EngineError."""
    known = [action.value for action in Action]
    names = known if text == "all" else text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise EngineError(f"unknown action {unknown[0]!r:.80}: expected {', '.join(known)}, or all")
    return tuple(sorted(set(map(Action, names))))


def _user(identity: Identity) -> str:
    return ANONYMOUS if identity.username is None else identity.username
