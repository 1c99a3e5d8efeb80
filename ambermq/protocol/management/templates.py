"""Queue templates at the `$management` node: requests of type `org.ambermq.template` become commands.

Rule: templates are configuration. Requests read them; only the configuration file changes them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, Inspect
from ambermq.engine.decide.attachment_arguments import ARGUMENT_NAMES
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import State
from ambermq.engine.settings.setting_table import SETTINGS, values_of_settings
from ambermq.protocol.management.attachments import argument_value
from ambermq.protocol.management.paging import page_of, query_window
from ambermq.protocol.management.request_fields import name_property

__all__ = ["TEMPLATE_ATTRIBUTES", "TEMPLATE_OPERATIONS", "TEMPLATE_TYPE"]

TEMPLATE_TYPE: Final = "org.ambermq.template"
TEMPLATE_ATTRIBUTES: Final = ("name", "pattern", *SETTINGS, "attach")
_NOUN: Final = "template"


def _attributes(template: QueueTemplate) -> dict[str, Any]:
    """Return the attributes of a template."""
    attach = [_attachment(one) for one in template.attach]
    return {
        "name": template.name,
        "pattern": template.pattern,
        **values_of_settings(template.settings),
        "attach": attach,
    }


def _attachment(attachment: TemplateAttachment) -> dict[str, Any]:
    name = attachment.argument_name
    argument = {name: argument_value(attachment.argument)} if name in ARGUMENT_NAMES.values() else {}
    return {"muxer": attachment.muxer, **argument}


def _read(request: Any, properties: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    template = _templates(request).named(name_property(properties, _NOUN))
    # The answer does not depend on the state. It is a command so that answers leave in the order of their requests.
    return Inspect(request, lambda _state: None if template is None else _attributes(template))


def _query(request: Any, properties: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    return Inspect(request, partial(_page, _templates(request), *query_window(properties, body, _NOUN, results_max)))


def _page(templates: QueueTemplates, offset: int, count: int, names: tuple[str, ...], _state: State) -> dict[str, Any]:
    rows = map(_attributes, templates.ordered[offset : offset + count])
    return page_of(rows, len(templates.ordered), names, TEMPLATE_ATTRIBUTES)


def _templates(request: Any) -> QueueTemplates:
    templates: QueueTemplates = request.peer.gateway.engine.config.templates
    return templates


TEMPLATE_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any], int], Command]]] = {
    "READ": _read,
    "QUERY": _query,
}
"""Operation to the function that makes its command of request, application properties, body, and page rows."""
