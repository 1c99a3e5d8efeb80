"""The priority of a message: ten levels, 0 to 9.

AMQP 1.0, part 3, section 3.2.1, allows 256. Those above 9 are 9 here, as that section lets a broker do.
"""

from typing import Final

__all__ = ["PRIORITY_DEFAULT", "PRIORITY_MAX"]

PRIORITY_DEFAULT: Final = 4
"""The priority of a message that names none."""
PRIORITY_MAX: Final = 9
