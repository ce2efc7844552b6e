"""Use cases: one transaction per verb; API, CLI and UI share each verb.

Pure checks come first and answer with a sentence; then one transaction, as the tenant whose request
it is; hints leave after the commit. Every verb makes its ids before its transaction, so that it may
be repeated when the reply of a commit was lost.
"""

from betimes.ops.create import NewJob, create_job, create_jobs
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_run, enqueue_runs

__all__ = ["Desk", "NewJob", "create_job", "create_jobs", "enqueue_run", "enqueue_runs"]
