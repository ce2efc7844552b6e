"""What handlers and their libraries log by the standard library goes to the log of the run too."""

import logging

from betimes.sdk.context import current_context

LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))
OURS = "betimes"


class RunLog(logging.Handler):
    """Carries records made inside an attempt to its log; elsewhere it does nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        context = current_context()
        if context is None or record.name.partition(".")[0] == OURS:
            return
        try:
            message = self.format(record)
        except (TypeError, ValueError):
            message = str(record.msg)
        level = next((name for least, name in LEVELS if record.levelno >= least), "debug")
        context.said(level, message, {"logger": record.name})


def ship_logs(level: int = logging.INFO) -> None:
    """Install the handler on the root logger, once."""
    root = logging.getLogger()
    if any(isinstance(one, RunLog) for one in root.handlers):
        return
    handler = RunLog(level)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root.addHandler(handler)
    if root.level > level or root.level == logging.NOTSET:
        root.setLevel(level)
