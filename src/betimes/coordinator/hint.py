"""What a coordinator tells workers."""

from collections.abc import Callable
from datetime import datetime

from betimes.domain.ids import ShardId, TenantId

Hint = Callable[[ShardId, str, TenantId, datetime, int], None]
"""Tell workers that (shard, queue, tenant) has something visible at an instant, in a bucket."""
