"""Settings: file < environment < flags, and sentences for everything that is wrong with them."""

from betimes.config.api import ApiSettings
from betimes.config.load import Examined, examine, load
from betimes.config.problems import BadSettings
from betimes.config.settings import (
    CoordinatorSettings,
    DatabaseSettings,
    EmbeddedSettings,
    JanitorSettings,
    LogSettings,
    ServerSettings,
    Settings,
    ShardSettings,
    WorkerSettings,
)
from betimes.config.sources import Flag

__all__ = [
    "ApiSettings",
    "BadSettings",
    "CoordinatorSettings",
    "DatabaseSettings",
    "EmbeddedSettings",
    "Examined",
    "Flag",
    "JanitorSettings",
    "LogSettings",
    "ServerSettings",
    "Settings",
    "ShardSettings",
    "WorkerSettings",
    "examine",
    "load",
]
