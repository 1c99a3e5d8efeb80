"""Rules at the `$management` node: requests of type `org.ambermq.rule` become commands to a port.

    name      the rule in words, such as `allow alice send orders.#`: READ and DELETE take it
    effect    allow, deny or grant          subject   a user, or role:NAME
    actions   a list, or text with commas   pattern   a pattern of addresses; of a grant a role
    vhost     a virtual host, or *          source    rules, or configuration: implied by it, and not deleted

Rule 1. The broker carries out these commands, and no engine does. It answers by the effects Answered and RefusedCommand
        with the command's key, when the file is durable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol, final

from ambermq.engine.errors import EngineError, Refused
from ambermq.protocol.auth.rules import DEFAULT_VHOST, Effect, Rule, RuleSet, actions_named
from ambermq.protocol.management.paging import page_of, query_window
from ambermq.protocol.management.request_fields import name_property, refuse_unknown
from ambermq.protocol.management.vhosts import AnswerPort

__all__ = [
    "RULE_ATTRIBUTES",
    "RULE_OPERATIONS",
    "RULE_TYPE",
    "CreateRule",
    "DeleteRule",
    "QueryRules",
    "ReadRule",
    "RuleCommand",
    "RulePort",
    "rule_of",
    "rule_page",
    "rule_row",
    "rule_rows",
]

RULE_TYPE: Final = "org.ambermq.rule"
RULE_ATTRIBUTES: Final = ("name", "effect", "subject", "actions", "pattern", "vhost", "source")
_NOUN: Final = "rule"
_SET: Final = ("effect", "subject", "actions", "pattern", "vhost")


@final
@dataclass(frozen=True, slots=True)
class QueryRules:
    """Read a page of the rules, sorted, and of those that the configuration implies."""

    key: Any
    offset: int
    count: int
    names: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class ReadRule:
    """Read one rule."""

    key: Any
    name: str


@final
@dataclass(frozen=True, slots=True)
class CreateRule:
    """Add a rule; the same rule again changes nothing."""

    key: Any
    rule: Rule


@final
@dataclass(frozen=True, slots=True)
class DeleteRule:
    """Remove a rule."""

    key: Any
    name: str


RuleCommand = QueryRules | ReadRule | CreateRule | DeleteRule


class RulePort(Protocol):
    """The part of the broker that holds and changes the rules."""

    def ask(self, gateway: AnswerPort, command: RuleCommand) -> None:
        """Carry out a command and answer `gateway` with effects, at once or later."""


def rule_rows(rules: RuleSet, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    """Return the attributes of the rules, and of those that the configuration and the users imply: a part of them."""
    stored, count = rules.accounts.roles, len(rules.rules)
    return [
        rule_row(rule, "rules")
        if number < count
        else rule_row(rule, "users" if rule.subject in stored else "configuration")
        for number, rule in islice(enumerate((*rules.rules, *rules.implied())), start, stop)
    ]


def rule_page(rules: RuleSet, command: QueryRules) -> dict[str, Any]:
    """Return a page of the rules."""
    page: Iterable[dict[str, Any]] = rule_rows(rules, command.offset, command.offset + command.count)
    return page_of(page, len(rules.rules) + len(rules.implied()), command.names, RULE_ATTRIBUTES)


def rule_of(values: Mapping[str, Any]) -> Rule:
    """Return the rule of its attributes. Raises Refused."""
    texts = {name: values.get(name) for name in ("effect", "subject", "pattern")}
    texts["vhost"] = values.get("vhost", DEFAULT_VHOST)
    for name, value in texts.items():
        if not isinstance(value, str):
            raise Refused("amqp:invalid-field", f"{name!r} must be text, found {value!r:.80}")
    try:
        effect = Effect(str(texts["effect"]))
    except ValueError as error:
        raise Refused(
            "amqp:invalid-field", f"'effect' must be {', '.join(Effect)}, found {texts['effect']!r:.80}"
        ) from error
    try:
        return Rule(
            effect,
            str(texts["subject"]),
            _actions(effect, values.get("actions")),
            str(texts["pattern"]),
            str(texts["vhost"]),
        )
    except EngineError as error:
        raise Refused("amqp:invalid-field", str(error)) from error


def _actions(effect: Effect, value: Any) -> tuple[Any, ...]:
    if effect is Effect.GRANT:
        if value:
            raise Refused("amqp:invalid-field", "a grant has no actions: its role has them")
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise Refused("amqp:invalid-field", f"'actions' must be a list of actions, found {value!r:.80}")
    return actions_named(",".join(map(str, names)))


def rule_row(rule: Rule, source: str) -> dict[str, Any]:
    """Return the attributes of a rule; `source` is where it comes from."""
    actions = [action.value for action in rule.actions]
    values = (str(rule), rule.effect.value, rule.subject, actions, rule.pattern, rule.vhost, source)
    return dict(zip(RULE_ATTRIBUTES, values, strict=True))


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> RuleCommand:
    return QueryRules(request, *query_window(properties, body, _NOUN, results_max))


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> RuleCommand:
    return ReadRule(request, name_property(properties, _NOUN))


def _create(request: Any, _properties: Mapping[str, Any], body: Mapping[str, Any], _max: int) -> RuleCommand:
    refuse_unknown(body, _NOUN, *_SET)
    request.status = 201
    return CreateRule(request, rule_of(body))


def _delete(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> RuleCommand:
    request.status = 204
    return DeleteRule(request, name_property(properties, _NOUN))


RULE_OPERATIONS: Final = {"QUERY": _query, "READ": _read, "CREATE": _create, "DELETE": _delete}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
