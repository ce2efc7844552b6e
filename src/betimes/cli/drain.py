"""`betimes server drain`: ask a node to finish what it holds and to stop."""

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.completing import NameOf
from betimes.cli.surface import OFFERS


@service_command("drain", example="betimes server drain")
@click.argument("node", required=False, type=NameOf("node"))
def drain(talk: Talk, *, node: str | None) -> int:
    """Ask a node to finish what it holds and to stop: this machine's, or the one that is named."""
    if node is None:
        import socket  # noqa: PLC0415 -- only who names none needs it

        node = socket.gethostname()
    talk.confirm(f"Drain the node {node}", name=node)
    told = talk.session.call(OFFERS["cluster.drain_node"], {"node": node})
    talk.done(f"node/{node} drains", told)
    return 0
