"""A range of numbers for the command line that refuses NaN and infinity."""

import math
from typing import Any

import click

__all__ = ["NumberRange"]


class NumberRange(click.FloatRange):
    """A range of finite numbers.

    click's own range accepts `nan`, and a wait of `nan` seconds never ends.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number in a text; raise BadParameter if it is not a number of the range."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
