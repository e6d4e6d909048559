"""The names of vector stores and of their indexes, checked without loading what reaches them."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

StoreKind = Literal["pgvector", "s3vectors", "opensearch"]

_RIGHT: Final = "pgvector, s3vectors:<vector bucket> or opensearch:<https://host:port>"
# S3 Vectors' rule for both its names; OpenSearch takes all of them.
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[a-z0-9]{1,16}")
_SLUG_CHARACTERS: Final = 28
_DIGEST_CHARACTERS: Final = 16


@dataclass(frozen=True)
class StoreName:
    """`place`: the vector bucket, or the address; "" for pgvector."""

    kind: StoreKind
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}" if self.place else self.kind


def check_store_name(name: str) -> StoreName:
    """What `name` asks for. Builds nothing, asks nobody.

    Raises ValueError, naming the value (without a password that stands in it) and what would be right.
    """
    kind, _, place = name.partition(":")
    if name == "pgvector":
        return StoreName("pgvector")
    if kind == "s3vectors" and _PLAIN.fullmatch(place):
        return StoreName("s3vectors", place)
    if kind == "opensearch" and place:
        return StoreName("opensearch", check_address(place))
    raise ValueError(f"{name!r} is not the name of a vector store: it must be {_RIGHT}.")


def check_address(address: str) -> str:
    """The address without a slash at its end. Raises ValueError when it is not one of a server."""
    shown = re.sub(r"//[^/]*@", "//…@", address)
    try:
        parts = urlsplit(address)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_server = False
    if not is_server or re.search(r"[\s?#]", address):
        raise ValueError(f"{shown!r} is not the address of a server: it must be https://host:port.")
    if "@" in parts.netloc:
        raise ValueError(
            f"{shown!r} has a user in it: it must be https://host:port, the user and password apart."
        )
    return address.rstrip("/")


def check_index_name(index: str) -> str:
    """The name. Raises ValueError when not every store takes it."""
    if not _PLAIN.fullmatch(index):
        raise ValueError(
            f"{index!r} is not the name of an index: it must be 3 to 63 of a-z, 0-9, - and . that begin and"
            " end with a letter or digit."
        )
    return index


def index_name(embedder: str, *, prefix: str = "mate") -> str:
    """The index for the vectors of `embedder` (its `name`): valid in every store, and never another's.

    Installations that share a vector bucket or a cluster must have different prefixes, since their ids are
    the same. Raises ValueError when the prefix is not 1 to 16 lower-case letters and digits.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} is not a prefix: it must be 1 to 16 lower-case letters and digits.")
    slug = re.sub(r"[^a-z0-9]+", "-", embedder.lower())[:_SLUG_CHARACTERS].strip("-")
    digest = hashlib.sha256(embedder.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return "-".join(part for part in (prefix, slug, digest) if part)
