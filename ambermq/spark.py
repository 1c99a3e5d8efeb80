"""History as a Spark DataFrame: the public API of the Data Source `ambermq`. It needs the extra `spark`.

    from ambermq.spark import register

This module and `ambermq.__version__` are what a program may import of AmberMQ; all other modules are private.
"""

try:
    from ambermq.tools.dataset.log_segments import open_histories
    from ambermq.tools.spark.data_source import register
except ModuleNotFoundError as error:
    # A program gets no exit code, so the traceback itself ends with the advice that a command prints.
    error.add_note("run `pip install 'ambermq[spark]'`")
    raise

__all__ = ["open_histories", "register"]
