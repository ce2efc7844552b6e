"""What nodes are given: references filled in from the input and from what others have returned."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from betimes.domain.errors import Invalid, Locked, NotFound
from betimes.domain.ids import TenantId
from betimes.domain.workflow import NodeState
from betimes.ops.blobs import read_reference
from betimes.ops.contents import open_bytes
from betimes.ops.desk import Desk
from betimes.store.pool import Connection
from betimes.store.workflow_runs import NodeRow, read_item_outputs, read_outputs
from betimes.wire.base import shown_bytes
from betimes.workflow.graph import ITEMS_MAX, Node
from betimes.workflow.reference import Missing, Source, Values, resolve

BY_REFERENCE = b'{"result_ref":"blob_'
"""How a result begins that was too large for its row."""
FETCHED_BYTES_MAX = 1 << 20
LIST_FETCHED_BYTES_MAX = 8 << 20
"""Of all results that lie apart and that one node uses, or that the items of one node have."""


class Unready(Exception):
    """A node cannot be given what it is to be given; the sentence says why, the code what kind."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(slots=True)
class Given:
    """What one node is given."""

    payload: bytes | None
    payload_ref: str | None = None
    """A payload that stays where it is, because it is the whole of an output that lies there."""


@dataclass(slots=True, kw_only=True)
class Pantry:
    """Inputs and outputs of one workflow run, read when first needed and kept for its turn.

    Whoever asks for many nodes reads what they use together first (`stock`): then what is asked
    for each of them is there, and no node costs a statement of its own. Only what lies apart is
    fetched one by one; `fetched` counts its bytes.
    """

    desk: Desk
    connection: Connection
    tenant: TenantId
    run: UUID
    input: bytes | None
    fans: Collection[str]
    """The mapped nodes: their output is a list."""
    fetched: int = 0
    _input: Any = None
    _has_input: bool = False
    _outputs: dict[str, bytes | None] = field(default_factory=dict)
    _signals: dict[str, bytes | None] = field(default_factory=dict)
    _parts: dict[str, Sequence[bytes | None]] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)

    async def stock(self, nodes: Sequence[Node], rows: Mapping[str, NodeRow]) -> None:
        """Read and open everything that some nodes use, at once."""
        uses = {(one.source, one.node) for node in nodes for one in node.uses}
        known = self._outputs.keys() | self._parts.keys()
        used = {
            name
            for source, name in uses
            if source is Source.OUTPUT and rows[name].state is NodeState.SUCCEEDED
        } - known
        plain, fans = sorted(used - set(self.fans)), sorted(used & set(self.fans))
        signalled = [
            node.id
            for node in nodes
            if node.id not in self._signals
            and any(one.source is Source.SIGNAL for one in node.uses)
        ]
        asks_input = not self._has_input and any(source is Source.INPUT for source, _ in uses)
        found = await read_outputs(self.connection, self.run, sorted({*plain, *signalled}))
        parts = await read_item_outputs(self.connection, self.run, fans)
        # What ended, or came, in this very turn is not written yet.
        outputs = [rows[name].output or found[name][0] for name in plain]
        signals = [rows[name].signal or found[name][1] for name in signalled]
        flat = [part for name in fans for part in parts[name]]
        opened = iter(
            await self._opened([*outputs, *signals, *flat, *([self.input] if asks_input else [])])
        )
        self._outputs |= {name: next(opened) for name in plain}
        self._signals |= {name: next(opened) for name in signalled}
        self._parts |= {name: [next(opened) for _ in parts[name]] for name in fans}
        if asks_input:
            self._input, self._has_input = shown_bytes(next(opened)), True

    async def payload(self, node: Node, rows: Mapping[str, NodeRow]) -> Given:
        """What a node is given that has one run."""
        whole = self._whole(node, rows)
        if whole is not None:
            return Given(None, payload_ref=whole)
        values = await self._for(node, rows)
        return Given(_encoded(node.payload, values))

    async def count(self, node: Node, rows: Mapping[str, NodeRow]) -> int:
        """How many items a mapped node has."""
        over = None if node.fan is None else node.fan.over
        return len(over) if isinstance(over, list) else len(await self._over(node, rows))

    async def items(self, node: Node, rows: Mapping[str, NodeRow], places: slice) -> list[Any]:
        """The items of a mapped node in some places; those that nobody asks for stay unread."""
        over = None if node.fan is None else node.fan.over
        if isinstance(over, list):
            return list(_resolved(over[places], await self._for(node, rows)))
        return (await self._over(node, rows))[places]

    async def _over(self, node: Node, rows: Mapping[str, NodeRow]) -> list[Any]:
        """The list that a reference leads to."""
        over = None if node.fan is None else node.fan.over
        found = _resolved(over, await self._for(node, rows))
        if not isinstance(found, list):
            kind = type(found).__name__
            raise Unready("NOT_A_LIST", f"expected a list to map over, got a value of {kind}")
        if len(found) > ITEMS_MAX:
            raise Unready("TOO_MANY_ITEMS", f"expected at most {ITEMS_MAX} items, got {len(found)}")
        return found

    async def payloads(
        self, node: Node, rows: Mapping[str, NodeRow], items: Sequence[Any], *, most: int
    ) -> list[bytes | None]:
        """What the runs of some items are given; the first of them, up to so many bytes."""
        base = await self._for(node, rows)
        given: list[bytes | None] = []
        for item in items:
            payload = _encoded(
                node.payload,
                Values(
                    input=base.input,
                    outputs=base.outputs,
                    ended_without=base.ended_without,
                    item=item,
                    signal=base.signal,
                ),
            )
            given.append(payload)
            most -= len(payload or b"")
            if most <= 0:
                break
        return given

    def _whole(self, node: Node, rows: Mapping[str, NodeRow]) -> str | None:
        """The reference behind a payload that is one whole output, kept apart."""
        payload = node.payload
        if not isinstance(payload, dict) or set(payload) != {Source.OUTPUT.value}:
            return None
        name = payload[Source.OUTPUT.value]
        if name in self.fans or rows[name].state is not NodeState.SUCCEEDED:
            return None
        return _reference_in(self._outputs.get(name))

    async def _for(self, node: Node, rows: Mapping[str, NodeRow]) -> Values:
        used = {one.node for one in node.uses if one.source is Source.OUTPUT}
        ended = {name for name in used if rows[name].state is NodeState.SUCCEEDED}
        before = self.fetched
        outputs = {}
        for name in sorted(ended):
            outputs[name] = await self._value(name)
            if self.fetched - before > LIST_FETCHED_BYTES_MAX:
                raise Unready(
                    "OUTPUT_TOO_LARGE",
                    f"the outputs that {node.id!r} uses and that lie apart have more than "
                    f"{LIST_FETCHED_BYTES_MAX} bytes together",
                )
        return Values(
            input=self._input,
            outputs=outputs,
            ended_without=frozenset(used - ended),
            signal=shown_bytes(self._signals.get(node.id)),
        )

    async def _value(self, name: str) -> Any:
        if name not in self._values:
            if name in self._parts:
                self._values[name] = await self._list(name, self._parts[name])
            else:
                self._values[name] = await self._decoded(name, self._outputs[name])
        return self._values[name]

    async def _list(self, name: str, parts: Sequence[bytes | None]) -> list[Any]:
        before, found = self.fetched, []
        for part in parts:
            found.append(await self._decoded(name, part))
            if self.fetched - before > LIST_FETCHED_BYTES_MAX:
                raise Unready(
                    "OUTPUT_TOO_LARGE",
                    f"the outputs of the items of {name!r} that lie apart have more than "
                    f"{LIST_FETCHED_BYTES_MAX} bytes together",
                )
        return found

    async def _decoded(self, name: str, content: bytes | None) -> Any:
        reference = _reference_in(content)
        if reference is None or content is None:
            return shown_bytes(content)
        size = int(msgspec.json.decode(content).get("bytes") or 0)
        if size > FETCHED_BYTES_MAX:
            raise Unready(
                "OUTPUT_TOO_LARGE",
                f"the output of {name!r} has {size} bytes and lies apart as {reference}; as the "
                f"whole payload of a node it may be that large, inside of one no more than "
                f"{FETCHED_BYTES_MAX}",
            )
        self.fetched += size
        try:
            return shown_bytes(await read_reference(self.desk, self.tenant, reference))
        except (Invalid, Locked, NotFound) as error:
            raise Unready(
                "OUTPUT_UNREADABLE", f"the output of {name!r} lies apart as {reference}: {error}"
            ) from error

    async def _opened(self, contents: Sequence[bytes | None]) -> Sequence[bytes | None]:
        return await open_bytes(self.desk, self.connection, self.tenant, contents)


def _reference_in(content: bytes | None) -> str | None:
    if content is None or not content.startswith(BY_REFERENCE):
        return None
    return str(msgspec.json.decode(content)["result_ref"])


def _resolved(value: Any, values: Values) -> Any:
    try:
        return resolve(value, values)
    except Missing as missing:
        raise Unready("REFERENCE_MISSING", str(missing)) from missing


def _encoded(payload: Any, values: Values) -> bytes | None:
    return None if payload is None else msgspec.json.encode(_resolved(payload, values))
