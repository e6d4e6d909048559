"""What every vector store promises, and what a maker's wire must do to become one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Item:
    """What is stored. `id` and `bucket`: 0 to 2⁶³ - 1. `kind`: lower-case letters, up to 64.

    `value`: numbers of any length but 0; stored at length 1.
    """

    id: int
    bucket: int
    kind: str
    value: Sequence[float]


@dataclass(frozen=True, slots=True)
class Near:
    """`similarity`: the cosine, -1 to 1."""

    id: int
    bucket: int
    similarity: float


class VectorStore(Protocol):
    """One index of a store. May be shared by threads, and used after a fork.

    What was put is found, and what was deleted is not, after a moment: at once in S3 Vectors, after the next
    refresh, about a second, in OpenSearch. So an id may be found whose record is gone.

    Each call waits for the service and raises ProviderError; nothing is tried again. What is wrong with an
    argument is a `bad_request`, found before anything is sent.
    """

    def ensure(self, dimensions: int) -> None:
        """Makes the index if it is not there. A `bad_request` when it holds vectors of another size."""

    def put(self, items: Sequence[Item]) -> None:
        """Stores the items, in as many requests as it takes; one with an id that is there replaces it.

        After an error some may be stored: put all of them again.
        """

    def delete(self, ids: Sequence[int]) -> None:
        """Removes what has these ids, in as many requests as it takes; one that is not there is no error."""

    def query(
        self, value: Sequence[float], *, buckets: Sequence[int], kinds: Sequence[str] = (), limit: int
    ) -> list[Near]:
        """The most similar of these buckets (and of these kinds, if any are named), best first. One request.

        The store searches nothing but the buckets; with none, nobody is asked. `limit` is lowered to what the
        service answers at most (S3 Vectors 100, OpenSearch 10,000). An answer with anything of another
        bucket, or that cannot be read, is a `bad_answer` as a whole: nothing of it is returned.
        """

    def ids(self) -> Iterator[int]:
        """The ids of all that is stored, in no order; asks page by page, and raises, while it is read.

        What is put or deleted meanwhile may be among them or not.
        """

    def drop(self) -> None:
        """Removes the index with all that is in it; one that is not there is no error."""

    def check(self) -> str:
        """Asks the service whether it can be used, and says in one sentence what was found."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes.

    `dimensions`: of a vector. `items` and `bytes`: of one put. `ids`: of one delete. `near`: results of a
    query. `filters`: buckets and kinds of a query together.
    """

    dimensions: int
    items: int
    bytes: int
    ids: int
    near: int
    filters: int


class Service(Protocol):
    """One maker's wire: what `CarefulStore` needs to be a VectorStore of it.

    Its arguments are checked and within its limits; what it answers is checked by the caller, except that it
    is of the types said here. Raises ProviderError.
    """

    @property
    def index(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    def greet(self) -> str:
        """Who answers, without a full stop. An error when it cannot be used."""

    def dimensions(self) -> int | None:
        """The size of the index's vectors; None when there is no index. An error when it is not as we make it."""

    def create(self, dimensions: int) -> None:
        """Makes the index; no error when another process was quicker."""

    def put(self, items: Sequence[Item]) -> None: ...

    def delete(self, ids: Sequence[int]) -> None: ...

    def near(
        self, value: Sequence[float], *, buckets: Sequence[int], kinds: Sequence[str], limit: int
    ) -> list[Near]: ...

    def pages(self) -> Iterator[list[int]]:
        """The ids of all that is stored, a request each."""

    def drop(self) -> None: ...
