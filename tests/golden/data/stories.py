"""The names of a life that others ask for: messages with something to tell, queues, and the wiring."""

from typing import Final

__all__ = ["ATTACHMENTS", "BROWSED", "MUXERS", "RESUMABLE", "STORIES"]

RESUMABLE: Final = "resumable"
"""A queue with a suspended link: what it delivers depends on the time since then."""

STORIES: Final = {
    "default": (
        *("kept-0-0", "large-0", "both-0", "kept-3-1", "deleted-1", "purged-2", "goal", "large-news", "weather-1"),
        *("path-1", "region-1", "drawn-5", "anonymous-0", "4711", f"{0xA11CE:032x}", "0xff00", "text", "price-1"),
        *(f"shared-{number}" for number in range(8)),
        *(
            "reading",
            "shared-16",
            "job-0",
            "job-2",
            "job-4",
            "job-6",
            "fleeting-2",
            "reminder-1",
            "reminder-2",
            "reminder-3",
            "retried-1",
            "invoice-1",
            "invoice-4",
            "stepped-1",
            "stepped-2",
            "load-0",
            "load-12",
            "load-120",
        ),
    ),
    "rehearsal": ("rehearsed-0", "rehearsed-4", "later-0"),
    "bare": ("good", "fine", "bare-3"),
}
"""Virtual host to the ids of messages that have something to tell."""

BROWSED: Final = frozenset({"jobs", "repairs", "kept", "shared", "letters", "orders", "doomed", "only"})
"""Queues that are looked at as they were."""

MUXERS: Final = {
    "news": ("wild-destination",),
    "urgent": ("selector",),
    "line": ("lossy", "--probability", "0.5", "--seed", "7"),
    "regions": ("property",),
    "paths": ("wild-property", "--separator", "."),
    "post": ("destination",),
    "short-lived": ("simple",),
}

ATTACHMENTS: Final = (
    ("news.all", "news", "--pattern", "#"),
    ("news.sport", "news", "--pattern", "sport.#"),
    ("news.football", "news", "--pattern", "*.football"),
    ("muxer:urgent", "news", "--pattern", "weather.#"),
    ("alarms", "urgent", "--selector", "level IN ('high', 'highest')"),
    ("arrived", "line"),
    ("letters", "post", "--destination", "mail"),
    ("europe", "regions", "--property", "region=eu", "--property", "size=3"),
    ("sources", "paths", "--property", "path=src.#"),
    ("letters", "short-lived"),
)
