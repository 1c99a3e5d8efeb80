"""History as a Spark DataFrame: the public API of the Data Source `ambermq`. It needs the extra `spark`.

    from ambermq.spark import register

This module and `ambermq.__version__` are what a program may import of AmberMQ; all other modules are private.
"""

from ambermq.tools.dataset.log_segments import open_histories
from ambermq.tools.spark.data_source import register

__all__ = ["open_histories", "register"]
