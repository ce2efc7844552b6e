"""Where large things are kept, made from settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from betimes.app.node import Node
from betimes.domain.errors import BadSetting
from betimes.ops.shelf import Shelf
from betimes.store.directory import DirectoryShelf
from betimes.target.answer import Patience
from betimes.target.client import Client
from betimes.target.resolve import Resolver, SystemLookup
from betimes.target.s3 import S3Shelf
from betimes.target.sigv4 import Credentials

S3_SECONDS = 20.0


@asynccontextmanager
async def shelf_of(node: Node) -> AsyncIterator[Shelf | None]:
    """The shelf that the settings name, while the block lasts; none for the database."""
    settings = node.settings.blobs
    if settings.backend == "database":
        yield None
    elif settings.backend == "directory":
        if settings.directory is None:
            raise BadSetting("expected blobs.directory for the backend directory, got nothing")
        yield DirectoryShelf(settings.directory)
    else:
        async with _s3(node) as shelf:
            yield shelf


@asynccontextmanager
async def _s3(node: Node) -> AsyncIterator[Shelf]:
    settings = node.settings.blobs
    endpoint, bucket = settings.s3_endpoint, settings.s3_bucket
    access, secret = settings.s3_access_key, settings.s3_secret_key
    if not (endpoint and bucket and access and secret):
        raise BadSetting(
            "expected blobs.s3_endpoint, s3_bucket, s3_access_key and s3_secret_key for s3"
        )
    lookup = SystemLookup()
    client = Client(resolver=Resolver(lookup, clock=node.clock), clock=node.clock)
    try:
        yield S3Shelf(
            client=client,
            clock=node.clock,
            endpoint=endpoint,
            bucket=bucket,
            prefix=settings.s3_prefix,
            credentials=Credentials(
                access_key=access, secret_key=secret, region=settings.s3_region
            ),
            patience=Patience(total=S3_SECONDS),
        )
    finally:
        client.close()
        lookup.close()
