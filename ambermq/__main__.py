"""`python -m ambermq` is the command `ambermq`, for where no script is on the path."""

from ambermq.tools.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main(prog_name="ambermq")
