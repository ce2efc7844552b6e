"""What a role may ask for when it is made."""

from dataclasses import dataclass

from betimes.app.dice import Dice
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.store.database import Database
from betimes.store.nodes import NodeCard
from betimes.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One process of the service, with everything it was built from."""

    card: NodeCard
    settings: Settings
    clock: Clock
    dice: Dice
    telemetry: Telemetry
    database: Database
    listen_dsn: str
