"""How the laws are tried: the same examples each time by default, others each time in `make fuzz`."""

import os

from hypothesis import settings

settings.register_profile("test", derandomize=True, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("AMBERMQ_HYPOTHESIS", "test"))
