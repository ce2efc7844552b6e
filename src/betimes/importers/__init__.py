"""Taking over from others: crontabs, Kubernetes CronJobs, Celery beat, APScheduler.

    verdicts = read_crontab(text, where)     one verdict for each line, never none
    compare(verdict, after, until)           our fires beside those of the source's own rules

Every line becomes a job that fires when it fired before, or is refused with a reason; what cannot
be kept is told as a warning. Nothing here reads files, asks for the time or talks to anybody.
"""

from betimes.importers.shadow import Comparison, compare
from betimes.importers.verdict import Verdict, judged

__all__ = ["Comparison", "Verdict", "compare", "judged"]
