"""Addresses that must never be called, in every clothing that somebody has thought of.

Run as a program inside an empty network namespace it sends what it can and counts the packets that
leave: `python tests/hostile_kit.py`. The witness is a raw socket, not our own code.
"""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent))

from betimes.domain.errors import Refused
from betimes.domain.outcome import Failed, Outcome, Snoozed
from betimes.target.address import AddressPolicy, read_address
from betimes.target.answer import NoAnswer, Patience, Request
from betimes.target.client import Client, Denied
from betimes.target.delivery import Delivery
from betimes.target.gate import Rules
from betimes.target.gates import Gates
from betimes.target.resolve import Resolver
from betimes.target.url import PortRange, TargetUrl, UrlPolicy, read_url
from betimes.telemetry import Telemetry
from betimes.testing.real_clock import RealClock

CONTROL = ("10.0.0.1", "127.0.0.1", "fc00::1")
PUBLIC = "8.8.4.4"
"""A public address that we give to this machine inside the namespace: the one allowed target."""
POLICY = UrlPolicy(plain_http=True, ports=(PortRange(1, 65_535),))
TENANT = UUID(int=1)
PATIENT = Rules(failures_in_row=10**9, window_least=10**9)
"""No breaker between the hostile URLs and the guard."""
AT = datetime(2026, 1, 1, tzinfo=UTC)


def words(text: str) -> list[str]:
    """A table of words."""
    return text.split()


DOOMED = words("""
127.0.0.1 127.8.8.8 10.0.0.1 172.16.5.5 192.168.1.1 169.254.169.254 169.254.170.2
100.100.100.200 100.64.1.1 192.0.0.192 168.63.129.16 198.18.0.7 203.0.113.5 224.0.0.1
255.255.255.255 240.0.0.9 0.0.0.0
""")
DOOMED_V6 = words("""
::1 :: fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2001::1 3fff::1 5f00::1 100::1 4000::1
""")
NAMES = words("""
localhost LOCALHOST localhost. a.localhost metadata metadata.google.internal instance-data
kubernetes.default.svc db.internal printer.local router.lan x.home.arpa api.intranet
""")
CONFUSIONS = (
    "http://{a}@8.8.4.4/",
    "http://8.8.4.4@{a}/",
    "http://8.8.4.4#@{a}/",
    "http://8.8.4.4\\@{a}/",
    "http://8.8.4.4%2f@{a}/",
    "http:\\\\{a}/",
    "http:/{a}/",
    "http:{a}/",
    "//{a}/",
    "http://\t{a}/",
    "http://{a}\n/",
    "http://{a}\x00.example.com/",
    "http://{a}%00.example.com/",
    "http://[{a}]/",
    "http://{a}:80:80/",
    " http://{a}/",
    "HTTP://{a}:80/",
    "http://{a}?@8.8.4.4/",
    "http://{a};8.8.4.4/",
)
SCHEMES = "file gopher ftp dict ldap tftp telnet smtp imap pop3 rtsp scp sftp ws wss unix data jar"
WIDE = str.maketrans("0123456789", "０１２３４５６７８９")  # noqa: RUF001
CIRCLED = str.maketrans("0123456789", "⓪①②③④⑤⑥⑦⑧⑨")


def forms_of(text: str) -> Iterator[str]:
    """One IPv4 address in every way a resolver, a browser or a person may read it."""
    number = int(IPv4Address(text))
    a, b, c, d = text.split(".")
    yield from (text, f"{text}.", str(number), hex(number), f"0x{number:08X}", f"0{number:o}")
    yield from (f"{a}.{int(b) << 16 | int(c) << 8 | int(d)}", f"{a}.{b}.{int(c) << 8 | int(d)}")
    yield ".".join(f"0{int(part):o}" for part in (a, b, c, d))
    yield ".".join(f"000{int(part):o}" for part in (a, b, c, d))
    yield ".".join(hex(int(part)) for part in (a, b, c, d))
    yield f"{hex(int(a))}.{b}.0{int(c):o}.{d}"
    yield from (text.translate(WIDE), text.translate(CIRCLED), text.replace(".", "。"))
    yield "".join(f"%{ord(one):02x}" for one in text)
    yield from (f"[::ffff:{text}]", f"[::{text}]", f"[::ffff:0:{text}]", f"[64:ff9b::{text}]")
    yield f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]"
    yield f"[2606:4700::5efe:{number >> 16:x}:{number & 0xFFFF:x}]"
    yield f"[2001:0:4136:e378:8000:63bf:{~number >> 16 & 0xFFFF:x}:{~number & 0xFFFF:x}]"
    yield from (f"{text}.nip.example", f"www.{text.replace('.', '-')}.sslip.example")


def corpus() -> list[str]:
    """Every hostile URL, each once."""
    urls = [f"http://{form}/" for text in DOOMED for form in forms_of(text)]
    urls += [f"http://[{text}]/" for text in DOOMED_V6]
    urls += [f"http://[{text}%25eth0]/" for text in DOOMED_V6]
    urls += [f"http://{name}/" for name in NAMES]
    urls += [one.format(a=text) for one in CONFUSIONS for text in DOOMED[:6]]
    urls += [f"{scheme}://127.0.0.1/x" for scheme in SCHEMES.split()]
    return list(dict.fromkeys(urls))


def names(host: str) -> list[str]:
    """A resolver without a network: numbers in all their forms, and wildcard names."""
    bare = host.rstrip(".")
    for suffix in (".nip.example", ".sslip.example"):
        if bare.endswith(suffix):
            inner = bare.removesuffix(suffix).removeprefix("www.").replace("-", ".")
            return [inner]
    if bare in ("localhost", "a.localhost"):
        return ["127.0.0.1"]
    if bare.endswith((".internal", ".local", ".lan", ".svc", ".intranet", ".arpa")):
        return ["10.0.0.1"]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [str(address[0]).partition("%")[0] for *_, address in found]


class Errand:
    """An attempt, for the sake of its target."""

    started_at = due_at = AT
    fire_at = deadline = job_id = payload = None
    attempt = fence = 1
    waited_for: str | None = None
    traceparent = "00-a-b-01"
    tracestate: str | None = None
    run_id, tenant_id, cancelled = "run_01", str(TENANT), False

    def __init__(self, target: dict[str, Any]) -> None:
        self.target = target

    def is_held(self) -> bool:
        return True

    async def wait_cancelled(self) -> None:
        await asyncio.Event().wait()

    def park(self) -> bool:
        return False

    def snooze(self, pause: timedelta) -> Snoozed:
        return Snoozed(until=AT + pause)


class Witness(threading.Thread):
    """Counts where packets go, below everything that could be mistaken."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self._socket.settimeout(0.2)
        self.seen: Counter[str] = Counter()
        self.stopped = False

    def run(self) -> None:
        while not self.stopped:
            try:
                data, (_, protocol, *_) = self._socket.recvfrom(65_536)
            except TimeoutError:
                continue
            if protocol == 0x0800:
                self._note(data[9], str(IPv4Address(data[16:20])))
            elif protocol == 0x86DD:
                self._note(data[6], str(IPv6Address(data[24:40])))

    def _note(self, protocol: int, destination: str) -> None:
        if protocol in (6, 17):  # connections and datagrams; neighbours may be looked for
            self.seen[destination] += 1


def denied(seen: Counter[str]) -> dict[str, int]:
    """Packets to anything that may not be called."""
    policy = AddressPolicy()
    return {to: number for to, number in seen.items() if policy.refusal(ip_address(to))}


def lenient(url: str) -> TargetUrl | None:
    """A URL as a careless reader would take it: what may lie in a row that nobody checked."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        return None
    if not host or parts.scheme not in ("http", "https"):
        return None
    address = read_address(host)
    return TargetUrl(parts.scheme, host, port, parts.path or "/", address)


async def run() -> dict[str, Any]:
    """Every URL through every door."""
    clock = RealClock()
    found: Counter[str] = Counter()
    urls = corpus()
    location = "/"

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        line = location.replace("\r", "").replace("\n", "").replace("\x00", "")
        writer.write(
            f"HTTP/1.1 307 X\r\nlocation: {line}\r\ncontent-length: 0\r\n\r\n".encode(
                "utf-8", "replace"
            )
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(redirect, PUBLIC, 80)

    async def lookup(host: str) -> list[str]:
        return [PUBLIC] if host == "start.example" else names(host)

    async def policies(_: UUID) -> UrlPolicy:
        return POLICY

    def delivery(client: Client) -> Delivery:
        return Delivery(
            client=client,
            clock=clock,
            policies=policies,
            patience=Patience(connect=0.3, total=1.0),
            gates=Gates(rules=PATIENT, clock=clock, telemetry=Telemetry(clock=clock)),
        )

    def judged(door: str, outcome: Outcome) -> None:
        refused = isinstance(outcome, Failed) and outcome.error.type in (
            "TargetRefused",
            "TargetRedirected",
            "TargetNotFound",
        )
        kind = outcome.error.type if isinstance(outcome, Failed) else type(outcome).__name__
        found[f"{door}.refused" if refused else f"{door}.{kind}"] += 1

    for url in urls:
        try:
            read_url(url, POLICY)
            found["create.accepted"] += 1
        except Refused:
            found["create.refused"] += 1
        denied: list[str] = []
        client = Client(
            resolver=Resolver(lookup, clock=clock), clock=clock, on_denied=told_to(denied)
        )
        deliver = delivery(client).deliver
        judged("stored", await deliver(Errand({"type": "http", "url": url})))
        location = url
        start = {"type": "http", "url": "http://start.example/", "follow_redirects": 5}
        judged("redirect", await deliver(Errand(start)))
        if (unchecked := lenient(url)) is not None:
            request = Request(
                tenant=TENANT,
                url=unchecked,
                method="GET",
                headers=[],
                body=None,
                patience=Patience(connect=0.3, total=1.0),
                addresses=POLICY.addresses,
            )
            denied.clear()
            try:
                result = await client.send(request)
            except UnicodeError:
                result = None
            kind = result.trouble.name.lower() if isinstance(result, NoAnswer) else "answered"
            if denied and kind == "resolve":  # what a tenant sees; the operator sees a refusal
                kind = "refused"
            found[f"unchecked.{kind}"] += 1
            await rebound(request, clock, found)
        client.close()
    server.close()
    return {"urls": len(urls), **found}


def told_to(denied: list[str]) -> Denied:
    """Somebody who runs the service, and is told what may not be called."""
    return lambda _, address, __: denied.append(address)


async def rebound(request: Request, clock: RealClock, found: Counter[str]) -> None:
    """The same address behind a name that was public when it was checked."""
    try:
        bad = names(request.url.host)[0] if request.url.address is None else request.url.host
    except (OSError, UnicodeError):
        return
    answers = [[PUBLIC], [bad], [PUBLIC, bad], [bad, PUBLIC]]

    async def lookup(_: str) -> list[str]:
        return answers.pop(0) if answers else [bad]

    url = TargetUrl("http", "rebind.example", 81, "/", None)
    for turn in range(4):
        denied: list[str] = []
        client = Client(
            resolver=Resolver(lookup, clock=clock), clock=clock, on_denied=told_to(denied)
        )
        result = await client.send(replace(request, url=url))
        kind = result.trouble.name.lower() if isinstance(result, NoAnswer) else "answered"
        if denied and kind == "resolve":
            kind = "refused"
        found[f"rebind.{turn}.{kind}"] += 1
        client.close()


async def control() -> None:
    """What the witness must see if the guard is off."""
    clock = RealClock()

    async def lookup(_: str) -> list[str]:
        return []

    client = Client(resolver=Resolver(lookup, clock=clock), clock=clock)
    open_to_all = AddressPolicy(allowed=(ip_network("0.0.0.0/0"), ip_network("::/0")))
    for text in CONTROL:
        request = Request(
            tenant=TENANT,
            url=TargetUrl("http", text, 80, "/", ip_address(text)),
            method="GET",
            headers=[],
            body=None,
            patience=Patience(connect=0.2, total=0.2),
            addresses=open_to_all,
        )
        await client.send(request)
    client.close()


def main() -> None:
    """Set the namespace up, run, tell."""
    for line in (
        "link set lo up",
        f"addr add {PUBLIC}/32 dev lo",
        "-6 addr add 2a00:1450::9/64 dev lo nodad",
        "-6 addr add fc00::1/128 dev lo nodad",
        "route add default dev lo",
        "-6 route add default dev lo",
    ):
        subprocess.run(["ip", *line.split()], check=True)
    witness = Witness()
    witness.start()
    told = asyncio.run(run())
    calm = dict(denied(witness.seen))
    told["allowed_packets"] = sum(witness.seen.values()) - sum(calm.values())
    told["denied_packets"] = calm
    asyncio.run(control())
    threading.Event().wait(0.5)
    witness.stopped = True
    told["control_packets"] = denied(witness.seen)
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
