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
    """Inputs and outputs of one workflow run, read when first needed and kept for its turn."""

    desk: Desk
    connection: Connection
    tenant: TenantId
    run: UUID
    input: bytes | None
    fans: Collection[str]
    """The mapped nodes: their output is a list."""
    _input: Any = None
    _has_input: bool = False
    _outputs: dict[str, bytes | None] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)

    async def payload(self, node: Node, rows: Mapping[str, NodeRow]) -> Given:
        """What a node is given that has one run."""
        whole = await self._whole(node, rows)
        if whole is not None:
            return Given(None, payload_ref=whole)
        values = await self._for(node, rows)
        return Given(_encoded(node.payload, values))

    async def items(self, node: Node, rows: Mapping[str, NodeRow]) -> list[Any]:
        """The items of a mapped node."""
        if node.fan is None:
            return []
        found = _resolved(node.fan.over, await self._for(node, rows))
        if not isinstance(found, list):
            kind = type(found).__name__
            raise Unready("NOT_A_LIST", f"expected a list to map over, got a value of {kind}")
        if len(found) > ITEMS_MAX:
            raise Unready("TOO_MANY_ITEMS", f"expected at most {ITEMS_MAX} items, got {len(found)}")
        return found

    async def payloads(
        self, node: Node, rows: Mapping[str, NodeRow], items: Sequence[Any]
    ) -> list[bytes | None]:
        """What the runs of some items are given."""
        base = await self._for(node, rows)
        return [
            _encoded(
                node.payload,
                Values(
                    input=base.input,
                    outputs=base.outputs,
                    ended_without=base.ended_without,
                    item=item,
                    signal=base.signal,
                ),
            )
            for item in items
        ]

    async def _whole(self, node: Node, rows: Mapping[str, NodeRow]) -> str | None:
        """The reference behind a payload that is one whole output, kept apart."""
        payload = node.payload
        if not isinstance(payload, dict) or set(payload) != {Source.OUTPUT.value}:
            return None
        name = payload[Source.OUTPUT.value]
        if name in self.fans or rows[name].state is not NodeState.SUCCEEDED:
            return None
        await self._read([name], rows)
        return _reference_in(self._outputs.get(name))

    async def _for(self, node: Node, rows: Mapping[str, NodeRow]) -> Values:
        used = {one.node for one in node.references() if one.source is Source.OUTPUT}
        sources = {one.source for one in node.references()}
        ended = {name for name in used if rows[name].state is NodeState.SUCCEEDED}
        await self._read(sorted(ended), rows)
        outputs = {name: await self._value(name) for name in sorted(ended)}
        return Values(
            input=await self._given() if Source.INPUT in sources else None,
            outputs=outputs,
            ended_without=frozenset(used - ended),
            signal=await self._signal(rows[node.id]) if Source.SIGNAL in sources else None,
        )

    async def _read(self, names: Sequence[str], rows: Mapping[str, NodeRow]) -> None:
        """Outputs as bytes, open; of mapped nodes as one list."""
        plain = [one for one in names if one not in self._outputs and one not in self.fans]
        found = await read_outputs(self.connection, self.run, plain)
        # What ended in this very turn is not written yet.
        contents = [rows[name].output or found[name][0] for name in plain]
        for name, content in zip(plain, await self._opened(contents), strict=True):
            self._outputs[name] = content
        fans = [one for one in names if one not in self._values and one in self.fans]
        for name, parts in (await read_item_outputs(self.connection, self.run, fans)).items():
            self._values[name] = [
                await self._decoded(name, part) for part in await self._opened(parts)
            ]

    async def _value(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = await self._decoded(name, self._outputs[name])
        return self._values[name]

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
        try:
            return shown_bytes(await read_reference(self.desk, self.tenant, reference))
        except (Invalid, Locked, NotFound) as error:
            raise Unready(
                "OUTPUT_UNREADABLE", f"the output of {name!r} lies apart as {reference}: {error}"
            ) from error

    async def _given(self) -> Any:
        if not self._has_input:
            (content,) = await self._opened([self.input])
            self._input, self._has_input = shown_bytes(content), True
        return self._input

    async def _signal(self, row: NodeRow) -> Any:
        found = await read_outputs(self.connection, self.run, [row.node])
        (content,) = await self._opened([row.signal or found[row.node][1]])
        return shown_bytes(content)

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
