"""Bytes that the formats had once, checked in: what was written stays readable."""

from pathlib import Path
from typing import Final

__all__ = ["GOLDEN_DIRECTORY"]

GOLDEN_DIRECTORY: Final = Path(__file__).parent
