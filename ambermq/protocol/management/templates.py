"""The queue templates in the broker's `$management` node: what requests of type `org.ambermq.template` become.

Rule: templates are configuration, so they are read here and changed in the broker's file alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from ambermq.engine.commands import Command, Inspect
from ambermq.engine.decide.attachment_arguments import CALLED
from ambermq.engine.model.queue_template import QueueTemplate, QueueTemplates, TemplateAttachment
from ambermq.engine.model.state import State
from ambermq.protocol.management.attachments import argument_value
from ambermq.protocol.management.paging import asked_window, page_of
from ambermq.protocol.management.request_fields import asked_name

__all__ = ["TEMPLATE_ATTRIBUTES", "TEMPLATE_OPERATIONS", "TEMPLATE_TYPE"]

TEMPLATE_TYPE: Final = "org.ambermq.template"
TEMPLATE_ATTRIBUTES: Final = ("name", "pattern", "messages_max", "attach")
_NOUN: Final = "template"


def _attributes(template: QueueTemplate) -> dict[str, Any]:
    """Return what `$management` says of a template."""
    settings = asdict(template.settings)
    attach = [_attachment(one) for one in template.attach]
    return {"name": template.name, "pattern": template.pattern, **settings, "attach": attach}


def _attachment(attachment: TemplateAttachment) -> dict[str, Any]:
    said = {attachment.called: argument_value(attachment.argument)} if attachment.called in CALLED.values() else {}
    return {"muxer": attachment.muxer, **said}


def _read(request: Any, asked: Mapping[str, Any], _body: Mapping[str, Any], _max: int) -> Command:
    template = _templates(request).named(asked_name(asked, _NOUN))
    # Configuration is durable before a broker starts; what is asked about it waits its turn like everything else.
    return Inspect(request, lambda _state: None if template is None else _attributes(template))


def _query(request: Any, asked: Mapping[str, Any], body: Mapping[str, Any], results_max: int) -> Command:
    return Inspect(request, partial(_page, _templates(request), *asked_window(asked, body, _NOUN, results_max)))


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
"""Operation to what makes its command of request, application properties, body, and the most results of a page."""
