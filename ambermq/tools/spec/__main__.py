"""`python -m ambermq.tools.spec`: the generator of the AMQP tables."""

import sys

from ambermq.tools.spec.generate import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
