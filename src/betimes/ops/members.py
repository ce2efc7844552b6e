"""Members: inviting people, giving them roles, letting them go."""

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from betimes.domain.errors import AlreadyExists, Invalid, NotFound, VersionMismatch
from betimes.domain.ids import TenantId, random_ids, to_ms
from betimes.domain.scopes import OF_ROLE
from betimes.domain.secrets import TOKEN_BYTES, token_digest, token_text
from betimes.ops.checks import check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.reach import Caller, Reach, check_reach
from betimes.store import members as rows
from betimes.store.members import Member
from betimes.store.pool import Connection

__all__ = [
    "Invited",
    "Member",
    "change_member",
    "get_member",
    "invite_member",
    "list_members",
    "remove_member",
]

CODE_FOR = timedelta(days=7)
EMAIL_LENGTH_MAX = 254
INVITATION = "invitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """A member, and the code that lets them in once, if there is a new one."""

    member: Member
    code: str | None = None


async def list_members(desk: Desk, tenant: TenantId, *, after: UUID, most: int) -> list[Member]:
    """A page of members."""

    async def work(connection: Connection) -> list[Member]:
        return await rows.list_members(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def get_member(desk: Desk, tenant: TenantId, member: UUID) -> Member:
    """One member."""

    async def work(connection: Connection) -> Member:
        return await _required(connection, tenant, member)

    return await desk.transact(work, tenant=tenant)


async def invite_member(
    desk: Desk,
    tenant: TenantId,
    *,
    email: str,
    name: str,
    role: str,
    by: Caller,
    pepper: bytes,
) -> Invited:
    """A new member with a code that works once within a week."""
    email = email.strip().lower()
    _check_email(email)
    check_text(name, what="a name", most=200, pointer="/name")
    check_reach(by, after=reach_of_role(role))
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), 0, desk.entropy(TAIL_BYTES))
    code = token_text(desk.entropy(TOKEN_BYTES))
    member = Member(
        id=identity,
        email=email,
        name=name,
        role=role,
        created_at=now,
        updated_at=now,
        created_by=by.key,
        code_until=now + CODE_FOR,
    )

    async def work(connection: Connection) -> Member:
        digest = token_digest(code, pepper, purpose=INVITATION)
        if not await rows.insert_member(connection, tenant, member, code=digest):
            found = await rows.read_member(connection, tenant, member.id)
            if found is None:
                raise AlreadyExists(f"{email} is a member already", pointer="/email")
        return member

    return Invited(member=await desk.transact(work, tenant=tenant), code=code)


async def change_member(
    desk: Desk,
    tenant: TenantId,
    member: Member,
    *,
    name: str | None,
    role: str | None,
    renew_code: bool,
    by: Caller,
    pepper: bytes,
) -> Invited:
    """Rename a member, give another role or a fresh code, over the revision that was read."""
    if name is not None:
        check_text(name, what="a name", most=200, pointer="/name")
    before, after = reach_of_role(member.role), reach_of_role(role or member.role)
    check_reach(by, before=before, after=after)
    if renew_code:  # whoever has the code is the member, as if they had been invited now
        check_reach(by, after=after)
    now = desk.clock.now()
    code = token_text(desk.entropy(TOKEN_BYTES)) if renew_code else None
    changed = replace(
        member,
        name=member.name if name is None else name,
        role=member.role if role is None else role,
        code_until=now + CODE_FOR if renew_code else member.code_until,
        updated_at=now,
    )

    async def work(connection: Connection) -> Member:
        digest = None if code is None else token_digest(code, pepper, purpose=INVITATION)
        revision = await rows.change_member(connection, tenant, changed, code=digest)
        if revision is None:
            found = await _required(connection, tenant, member.id)
            if found.updated_at != now:
                raise VersionMismatch("the member was changed meanwhile; read it again")
            revision = found.revision
        return replace(changed, revision=revision)

    return Invited(member=await desk.transact(work, tenant=tenant), code=code)


async def remove_member(desk: Desk, tenant: TenantId, member: Member, *, by: Caller) -> Member:
    """Let a member go; their sessions end with it."""
    check_reach(by, before=reach_of_role(member.role))

    async def work(connection: Connection) -> Member:
        await rows.delete_member(connection, tenant, member.id)
        return member

    return await desk.transact(work, tenant=tenant)


def reach_of_role(role: str) -> Reach:
    """How far a member gets: people sign in from anywhere, as long as they are members."""
    if role not in OF_ROLE:
        raise Invalid(f"expected a role out of {', '.join(OF_ROLE)}", pointer="/role")
    return Reach(kind="member", scopes=frozenset(OF_ROLE[role]))


def _check_email(email: str) -> None:
    check_text(email, what="an address", most=EMAIL_LENGTH_MAX, pointer="/email")
    name, at, host = email.rpartition("@")
    if not at or not name or "." not in host.strip(".") or " " in email:
        raise Invalid(
            f"expected an address such as ada@example.org, got {email[:50]!r}", pointer="/email"
        )


async def _required(connection: Connection, tenant: TenantId, member: UUID) -> Member:
    found = await rows.read_member(connection, tenant, member)
    if found is None:
        raise NotFound("there is no such member")
    return found
