"""Keys of the vault, replaced by hand."""

from betimes.app.desk import desk_of
from betimes.app.masters import required_vault
from betimes.app.node import Node
from betimes.app.shelves import shelf_of
from betimes.domain.errors import NotFound
from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.ops.rotation import reseal_some, rewrap_keys, rotate_key
from betimes.ops.shelf import Shelf
from betimes.ops.tenants import get_tenant, list_tenants
from betimes.store.hints import NoHints

PAGE = 500


async def rewrap(node: Node) -> int:
    """Wrap every data key under the first master key; how many were."""
    return await rewrap_keys(await _desk(node, None))


async def rotate(node: Node, slug: str | None) -> tuple[int, int]:
    """Give one tenant or all of them new data keys; how many, and how much was sealed anew."""
    async with shelf_of(node) as shelf:
        desk = await _desk(node, shelf)
        rotated = resealed = 0
        for tenant in await _tenants(desk, slug):
            rotated += bool(await rotate_key(desk, tenant))
            while piece := await reseal_some(desk, tenant):
                resealed += piece
        return rotated, resealed


async def _desk(node: Node, shelf: Shelf | None) -> Desk:
    return await desk_of(node, NoHints(), vault=await required_vault(node), shelf=shelf)


async def _tenants(desk: Desk, slug: str | None) -> list[TenantId]:
    if slug is not None:
        return [(await get_tenant(desk, slug)).id]
    found: list[TenantId] = []
    after = ""
    while page := await list_tenants(desk, after=after, most=PAGE):
        found += [one.id for one in page]
        after = page[-1].slug
    if not found:
        raise NotFound("there is no tenant")
    return found
