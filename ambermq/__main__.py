"""`python -m tools` is the command `ambermq`, for where no script is on the path."""

from tools.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main(prog_name="ambermq")
