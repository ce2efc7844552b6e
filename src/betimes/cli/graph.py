"""`betimes workflow graph`: a workflow, or one of its runs, as a tree of its nodes.

A node hangs below the last of its needs; what else it comes after is said beside it. What decided
how long a run took, the critical path, is marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import click

from betimes.cli import machine
from betimes.cli.command import Talk, service_command
from betimes.cli.looks import BOLD, COLOURS, RED, Eye, cell, clean
from betimes.cli.perform import seconds
from betimes.cli.present import painted
from betimes.cli.surface import OFFERS
from betimes.cli.times import moment_of, relative
from betimes.cli.watching import CLEAR_BELOW
from betimes.sdk import ambient
from betimes.workflow.graph import Graph, Node, read_graph

OK, RUN_FAILED = 0, 7
RUN = "wfr_"
MARKS = {
    "waiting": "·", "ready": "‖", "running": "▶", "succeeded": "✓", "failed": "✗",
    "skipped": "↷", "cancelled": "⊘",
}  # fmt: skip
CRITICAL = "*"
GATES = {
    "approval": "waits for approval",
    "signal": "waits for a signal",
    "timer": "waits for its time",
}


class Line(NamedTuple):
    """A line of the tree: its branch, and what stands beside it."""

    branch: str
    node: Mapping[str, Any]
    beside: str


@service_command("graph", example="betimes workflow graph daily")
@click.argument("subject", metavar="WORKFLOW|RUN")
@click.option("--version", "number", type=int, help="Of a workflow, instead of the newest.")
@click.option(
    "-w", "--watch", is_flag=True, help="Draw a run again whenever it changes, until it is over."
)
@click.option("--interval", default="2s", hidden=True, help="How often --watch looks.")
def graph(talk: Talk, subject: str, number: int | None, interval: str, *, watch: bool) -> int:
    """Draw a workflow, or one of its runs with the states of its nodes.

    Of a run, * marks the critical path: what decided how long it takes. With --watch the exit code
    is 7 when the run does not succeed.
    """  # fmt: skip
    if not subject.startswith(RUN):
        if watch:
            raise click.UsageError("--watch is about runs; a workflow stays as it is.")
        told = _definition(talk, subject, number)
        _show(talk, told, workflow_text(told, talk.eye()))
        return OK
    if number is not None:
        raise click.UsageError("--version is about workflows; a run has one already.")
    if watch:
        return _watch(talk, subject, seconds(interval))
    told = _run(talk, subject)
    _show(talk, told, run_text(told, talk.eye()))
    return OK


def _show(talk: Talk, told: Any, text: str) -> None:
    if talk.for_people:
        click.echo(text, nl=False)
    else:
        talk.show(told)


def _run(talk: Talk, name: str) -> Any:
    offer = OFFERS["workflow_runs.get"]
    return talk.session.call(offer, {"workflow_run": name}, query={"include": ["graph"]})


def _watch(talk: Talk, name: str, pause: float) -> int:
    """Draw whenever something has changed; on a terminal over what was drawn before."""
    before, drawn = None, 0
    while True:
        told = _run(talk, name)
        now = [told["state"], [(one["state"], one["items"]) for one in told["graph"]["nodes"]]]
        if now != before:
            text = run_text(told, talk.eye())
            if drawn and talk.for_people and machine.somebody_reads():
                click.echo(f"\x1b[{drawn}F{CLEAR_BELOW}", nl=False)
            _show(talk, told, text)
            before, drawn = now, text.count("\n")
        if told["finished_at"] is not None:
            return OK if told["state"] == "succeeded" else RUN_FAILED
        ambient.pause(pause)


def _definition(talk: Talk, name: str, number: int | None) -> Any:
    """With payloads, which tell what follows what; without them for who may not see them."""
    from betimes.sdk.errors import ScopeMissing  # noqa: PLC0415 -- see Talk

    path = {"workflow": name}
    offer = OFFERS["workflows.get"]
    if number is not None:
        path["version"], offer = str(number), OFFERS["workflows.version"]
    try:
        return talk.session.call(offer, path, query={"view": "full"})
    except ScopeMissing:
        talk.remark("Without payloads:read only the needs that are written down are seen.")
        return talk.session.call(offer, path)


def run_text(told: Mapping[str, Any], eye: Eye) -> str:
    """A run: how far it is, and every node with its state."""
    nodes = told["graph"]["nodes"]
    over = sum(node["finished_at"] is not None for node in nodes)
    head = f"{told['workflow']} (version {told['version']}): {told['state']}"
    details = [f"{over} of {len(nodes)} nodes are over"]
    if (started := moment_of(told.get("started_at"))) is not None:
        details.append(f"started {relative(started, eye.now)}")
    if told.get("run_ms") is not None:
        details.append(f"took {cell(told['run_ms'], 'ms', eye)}")
    lines = [painted(clean(head), BOLD, eye) + f", {', '.join(details)}"]
    if told.get("error") is not None:
        lines.append(painted(f"  {clean(told['error']['message'])}", RED, eye))
    lines += _drawn([_line(one, node) for one, node in _tree(nodes)], eye)
    for node in nodes:
        if node["state"] == "ready" and node["gate"]["type"] in ("approval", "signal"):
            verb = "approve" if node["gate"]["type"] == "approval" else "signal"
            lines.append(f"  betimes workflow {verb} {told['id']} {node['node']}")
    return "\n".join(lines) + "\n"


def workflow_text(told: Mapping[str, Any], eye: Eye) -> str:
    """A workflow: every node with what it calls and when."""
    known = _read(told)
    nodes = [_shown(node) for node in known.nodes.values()]
    head = f"{told['name']} (version {told['version']}): {len(nodes)} nodes, "
    policy = told["failure_policy"].replace("_", " ")
    lines = [painted(clean(f"{head}{policy}"), BOLD, eye)]
    lines += _drawn([Line(one, node, node["beside"]) for one, node in _tree(nodes)], eye)
    return "\n".join(lines) + "\n"


def _read(told: Mapping[str, Any]) -> Graph:
    """The graph of a definition; one without payloads maps over something unknown."""
    nodes = {name: dict(node) for name, node in told["nodes"].items()}
    for node in nodes.values():
        if node.get("map") is not None:
            node["map"] = {"over": [], **node["map"]}
    written = {"nodes": nodes, "failure_policy": told["failure_policy"]}
    return read_graph(written, duration=lambda *_: timedelta(seconds=1))


def _shown(node: Node) -> dict[str, Any]:
    notes = []
    if node.handler is not None and node.handler != node.id:
        notes.append(f"calls {node.handler}")
    if node.target is not None:
        notes.append(f"calls {node.target.get('url') or node.target.get('type')}")
    if node.fan is not None:
        most = f", {node.fan.max_parallel} at once" if node.fan.max_parallel else ""
        notes.append(f"for each item{most}")
    if node.gate is not None:
        notes.append(GATES[node.gate.type.value])
    if node.when.value != "all_success":
        notes.append(f"when {node.when.value.replace('_', ' ')}")
    return {"node": node.id, "needs": list(node.needs), "state": None, "beside": "; ".join(notes)}


def _tree(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node with its branch; each below the last of its needs."""
    places = {node["node"]: place for place, node in enumerate(nodes)}
    below: dict[str | None, list[Mapping[str, Any]]] = {}
    for node in nodes:
        above = max(node["needs"], key=places.__getitem__, default=None)
        below.setdefault(above, []).append(node)

    stack = [("", "", node) for node in reversed(below.get(None, []))]
    while stack:
        branch, indent, node = stack.pop()
        yield branch, node
        children = below.get(node["node"], [])
        for place, child in reversed(list(enumerate(children))):
            is_last = place == len(children) - 1
            fork, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            stack.append((indent + fork, indent + bar, child))


def _line(branch: str, node: Mapping[str, Any]) -> Line:
    notes = []
    if node["items"] is not None:
        items = node["items"]
        done = items["succeeded"] + items["failed"] + items["cancelled"]
        failed = f", {items['failed']} failed" if items["failed"] else ""
        notes.append(f"{done} of {items['total']} items{failed}")
    if node["state"] == "ready" and node["gate"] is not None:
        notes.append(GATES[node["gate"]["type"]])
    if node["when"] != "all_success":
        notes.append(f"when {node['when'].replace('_', ' ')}")
    if node["error"] is not None:
        notes.append(node["error"]["message"])
    return Line(branch, node, "; ".join(notes))


def _drawn(lines: Sequence[Line], eye: Eye) -> Iterator[str]:
    """The lines of a tree, states and notes under each other."""
    parents = {line.node["node"]: line for line in lines}
    labels = [f"{line.branch}{_mark(line.node)}{clean(line.node['node'])}" for line in lines]
    width = max(len(label) for label in labels)
    for line, label in zip(lines, labels, strict=True):
        node = line.node
        also = _also(line, parents)
        beside = clean("; ".join(part for part in (line.beside, also) if part))
        if node["state"] is None:
            yield f"  {label:{width}}   {beside}".rstrip()
            continue
        took = "" if node["run_ms"] is None else cell(node["run_ms"], "ms", eye)
        mark = CRITICAL if node["is_critical"] else " "
        state = node["state"]
        padding = " " * (9 - len(state))
        shown = painted(state, COLOURS.get(state, BOLD), eye) + padding
        yield f"{mark} {label:{width}}   {shown}   {took:>8}   {beside}".rstrip()


def _mark(node: Mapping[str, Any]) -> str:
    return "" if node["state"] is None else f"{MARKS[node['state']]} "


def _also(line: Line, lines: Mapping[str, Line]) -> str:
    """What it comes after besides the node it hangs below."""
    order = list(lines)
    needs = sorted(line.node["needs"], key=order.index)
    return "" if len(needs) <= 1 else f"after {', '.join(needs)}"
