"""Signing in: sessions of browsers, and devices that have none."""

from typing import Any

from betimes.api.acting import answer, perform, replied
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Route
from betimes.api.shaping import missing
from betimes.api.visiting import session_cookie, set_cookie
from betimes.domain.errors import Forbidden, NotFound
from betimes.domain.ids import to_text
from betimes.ops.acting import Intent, Told, act
from betimes.ops.credentials import Unknown
from betimes.ops.desk import Desk
from betimes.ops.devices import NotYet
from betimes.ops.keys import MadeKey
from betimes.ops.sessions import LONGEST, Opened, TooManyTries, Whom
from betimes.wire import people as wire
from betimes.wire.base import shown_instant, shown_maybe
from betimes.wire.problem import FieldError

VERIFY_PATH = "/device"


async def sign_in(call: Call[NoQuery, wire.NewSession]) -> Reply:
    """Open a session for a browser."""
    whom = await _whom(call)
    sessions = call.service.sessions

    async def verb(desk: Desk) -> Opened:
        return await sessions.open(desk, whom)

    done = await act(call.service.desk, _intent(call, whom), verb, _told)
    return replied(done)


async def _whom(call: Call[NoQuery, wire.NewSession]) -> Whom:
    body, sessions = call.body, call.service.sessions
    if body.password is not None:  # digesting one takes long, whoever sends it
        call.service.admission.check_guesses(call.request.address)
    try:
        if body.key is not None and not (body.code or body.email or body.password):
            return await sessions.by_key(body.key, call.request.address)
        if body.code is not None and not (body.key or body.email):
            return await sessions.by_code(body.code, body.password)
        if body.tenant and body.email and body.password and not (body.key or body.code):
            return await sessions.by_password(body.tenant, body.email, body.password)
    except Unknown as error:
        call.service.admission.note_failure(call.request.address)
        raise Trouble("invalid_credentials", error.sentence) from None
    except TooManyTries as error:
        raise Trouble("rate_limited", error.sentence, headers={"Retry-After": "60"}) from None
    sentence = "expected a key, a code, or tenant, email and password"
    raise Trouble(
        "invalid_parameter",
        sentence,
        errors=[FieldError(pointer="/key", code="invalid_parameter", detail=sentence)],
    )


def _intent(call: Call[Any, Any], whom: Whom) -> Intent:
    member = whom.member
    who = {"type": "member", "id": to_text("mem", member)} if member else {"type": "key"}
    if whom.key is not None:
        who["id"] = whom.key
    return Intent(
        tenant=whom.tenant,
        actor={**who, "ip": call.request.address},
        action=call.route.name,
        request_id=call.request.id,
        as_system=True,
    )


def _told(opened: Opened) -> Told:
    whom = opened.whom
    member = None if whom.member is None else to_text("mem", whom.member)
    shown = wire.Session(
        csrf_token=opened.csrf,
        expires_at=shown_instant(opened.expires_at),
        member_id=member,
        key_id=whom.key,
    )
    cookie = set_cookie(opened.token, int(LONGEST.total_seconds()))
    return Told(
        answer=answer(201, shown, headers={"Set-Cookie": cookie}),
        resource=f"session:{member or whom.key}",
    )


async def sign_out(call: Call[NoQuery, None]) -> Reply:
    """End the session of this browser."""
    token = session_cookie(call.request)
    if token is None:
        raise missing("session", "current")

    async def verb(desk: Desk) -> str:
        await call.service.sessions.close(desk, token)
        return call.caller.key

    def tell(who: str) -> Told:
        gone = answer(204, headers={"Set-Cookie": set_cookie("", 0)})
        return Told(answer=gone, resource=f"session:{who}")

    return await perform(call, verb, tell, as_system=True)


async def ask_device(call: Call[NoQuery, wire.NewDevice]) -> Reply:
    """Begin to sign in a device: it shows a code that a person answers elsewhere."""
    call.service.admission.note_failure(f"device:{call.request.address}")
    asking = await call.service.devices.ask(call.body.name)
    place = f"{_public_url(call)}{VERIFY_PATH}"
    return Reply(
        value=wire.DeviceAsking(
            device_code=asking.device_code,
            user_code=asking.user_code,
            verification_uri=place,
            verification_uri_complete=f"{place}?code={asking.user_code}",
            interval=int(asking.interval.total_seconds()),
            expires_in=int(asking.expires_in.total_seconds()),
        )
    )


def _public_url(call: Call[Any, Any]) -> str:
    """Where people reach us, which no header of a request decides: anybody can send those."""
    if (known := call.service.settings.public_url) is not None:
        return known.rstrip("/")
    host, port = call.request.server or ("localhost", None)
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}" if port is None else f"http://{host}:{port}"


async def device_token(call: Call[NoQuery, wire.DeviceToken]) -> Reply:
    """The key of a device that was let in; until then, whether to go on asking."""
    devices = call.service.devices
    try:
        grant = await devices.poll(call.body.device_code)
    except NotYet as refused:
        if refused.code == "expired_token":
            call.service.admission.note_failure(call.request.address)
        raise Trouble(refused.code, refused.sentence) from None
    if grant.tenant is None:
        raise Trouble("expired_token", "the device code is unknown, used up or too old")
    try:
        await call.service.credentials.check_giver(grant.tenant, grant.answered_by or "")
    except (Unknown, Forbidden):
        raise Trouble(
            "access_denied", "whoever has let the device in may not do so any more"
        ) from None

    async def verb(desk: Desk) -> MadeKey:
        return await devices.redeem(desk, call.body.device_code, grant)

    intent = Intent(
        tenant=grant.tenant,
        actor={"type": "device", "id": grant.answered_by or "", "ip": call.request.address},
        action=call.route.name,
        request_id=call.request.id,
        as_system=True,
    )
    try:
        return replied(await act(call.service.desk, intent, verb, _told_token))
    except NotYet as refused:
        raise Trouble(refused.code, refused.sentence) from None


def _told_token(made: MadeKey) -> Told:
    shown = wire.Token(
        token=made.text, key_id=made.key.id, expires_at=shown_maybe(made.key.expires_at)
    )
    return Told(
        answer=answer(200, shown),
        resource=f"key:{made.key.id}",
        after={"name": made.key.name, "scopes": list(made.key.scopes)},
    )


async def answer_device(call: Call[NoQuery, wire.AnswerDevice]) -> Reply:
    """Let a device act for the caller, or refuse it."""
    body = call.body

    async def verb(desk: Desk) -> str:
        try:
            return await call.service.devices.answer(
                desk, call.tenant, body.user_code, granted=body.approve, by=call.caller
            )
        except NotFound:
            call.service.admission.note_failure(call.request.address)
            raise missing("device", body.user_code) from None

    def tell(name: str) -> Told:
        return Told(
            answer=answer(200, wire.DeviceAnswered(name=name, approved=body.approve)),
            resource=f"device:{name}",
            after={"approved": body.approve},
        )

    return await perform(call, verb, tell, as_system=True)


def _public(path: str, name: str, says: str, handler: Any, body: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=path,
        name=name,
        says=says,
        handler=handler,
        scope=None,
        body=body,
        load=Load.WRITE,
        **more,
    )


ROUTES = (
    _public(
        "/v1/sessions",
        "sessions.create",
        "Sign in from a browser: with a key, a one-time code, or a password.",
        sign_in,
        wire.NewSession,
        answers={201: wire.Session},
        headers=("Set-Cookie",),
        problems=("invalid_credentials", "expired_credentials", "rate_limited", "tenant_suspended"),
        example={"tenant": "acme", "email": "ada@example.org", "password": "a long pass phrase"},
    ),
    Route(
        method="DELETE",
        path="/v1/sessions/current",
        name="sessions.delete",
        says="Sign out.",
        handler=sign_out,
        scope="",
        answers={204: None},
        load=Load.VITAL,
        headers=("Set-Cookie",),
    ),
    _public(
        "/v1/auth/device",
        "auth.device",
        "Begin to sign in a device that has no browser.",
        ask_device,
        wire.NewDevice,
        body_optional=True,
        answers={200: wire.DeviceAsking},
        problems=("rate_limited",),
        example={"name": "laptop of Ada"},
    ),
    _public(
        "/v1/auth/device/token",
        "auth.device_token",
        "The key of a device that was let in.",
        device_token,
        wire.DeviceToken,
        answers={200: wire.Token},
        problems=(
            *("authorization_pending", "slow_down", "expired_token", "access_denied"),
            "rate_limited",
        ),
        example={"device_code": "the code the device was given"},
    ),
    Route(
        method="POST",
        path="/v1/auth/device/answer",
        name="auth.answer_device",
        says="Let a device act for the caller, or refuse it.",
        handler=answer_device,
        scope="",
        body=wire.AnswerDevice,
        answers={200: wire.DeviceAnswered},
        load=Load.WRITE,
        example={"user_code": "BCDF-GHJK", "approve": True},
    ),
)
