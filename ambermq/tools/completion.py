"""`ambermq completion`: the script by which a shell completes commands, options and names of queues."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from ambermq.tools.terminal.output import print_line

__all__ = ["completion"]

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_AMBERMQ_COMPLETE"


@click.command(epilog="Example: ambermq completion bash")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands in SHELL.

    bash: add `eval "$(ambermq completion bash)"` to ~/.bashrc. zsh: the same with zsh, in ~/.zshrc. fish: write the
    script to ~/.config/fish/completions/ambermq.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells"
    # The version of bash is checked by `source`, for which bash must be installed; the script itself needs no check.
    script = kind(ctx.find_root().command, {}, "ambermq", _VARIABLE)
    print_line(script.source_template % script.source_vars())
