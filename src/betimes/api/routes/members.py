"""Members: the people of a tenant."""

from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.etag import expected_revision, tag_of
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import from_text, to_text
from betimes.domain.scopes import Scope
from betimes.ops import members as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import people as wire
from betimes.wire.base import Page, shown_instant, shown_maybe
from betimes.wire.keys import PageOnly

FIRST = UUID(int=0)


def shown_member(member: ops.Member, *, code: str | None = None) -> wire.Member:
    """A member as they are shown; the code only when it is new."""
    return wire.Member(
        id=to_text("mem", member.id),
        email=member.email,
        name=member.name,
        role=member.role,
        revision=member.revision,
        etag=tag_of(member.revision),
        has_password=member.has_password,
        invited_until=shown_maybe(member.code_until),
        signed_in_at=shown_maybe(member.signed_in_at),
        created_at=shown_instant(member.created_at),
        created_by=member.created_by,
        updated_at=shown_instant(member.updated_at),
        code=code,
    )


def _told(invited: ops.Invited, *, status: int, before: ops.Member | None = None) -> Told:
    shown = shown_member(invited.member, code=invited.code)
    headers = {"ETag": shown.etag}
    if before is None:
        headers["Location"] = f"/v1/members/{shown.id}"
    return Told(
        answer=answer(status, shown, headers=headers),
        resource=shown.id,
        before=None if before is None else {"role": before.role, "revision": before.revision},
        after={"role": shown.role, "revision": shown.revision},
    )


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of members."""
    scope = ("members", call.tenant)
    after = FIRST
    if call.query.cursor is not None:
        after = msgspec.convert(call.leaves.read(scope, call.query.cursor)[0], type=UUID)
    limit = coerced(call.query.limit)
    found = await ops.list_members(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_member(one) for one in found], cursor=cursor))


async def _found(call: Call[Any, Any]) -> ops.Member:
    text = call.path["member"]
    try:
        identity = from_text("mem", text)
        return await ops.get_member(call.service.desk, call.tenant, identity)
    except (Invalid, NotFound):
        raise missing("member", text) from None


async def read(call: Call[NoQuery, None]) -> Reply:
    """One member."""
    member = await _found(call)
    return Reply(value=shown_member(member), headers={"ETag": tag_of(member.revision)})


async def invite(call: Call[NoQuery, wire.NewMember]) -> Reply:
    """Invite somebody; the code in the answer lets them in once."""
    body = call.body

    async def verb(desk: Desk) -> ops.Invited:
        return await ops.invite_member(
            desk,
            call.tenant,
            email=body.email,
            name=body.name,
            role=body.role,
            by=call.caller,
            pepper=call.service.sessions.pepper,
        )

    return await perform(call, verb, lambda made: _told(made, status=201))


async def change(call: Call[NoQuery, wire.ChangeMember]) -> Reply:
    """Change name or role, or make a fresh code."""
    member, body = await _found(call), call.body
    expected_revision(call.request, member.revision)

    async def verb(desk: Desk) -> ops.Invited:
        return await ops.change_member(
            desk,
            call.tenant,
            member,
            name=body.name,
            role=body.role,
            renew_code=body.renew_code,
            by=call.caller,
            pepper=call.service.sessions.pepper,
        )

    reply = await perform(call, verb, lambda done: _told(done, status=200, before=member))
    call.service.sessions.forget_all()
    return reply


async def remove(call: Call[NoQuery, None]) -> Reply:
    """Let a member go; their sessions end."""
    member = await _found(call)
    expected_revision(call.request, member.revision)

    async def verb(desk: Desk) -> ops.Member:
        return await ops.remove_member(desk, call.tenant, member, by=call.caller)

    def tell(gone: ops.Member) -> Told:
        text = to_text("mem", gone.id)
        return Told(answer=answer(204), resource=text, before={"role": gone.role})

    reply = await perform(call, verb, tell)
    call.service.sessions.forget_all()
    return reply


ONE = "/v1/members/{member}"
ROUTES = (
    Route(
        method="GET",
        path="/v1/members",
        name="members.list",
        says="List the people of the tenant.",
        handler=list_all,
        scope=Scope.MEMBERS_READ,
        query=PageOnly,
        answers={200: Page[wire.Member]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path="/v1/members",
        name="members.invite",
        says="Invite somebody; the code in the answer lets them in once.",
        handler=invite,
        scope=Scope.MEMBERS_WRITE,
        body=wire.NewMember,
        answers={201: wire.Member},
        load=Load.WRITE,
        problems=("already_exists",),
        headers=("ETag", "Location"),
        example={"email": "ada@example.org", "name": "Ada", "role": "operator"},
    ),
    Route(
        method="GET",
        path=ONE,
        name="members.get",
        says="Read one member.",
        handler=read,
        scope=Scope.MEMBERS_READ,
        answers={200: wire.Member},
        headers=("ETag",),
    ),
    Route(
        method="PATCH",
        path=ONE,
        name="members.update",
        says="Change the name or role of a member, or make a fresh code.",
        handler=change,
        scope=Scope.MEMBERS_WRITE,
        body=wire.ChangeMember,
        answers={200: wire.Member},
        load=Load.WRITE,
        problems=("precondition_failed",),
        headers=("ETag",),
        example={"role": "editor"},
    ),
    Route(
        method="DELETE",
        path=ONE,
        name="members.remove",
        says="Let a member go; their sessions end.",
        handler=remove,
        scope=Scope.MEMBERS_WRITE,
        answers={204: None},
        load=Load.VITAL,
        keyed=Keyed.NO,
        problems=("precondition_failed",),
    ),
)
