"""The embedded PostgreSQL: finding its binaries, starting, watching and stopping it.

`EmbeddedPostgres` is the door; the other modules are its steps, in the order of a start:

    binaries   which PostgreSQL to run, and may the service account run it
    account    who runs it (never root)
    layout     where everything lies under the data directory
    lock       which process owns the server
    process    is that pid really our server
    initialise an empty directory becomes a cluster, or stays empty
    conf       the settings, as text
    keeper     the small process between us and postgres, so that it dies when we die
    protocol   does it accept connections
"""

from betimes.embedded.binaries import Binaries, find_binaries
from betimes.embedded.layout import default_data
from betimes.embedded.supervisor import EmbeddedPostgres

__all__ = ["Binaries", "EmbeddedPostgres", "default_data", "find_binaries"]
