"""Events first; logs, metrics and traces are what handlers make of them.

A span measures something that lasts: one door, one span. An event states something that happened.
Every span has the measurement `seconds` and, as metadata, an `outcome`: ok, error or cancelled.
A test compares this table with the names used in the code; a star stands for the rest of a name.

| event              | kind  | level    | measurements        | metadata                          |
|--------------------|-------|----------|---------------------|-----------------------------------|
| `node.started`     | event | info     |                     | node, roles, version              |
| `node.stopping`    | event | info     |                     | node, reason                      |
| `node.stopped`     | event | info     |                     | node, ending                      |
| `node.unhealthy`   | event | error    |                     | node, role                        |
| `node.healthy`     | event | info     |                     | node                              |
| `role.run`         | span  | debug    |                     | role, start                       |
| `role.overrun`     | event | warning  |                     | role                              |
| `role.missing`     | event | warning  |                     | role                              |
| `presence.tick`    | span  | debug    | nodes               |                                   |
| `presence.changed` | event | info     |                     | nodes, database_time              |
| `presence.lost`    | event | warning  |                     |                                   |
| `worker.claim`     | span  | debug    | parcels, runs       | shard                             |
| `worker.finish`    | span  | debug    | runs                | shard                             |
| `worker.watch`     | span  | debug    | stopped             |                                   |
| `worker.drain`     | span  | debug    | returned            |                                   |
| `worker.lease_lost`| event | warning  |                     | parcel, found                     |
| `worker.stray`     | event | warning  |                     | parcel                            |
| `target.unsigned`  | event | warning  |                     |                                   |
| `target.denied`    | event | warning  |                     | tenant, host, address, reason     |
| `vault.locked`     | event | warning  |                     |                                   |
| `gates.tick`       | span  | debug    | told, broken        |                                   |
| `breaker.opened`   | event | warning  |                     | origin                            |
| `breaker.closed`   | event | info     |                     | origin                            |
| `worker.registered`| event | info     | concurrency         | worker, queues, tasks             |
| `worker.draining`  | event | info     | attempts            |                                   |
| `worker.left`      | event | info     |                     | worker                            |
| `worker.report_refused` | event | error |                   | run                               |
| `worker.hook_failed` | event | error  |                     | run                               |
| `worker.undrained` | event | warning  |                     | parcels                           |
| `elector.tick`     | span  | debug    | held                |                                   |
| `publisher.tick`   | span  | debug    | runs, waiting       |                                   |
| `planner.tick`     | span  | debug    | jobs, runs          |                                   |
| `intake.tick`      | span  | debug    | runs                |                                   |
| `intake.refused`   | event | error    |                     | run, why                          |
| `stream.failed`    | event | error    |                     |                                   |
| `advancer.tick`    | span  | debug    | runs                |                                   |
| `advancer.failed`  | event | error    | failures, pause_seconds | workflow_run                  |
| `relay.tick`       | span  | debug    | rows                |                                   |
| `relay.carried`    | event | info     | carried, refused, later |                               |
| `relay.refused`    | event | warning  |                     | row, why                          |
| `sweeper.tick`     | span  | debug    | found               |                                   |
| `deadlines.tick`   | span  | debug    | expired             |                                   |
| `job.auto_paused`  | event | warning  | failures            | job                               |
| `job.set_aside`    | event | warning  |                     | job, why                          |
| `run.unpublished`  | event | error    |                     | shard, runs                       |
| `reaper.tick`      | span  | debug    | parcels             |                                   |
| `partitions.tick`  | span  | debug    | made, dropped, moved |                                  |
| `partition.kept`   | event | warning  |                     | table, day                        |
| `item.failed`      | event | error    | wait_seconds        | duty, item                        |
| `pruner.tick`      | span  | debug    | rows                |                                   |
| `errands.tick`     | span  | debug    | resumed, deleted    |                                   |
| `offerer.tick`     | span  | debug    | offered             |                                   |
| `surveyor.tick`    | span  | debug    | tables              |                                   |
| `operator.tick`    | span  | debug    | worked              |                                   |
| `rotator.tick`     | span  | debug    | rotated, resealed   |                                   |
| `clearer.tick`     | span  | debug    | blobs               |                                   |
| `router.tick`      | span  | debug    | handed              |                                   |
| `courier.tick`     | span  | debug    | mailboxes           |                                   |
| `watcher.tick`     | span  | debug    | rules               |                                   |
| `mailbox.lost`     | event | warning  |                     | endpoint                          |
| `endpoint.disabled`| event | warning  |                     | endpoint, reason                  |
| `snapshot.old`     | event | warning  | seconds             |                                   |
| `lease.expired`    | event | warning  |                     | workers, runs                     |
| `zones.changed`    | event | info     | moved               | shard, before, after              |
| `shard.acquired`   | event | debug    |                     | shard, epoch                      |
| `shard.lost`       | event | warning  |                     | shard, why                        |
| `planned.missed`   | event | info     | fires               | shard                             |
| `clock.wrong`      | event | warning  | skew_seconds        | database_time                     |
| `clock.right`      | event | info     | skew_seconds        | database_time                     |
| `clock.relived`    | event | warning  |                     | runs, database_time               |
| `outage.began`     | event | error    |                     | duty, and what the duty adds      |
| `outage.lasts`     | event | debug    | failures            | duty, and what the duty adds      |
| `outage.ended`     | event | info     | failures, seconds   | duty, and what the duty adds      |
| `api.listening`    | event | info     |                     | url                               |
| `group.failed`     | event | error    |                     |                                   |
| `request.failed`   | event | error    |                     | request_id, method, path          |
| `library.log`      | event | its own  |                     | logger, message                   |

A span that ends in an error is logged as an error; everything else about it is debug talk.
Metrics are listed in `betimes.telemetry.catalogue`.
"""

from betimes.telemetry.core import Span, Telemetry
from betimes.telemetry.events import Event, Handler, Level
from betimes.telemetry.instruments import Counter, Gauge, Histogram, Reading
from betimes.telemetry.items import Each, Items, in_turn
from betimes.telemetry.memory import Recorder
from betimes.telemetry.outage import Outage

__all__ = [
    "Counter",
    "Each",
    "Event",
    "Gauge",
    "Handler",
    "Histogram",
    "Items",
    "Level",
    "Outage",
    "Reading",
    "Recorder",
    "Span",
    "Telemetry",
    "in_turn",
]
