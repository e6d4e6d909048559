"""The care that is the same for all stores: checking what is sent and what is answered, and cutting to size."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, Near, Service
from integrations.clients.vectors.failures import bad_answer, refusal
from integrations.clients.waiting import run_before_call

T = TypeVar("T")

# Shorter than this is a vector of zeros that was rounded, not a direction.
_SHORTEST: Final = 1e-6
_MOST_NUMBER: Final = 2**63 - 1
# Two keys of at most 19 and 64 bytes: far below the 2 KB that S3 Vectors can filter by.
_KIND: Final = re.compile(r"[a-z]{1,64}")
# The longest a number of 64 bits is written, with its comma; and all else there is of an item.
_NUMBER_BYTES: Final = 25
_ITEM_BYTES: Final = 500
# Services reckon in 32 bits, some in fewer. Beyond this it was no cosine.
_SLACK: Final = 0.01


class CarefulStore:
    """A VectorStore of `service`, whatever the service does."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dimensions: int | None = None

    def ensure(self, dimensions: int) -> None:
        most = self._service.limits.dimensions
        if not 1 <= dimensions <= most:
            raise refusal(f"A vector of {dimensions} numbers: the store takes 1 to {most}.")
        found = self._asked_dimensions()
        if found is None:
            run_before_call()
            self._service.create(dimensions)
            found = self._asked_dimensions()
        if found is None:
            message = f"The index {self._service.index!r} was made, and is not there yet."
            raise ProviderError(message, retryable=True, kind="unavailable")
        if found != dimensions:
            raise refusal(
                f"The index {self._service.index!r} holds vectors of {found} numbers, not of {dimensions}:"
                " use another index, or drop this one."
            )
        self._dimensions = found

    def put(self, items: Sequence[Item]) -> None:
        if not items:
            return
        size = self._known_dimensions()
        ready = [_sendable(item, size=size) for item in {item.id: item for item in items}.values()]
        limits = self._service.limits
        most = min(limits.items, max(1, limits.bytes // (_NUMBER_BYTES * size + _ITEM_BYTES)))
        for batch in _batches(ready, most=most):
            run_before_call()
            self._service.put(batch)

    def delete(self, ids: Sequence[int]) -> None:
        for number in ids:
            _check_number(number, what="id")
        for batch in _batches(list(dict.fromkeys(ids)), most=self._service.limits.ids):
            run_before_call()
            self._service.delete(batch)

    def query(
        self, value: Sequence[float], *, buckets: Sequence[int], kinds: Sequence[str] = (), limit: int
    ) -> list[Near]:
        if not buckets or limit < 1:
            return []
        limits = self._service.limits
        allowed, wanted = list(dict.fromkeys(buckets)), list(dict.fromkeys(kinds))
        _check_filters(allowed, wanted, most=limits.filters)
        asked = _unit(value, size=self._known_dimensions(), what="The vector that is searched with")
        run_before_call()
        found = self._service.near(asked, buckets=allowed, kinds=wanted, limit=min(limit, limits.near))
        return _best(found, buckets=frozenset(allowed))[:limit]

    def ids(self) -> Iterator[int]:
        pages = self._service.pages()
        while True:
            run_before_call()
            page = next(pages, None)
            if page is None:
                return
            yield from page

    def drop(self) -> None:
        self._dimensions = None
        run_before_call()
        self._service.drop()

    def check(self) -> str:
        run_before_call()
        found = self._service.greet()
        size = self._asked_dimensions()
        index = self._service.index
        if size is None:
            return f"{found}, which has no index {index!r} yet."
        return f"{found}, whose index {index!r} holds vectors of {size} numbers."

    def _asked_dimensions(self) -> int | None:
        run_before_call()
        return self._service.dimensions()

    def _known_dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = self._asked_dimensions()
        if self._dimensions is None:
            raise refusal(f"There is no index {self._service.index!r}: it has to be made first.")
        return self._dimensions


def _batches(things: Sequence[T], *, most: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), most):
        yield things[start : start + most]


def _sendable(item: Item, *, size: int) -> Item:
    _check_number(item.id, what="id")
    _check_number(item.bucket, what="bucket")
    _check_kind(item.kind)
    return Item(
        item.id, item.bucket, item.kind, _unit(item.value, size=size, what=f"The vector of {item.id}")
    )


def _check_number(number: int, *, what: str) -> None:
    if not 0 <= number <= _MOST_NUMBER:
        raise refusal(f"{number} is not the {what} of anything: it must be 0 to 2⁶³ - 1.")


def _check_kind(kind: str) -> None:
    if not _KIND.fullmatch(kind):
        raise refusal(f"{kind!r} is not a kind: it must be 1 to 64 lower-case letters.")


def _check_filters(buckets: Sequence[int], kinds: Sequence[str], *, most: int) -> None:
    for bucket in buckets:
        _check_number(bucket, what="bucket")
    for kind in kinds:
        _check_kind(kind)
    if len(buckets) + len(kinds) > most:
        raise refusal(f"{len(buckets)} buckets and {len(kinds)} kinds in one query: the store takes {most}.")


def _unit(value: Sequence[float], *, size: int, what: str) -> list[float]:
    """The vector at length 1, so that its numbers fit 32 bits and its dot products are cosines."""
    if len(value) != size:
        raise refusal(f"{what} has {len(value)} numbers: those of this index have {size}.")
    try:
        length = math.hypot(*value)
    except (TypeError, OverflowError) as error:
        raise refusal(f"{what} has something in it that is not a number.") from error
    if not math.isfinite(length):
        raise refusal(f"{what} has a number in it that is not finite.")
    if length < _SHORTEST:
        raise refusal(f"{what} is zero: it has no direction.")
    return [float(number) / length for number in value]


def _best(found: Iterable[Near], *, buckets: frozenset[int]) -> list[Near]:
    """What was found, best first. An error when any of it is not of the buckets, or is no cosine."""
    best = []
    for near in found:
        if near.bucket not in buckets:
            raise bad_answer(f"The store answered with {near.id} of a bucket that was not asked for.")
        if not -1 - _SLACK <= near.similarity <= 1 + _SLACK:  # so is NaN
            raise bad_answer(f"The store answered with {near.similarity} for a cosine.")
        best.append(Near(near.id, near.bucket, max(-1.0, min(1.0, near.similarity))))
    return sorted(best, key=lambda near: (-near.similarity, near.id))
