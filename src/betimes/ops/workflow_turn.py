"""One turn of one workflow run, inside a transaction that holds its row.

What is authoritative: the states of the nodes. A run that ends leaves word in the transaction that
ends it; a turn takes the word, writes what it means into the nodes, asks the rules what follows and
does it, all in one transaction. So after any crash either all of a turn has happened or the word is
still there. Two who take turns at once wait for each other at the row, and the second finds nothing
left to do: whatever is started is started by the change of a state that it sees.

    absorb    ended runs become ended nodes and items
    time      deadlines and gates whose time has come
    advance   the rules say what follows; again until nothing does
    write     nodes, runs with their parcels, the end, when to look again

A turn is bounded (`Room`): what it has no room for is not done, and word is left that there is
more. The rules follow from the states alone, so the next turn goes on where this one ended.
Whatever many nodes need is asked for all of them together: no node costs a statement of its own.

Long because a turn is one transaction whose parts share what it has changed so far.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from betimes.domain.errors import Refused
from betimes.domain.ids import RunId, to_text
from betimes.domain.states import RunState, Trigger
from betimes.domain.workflow import NodeState, Stop, WorkflowState
from betimes.ops.checks import check_payload
from betimes.ops.contents import sealed_one
from betimes.ops.desk import Desk
from betimes.ops.enqueue import Order, check_new_run
from betimes.ops.workflow_facts import (
    CLEARING,
    CONDITION,
    ENDS,
    GATE_TIMED_OUT,
    GIVING_UP,
    NODE_FAILED,
    RUN_GONE,
    RUN_GONE_SENTENCE,
    STOPPED,
    TIMED_OUT,
    closed_gate_time,
    error_of,
    items_error,
    read_item_name,
    standing_of,
)
from betimes.ops.workflow_step import Fresh, Room
from betimes.ops.workflow_values import Pantry, Unready
from betimes.ops.workflows import Plan
from betimes.store.adhoc import Batch
from betimes.store.control import ask_to_end, end_runs, hold
from betimes.store.pool import Connection
from betimes.store.telling import News, tell
from betimes.store.workflow_runs import (
    EndedItem,
    NewItem,
    NodeRow,
    WorkflowRun,
    delete_items,
    end_items,
    insert_items,
    running_items,
    write_nodes,
    write_workflow_run,
)
from betimes.store.workflow_turns import (
    EndedRun,
    add_turn,
    drop_turns,
    read_ended,
    read_vanished,
    wake_run,
)
from betimes.workflow.advance import (
    Cancel,
    Hold,
    Interrupt,
    Move,
    Settle,
    Skip,
    Standing,
    Start,
    StartItems,
    advance,
)
from betimes.workflow.graph import GateType
from betimes.workflow.policy import Passing

ROUNDS_MAX = 8
"""So often are the rules asked in one transaction."""
SLICE = 50
"""After so many payloads others have their turn on this node."""


class WorkflowTurn:
    """The desk is one inside the transaction; it knows the time and keeps hints for later."""

    def __init__(
        self,
        desk: Desk,
        connection: Connection,
        run: WorkflowRun,
        plan: Plan,
        nodes: dict[str, NodeRow],
        *,
        now: datetime,
        room: Room | None = None,
    ) -> None:
        self.run = run
        self.nodes = nodes
        self._desk = desk
        self._connection = connection
        self.plan = plan
        self._now = now
        self._room = room or Room()
        self._changed: dict[str, NodeRow] = {}
        self._news: list[News] = []
        self._pantry = Pantry(
            desk=desk,
            connection=connection,
            tenant=run.tenant,
            run=run.id,
            input=run.input,
            fans=[node.id for node in plan.graph.nodes.values() if node.fan is not None],
        )

    async def absorb(self, causes: Sequence[UUID]) -> None:
        """Runs that have ended become nodes and items that have."""
        runs = [RunId(cause) for cause in causes if cause != self.run.id]
        ended = await read_ended(self._connection, self.run.shard, runs)
        items: list[EndedItem] = []
        for one in ended:
            name, place = read_item_name(one.node or "")
            if one.id == self.run.run:
                # Whoever waited for it has ended first: it is not wanted any more.
                self.run.stop = self.run.stop or Stop.CANCEL
            elif name not in self.nodes:
                continue
            elif place is None:
                self._absorb_node(self.nodes[name], one)
            else:
                state = ENDS[one.state]
                items.append(EndedItem(name, place, one.id, state, one.result, error_of(one)))
        found = {one.id for one in ended}
        items += await self._absorb_vanished([run for run in runs if run not in found])
        await self._absorb_items(items)

    async def _absorb_vanished(self, runs: Sequence[RunId]) -> list[EndedItem]:
        """A node fails whose run has left no row: no word of its end will ever come.

        Items that fail so come back. A run that is there, and not over, is waited for.
        """
        gone = await read_vanished(self._connection, self.run.shard, self.run.id, runs)
        nodes = {row.run: row for row in self.nodes.values() if row.run is not None}
        items: list[EndedItem] = []
        for one in gone:
            row = nodes.get(one.run)
            if one.node is not None and one.place is not None:
                error = {"type": RUN_GONE, "message": RUN_GONE_SENTENCE}
                failed = NodeState.FAILED
                items.append(EndedItem(one.node, one.place, one.run, failed, None, error))
            elif row is not None and row.state is NodeState.RUNNING:
                self.fail(row, RUN_GONE, RUN_GONE_SENTENCE)
        return items

    def _absorb_node(self, row: NodeRow, ended: EndedRun) -> None:
        # Another run may stand for the node by now, or none: then this one's end means nothing.
        if row.run != ended.id or row.state is not NodeState.RUNNING:
            return
        row.output = ended.result
        self._end(row, ENDS[ended.state], at=ended.finished_at, error=error_of(ended))
        row.started_at = ended.started_at or row.started_at

    async def _absorb_items(self, items: Sequence[EndedItem]) -> None:
        # What became of items of the last time means nothing for a node that is done again.
        items = [one for one in items if CLEARING not in self.nodes[one.node].detail]
        for name, state in await end_items(self._connection, self.run.id, items):
            row = self._touch(self.nodes[name])
            if state is NodeState.SUCCEEDED:
                row.items_succeeded += 1
            elif state is NodeState.FAILED:
                row.items_failed += 1
            else:
                row.items_cancelled += 1

    def keep_time(self) -> None:
        """What the time has brought: the end of everything, or of the patience of a gate."""
        run = self.run
        if run.deadline_at is not None and run.deadline_at <= self._now and run.stop is None:
            run.stop = Stop.TIMEOUT
        for row in self.nodes.values():
            gate = self.plan.graph.nodes[row.node].gate
            time = closed_gate_time(gate, row)
            if time is None or time[0] > self._now:
                continue
            if time[1] is Passing.OPENS:
                self._touch(row).is_open = True
            else:
                self.fail(row, GATE_TIMED_OUT, "nobody opened its gate in time")

    async def go(self) -> None:
        """Do what follows, again until nothing does or there is no room, and write it all."""
        await self._go_on()
        for _ in range(ROUNDS_MAX):
            turn = advance(self.plan.graph, self._standings(), self.run.stop)
            self.run.stop = turn.stop
            moves = [one for one in turn.moves if not self._is_held_up(one)]
            await self._make(moves)
            # The rules count on all of their moves: with one held up it is not over yet.
            is_over = turn.end is not None and len(moves) == len(turn.moves)
            if turn.end is not None and is_over:
                self._finish(turn.end)
            if is_over or not moves or self._room.has_more:
                break
            await asyncio.sleep(0)  # noqa: TID251 -- gives way to others, takes no time
        else:
            self._room.has_more = True
        await self._write()

    async def _go_on(self) -> None:
        """Go on with what an earlier turn had no room for and the rules do not say."""
        for row in self.nodes.values():
            if row.state is NodeState.RUNNING and GIVING_UP in row.detail:
                await self._give_up(row, **row.detail[GIVING_UP])
        await self._clear()

    async def _clear(self) -> None:
        """Delete what is left of the items of nodes that are done again, as there is room."""
        rows = [row for row in self.nodes.values() if CLEARING in row.detail]
        if not rows:
            return
        room, most = self._room, max(self._room.runs, 0)
        nodes = sorted(row.node for row in rows)
        deleted = await delete_items(self._connection, self.run.id, nodes, most=most)
        room.take(deleted)
        if deleted >= most:
            room.has_more = True
            return
        for row in rows:
            self._touch(row)
            row.detail = {name: it for name, it in row.detail.items() if name != CLEARING}

    def fail(self, row: NodeRow, code: str, sentence: str) -> None:
        """A node fails without a run."""
        self._end(row, NodeState.FAILED, at=self._now, error={"type": code, "message": sentence})

    def touch(self, row: NodeRow) -> NodeRow:
        """Whoever changes a node from outside says so."""
        return self._touch(row)

    def skip(self, row: NodeRow, code: str, *, words: str, by: str | None) -> None:
        """A person does not want a node."""
        row.detail = {**row.detail, "words": words, "by": by}
        self._end(row, NodeState.SKIPPED, at=self._now, reason=code)

    async def sealed(self, content: bytes) -> bytes | None:
        """Something that lies in a row of this workflow run, as it lies there."""
        return await sealed_one(self._desk, self._connection, self.run.tenant, content)

    async def reopen(self, nodes: Collection[str]) -> None:
        """Begin again with some nodes as if they had never been; the others stay as they are."""
        for name in nodes:
            mapped = self.nodes[name].items_started or CLEARING in self.nodes[name].detail
            self.nodes[name] = self._touch(NodeRow(node=name))
            if mapped:
                self.nodes[name].detail = {CLEARING: True}
        run, timeout = self.run, self.plan.graph.timeout
        run.state, run.stop, run.error, run.finished_at = WorkflowState.RUNNING, None, None, None
        run.deadline_at = None if timeout is None else self._now + timeout
        run.retries += 1
        self.tell("workflow_run.retried", nodes=sorted(nodes))

    def tell(self, kind: str, **more: Any) -> None:
        """Say what has happened to the workflow run, to those who asked."""
        run = self.run
        text = to_text("wfr", run.id)
        body = {
            "workflow_run_id": text,
            "workflow": run.workflow,
            "version": run.version,
            "state": run.state.name.lower(),
            **more,
        }
        self._news.append(News(run.shard, run.tenant, kind, text, body))

    def _standings(self) -> dict[str, Standing]:
        return {name: standing_of(row) for name, row in self.nodes.items()}

    async def _make(self, moves: Sequence[Move]) -> None:
        """Make the moves of a round; what there is no room for is left to the next turn."""
        starts: list[NodeRow] = []
        fans: list[StartItems] = []
        stops: list[NodeRow] = []
        for move in moves:
            row = self.nodes[move.node]
            match move:
                case Start():
                    starts.append(row)
                case StartItems():
                    fans.append(move)
                case Interrupt():
                    stops.append(row)
                case Hold():
                    self._hold(row)
                case Skip():
                    self._end(row, NodeState.SKIPPED, at=self._now, reason=CONDITION)
                case Cancel():
                    self._end(row, NodeState.CANCELLED, at=self._now, reason=STOPPED)
                case Settle(state=state):
                    failed = state is NodeState.FAILED
                    error = items_error(row) if failed else None
                    self._end(row, state, at=self._now, error=error)
                case _:
                    assert_never(move)
        # What is to end makes room for others, so it goes first.
        await self._interrupt(stops)
        await self._start(starts, fans)

    def _is_held_up(self, move: Move) -> bool:
        """Whether a node must wait: a later turn does first what an earlier one had no room for."""
        row = self.nodes[move.node]
        if CLEARING in row.detail:
            return True
        return GIVING_UP in row.detail and isinstance(move, StartItems | Settle)

    def _hold(self, row: NodeRow) -> None:
        self._touch(row)
        row.state, row.ready_at = NodeState.READY, self._now
        gate = self.plan.graph.nodes[row.node].gate
        if gate is not None and gate.type is not GateType.TIMER:
            self.tell("workflow_run.waiting", node=row.node, gate=gate.type.value)

    async def _start(self, starts: Sequence[NodeRow], fans: Sequence[StartItems]) -> None:
        """Make the runs of nodes and items, as many as there is room for, all together."""
        room, graph = self._room, self.plan.graph
        chosen = starts[: max(room.runs, 0)]
        mapped = fans[: max(room.runs - len(chosen), 0)]
        room.has_more |= len(chosen) < len(starts) or len(mapped) < len(fans)
        used = [
            graph.nodes[name]
            for name in [*(row.node for row in chosen), *(one.node for one in mapped)]
        ]
        await self._pantry.stock(used, self.nodes)
        fresh = Fresh()
        for number, row in enumerate(chosen, start=1):
            if room.is_full:
                room.has_more = True
                break
            await self._start_node(row, fresh)
            if number % SLICE == 0:
                await asyncio.sleep(0)  # noqa: TID251 -- gives way to others, takes no time
        for move in mapped:
            await self._start_items(move, fresh)
        await self._enqueue(fresh)

    async def _start_node(self, row: NodeRow, fresh: Fresh) -> None:
        node, before = self.plan.graph.nodes[row.node], self._pantry.fetched
        self._touch(row)
        row.ready_at = row.ready_at or self._now
        try:
            if node.fan is not None:
                row.items_total = await self._pantry.count(node, self.nodes)
            else:
                given = await self._pantry.payload(node, self.nodes)
                more = {} if given.payload_ref is None else {"payload_ref": given.payload_ref}
                new = self.plan.work[node.id].run(given.payload, **more)
                if more:
                    check_new_run(new)
                else:  # but for its payload it was checked with the definition
                    check_payload(new.payload)
                self._room.take(1, len(given.payload or b""))
                fresh.add_node(row, new)
        except Unready as unready:
            self.fail(row, unready.code, unready.sentence)
        except Refused as refused:
            self.fail(row, refused.code, refused.sentence)
        else:
            row.state, row.started_at = NodeState.RUNNING, self._now
        self._room.take(0, self._pantry.fetched - before)

    async def _start_items(self, move: StartItems, fresh: Fresh) -> None:
        room, row = self._room, self.nodes[move.node]
        if room.is_full:
            room.has_more = True
            return
        node, before = self.plan.graph.nodes[move.node], self._pantry.fetched
        count = min(move.count, room.runs)
        places = slice(move.first, move.first + count)
        try:
            items = await self._pantry.items(node, self.nodes, places)
            payloads = await self._pantry.payloads(node, self.nodes, items, most=room.bytes)
            for payload in payloads:
                check_payload(payload)
        except Unready as unready:
            await self._give_up(row, unready.code, unready.sentence)
        except Refused as refused:
            await self._give_up(row, refused.code, refused.sentence)
        else:
            work = self.plan.work[node.id]
            for place, payload in enumerate(payloads, start=move.first):
                fresh.add_item(node.id, place, work.run(payload))
            size = sum(len(payload or b"") for payload in payloads)
            room.take(len(payloads), size)
            room.has_more |= len(payloads) < move.count
            self._touch(row).items_started += len(payloads)
        room.take(0, self._pantry.fetched - before)

    async def _give_up(self, row: NodeRow, code: str, sentence: str) -> None:
        """A mapped node cannot be given what its items need: what runs of it is not waited for.

        It fails when all of it was stopped, as much in each turn as there is room for: nobody comes
        back to a node that has failed.
        """
        room, most = self._room, max(self._room.runs, 0)
        # One more than there is room for: so it is known whether these are all.
        runs = await running_items(self._connection, self.run.id, [row.node], most=most + 1)
        await self._stop_runs(runs[:most])
        room.take(len(runs[:most]))
        kept = {name: it for name, it in row.detail.items() if name != GIVING_UP}
        if len(runs) > most:
            room.has_more = True
            self._touch(row).detail = {**kept, GIVING_UP: {"code": code, "sentence": sentence}}
        else:
            row.detail = kept
            self.fail(row, code, sentence)

    async def _enqueue(self, fresh: Fresh) -> None:
        if not fresh.runs:
            return
        run = self.run

        def belonging(batch: Batch) -> Batch:
            return replace(batch, trigger=Trigger.WORKFLOW, workflow_run=run.id, nodes=fresh.names)

        order = Order(self._desk, run.tenant, fresh.runs, shard=run.shard, belonging=belonging)
        for parcel in await order.place(self._connection):
            self._desk.hints.hint(*parcel.hint)
        items = iter(fresh.items)
        made: list[NewItem] = []
        for identifier, row in zip(order.ids, fresh.nodes, strict=True):
            if row is None:
                made.append(NewItem(*next(items), identifier))
            else:
                row.run = identifier
        await insert_items(self._connection, run.id, run.tenant, made)

    async def _interrupt(self, rows: Sequence[NodeRow]) -> None:
        """Ask what runs of nodes to stop, as much of it as there is room for.

        A mapped node counts as asked when all of its items were; until then the rules say it again.
        """
        if not rows:
            return
        room = self._room
        plain = [row for row in rows if row.items_total is None]
        asked, fans = (
            plain[: max(room.runs, 0)],
            [row for row in rows if row.items_total is not None],
        )
        room.has_more |= len(asked) < len(plain)
        runs = [row.run for row in asked if row.run is not None]
        left = max(room.runs - len(asked), 0)
        room.take(len(asked))
        if fans:
            names = [row.node for row in fans]
            # One more than there is room for: so it is known whether these are all.
            items = await running_items(self._connection, self.run.id, names, most=left + 1)
            if len(items) <= left:
                asked += fans
            else:
                room.has_more = True
            runs += items[:left]
            room.take(len(items[:left]))
        for row in asked:
            self._touch(row).is_interrupted = True
        await self._stop_runs(runs)

    async def _stop_runs(self, runs: Sequence[RunId]) -> None:
        """Ask what workers hold to end; the rest ends here and now."""
        if not runs:
            return
        connection, shard = self._connection, self.run.shard
        parcels = await hold(connection, shard, self.run.tenant, runs)
        held = {run for run in runs if run in parcels and parcels[run].worker is not None}
        waiting = [run for run in runs if run not in held]
        await ask_to_end(connection, shard, sorted(held), at=self._now, reason=STOPPED)
        ended = await end_runs(
            connection, shard, waiting, state=RunState.CANCELLED, reason=STOPPED, now=self._now
        )
        # The word of these is still to be taken, and will mean nothing then.
        await self.absorb(sorted(ended))

    def _finish(self, end: WorkflowState) -> None:
        run = self.run
        run.state, run.finished_at = end, self._now
        run.error = self._error() if end is WorkflowState.FAILED else None
        more = {} if run.error is None else {"error": run.error}
        self.tell(f"workflow_run.{end.name.lower()}", **more)

    def _error(self) -> dict[str, Any]:
        """Why it failed: its time, or the first node that did."""
        if self.run.stop is Stop.TIMEOUT:
            return {"type": TIMED_OUT, "message": "it took longer than it may"}
        failed = [one for one in self.nodes.values() if one.state is NodeState.FAILED]
        first = min(failed, key=lambda one: one.finished_at or self._now)
        cause = (first.detail.get("error") or {}).get("message", "")
        return {
            "type": NODE_FAILED,
            "message": f"the node {first.node!r} failed: {cause}".rstrip(": "),
            "node": first.node,
        }

    async def _write(self) -> None:
        run, connection = self.run, self._connection
        await write_nodes(connection, run.id, list(self._changed.values()))
        await write_workflow_run(connection, run)
        await tell(connection, self._news)
        if run.state.is_final:
            await drop_turns(connection, run.id)
            await self._wake()
        elif (time := self._now if self._room.has_more else self._next_time()) is not None:
            await add_turn(connection, run.id, run.tenant, cause=run.id, due_at=time)

    async def _wake(self) -> None:
        """The run that waits for this end need not wait for its time."""
        run = self.run
        if run.run is not None:
            for queue, fair in await wake_run(self._connection, run.run, run.tenant, now=self._now):
                self._desk.hints.hint(run.shard, queue, run.tenant, self._now, fair)

    def _next_time(self) -> datetime | None:
        """When something happens by itself."""
        times = [
            time[0]
            for row in self.nodes.values()
            if (time := closed_gate_time(self.plan.graph.nodes[row.node].gate, row)) is not None
        ]
        if self.run.deadline_at is not None and self.run.stop is None:
            times.append(self.run.deadline_at)
        return min(times, default=None)

    def _end(
        self,
        row: NodeRow,
        state: NodeState,
        *,
        at: datetime,
        error: Any = None,
        reason: str | None = None,
    ) -> None:
        self._touch(row)
        row.state, row.finished_at = state, at
        told = {"error": error, "reason": reason}
        row.detail = {
            **row.detail,
            **{name: value for name, value in told.items() if value is not None},
        }

    def _touch(self, row: NodeRow) -> NodeRow:
        self._changed[row.node] = row
        return row
