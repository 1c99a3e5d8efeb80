"""docs/monitoring.md lists every metric and every alert, and no other."""

import re

from ambermq.protocol.http.metric_table import METRICS
from tests.docs.pages import ROOT, text_of

_PAGE = "docs/monitoring.md"


def test_every_metric_is_listed() -> None:
    """With its kind and its explanation, as `/metrics` has them."""
    found = re.findall(r"^\| `(ambermq_\w+)` \| (\w+) \| (.*) \|$", text_of(_PAGE), re.MULTILINE)
    assert sorted(found) == sorted((metric.full_name, metric.kind, metric.text) for metric in METRICS)


def test_every_alert_is_listed() -> None:
    """With what to do."""
    rules = (ROOT / "contrib/prometheus/alerts.yml").read_text()
    listed = re.findall(r"^\| `(AmberMQ\w+)` \| .{20}", text_of(_PAGE), re.MULTILINE)
    assert listed == re.findall(r"alert: (\w+)", rules)
