"""`betimes completion`: what a shell sources to complete our commands, options and names."""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_BETIMES_COMPLETE"
HOW = {
    "bash": 'eval "$(betimes completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(betimes completion zsh)"       # in ~/.zshrc, behind compinit',
    "fish": "betimes completion fish | source       # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(HOW)))
def completion(shell: str) -> None:
    """Print what a shell needs to complete commands, options and names.

    \b
    eval "$(betimes completion bash)"      # in ~/.bashrc
    eval "$(betimes completion zsh)"       # in ~/.zshrc, behind compinit
    betimes completion fish | source       # in ~/.config/fish/config.fish
    """  # noqa: D301 -- click reads this mark as "do not wrap"
    from betimes.cli.main import root  # noqa: PLC0415 -- the root loads this module

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"expected a shell out of {', '.join(HOW)}, got {shell!r}.")
    script = kind(root, {}, "betimes", VARIABLE)
    # Not `source()`: that one looks for the shell itself first, and only the text is wanted.
    click.echo(script.source_template % script.source_vars())
