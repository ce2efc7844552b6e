"""Signatures, against the examples that the inventor publishes."""

from datetime import UTC, datetime

from betimes.target.sigv4 import Credentials, quoted, signed_headers

EXAMPLE = Credentials(
    access_key="AKIAIOSFODNN7EXAMPLE",
    secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",  # noqa: S106 -- the published one
)
AT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "examplebucket.s3.amazonaws.com"


def signature(**given: object) -> str:
    headers = signed_headers(EXAMPLE, host=HOST, now=AT, **given)  # type: ignore[arg-type]
    return headers["authorization"].rpartition("Signature=")[2]


def test_a_get_is_signed_as_published() -> None:
    found = signature(method="GET", path="/test.txt", body=b"", more={"range": "bytes=0-9"})
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def test_a_put_is_signed_as_published() -> None:
    found = signature(
        method="PUT",
        path=quoted("/test$file.text"),
        body=b"Welcome to Amazon S3.",
        more={
            "date": "Fri, 24 May 2013 00:00:00 GMT",
            "x-amz-storage-class": "REDUCED_REDUNDANCY",
        },
    )
    assert found == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"


def test_who_signs_is_not_told_by_accident() -> None:
    assert "wJalr" not in repr(EXAMPLE)
