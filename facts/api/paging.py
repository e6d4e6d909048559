"""Pages of a list that is counted only so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.core.paginator import EmptyPage, Page, Paginator

from facts.queries import MOST_COUNTED, FactList
from workspaces.api.base import Paging


class FactPaginator(Paginator):  # type: ignore[type-arg] # generic for mypy alone
    """Of a list longer than it was counted, whether there is a next page is found out by looking."""

    def page(self, number: int | str) -> Page[Any]:
        rows = cast("FactList", self.object_list)
        if rows.counted <= MOST_COUNTED:
            return super().page(number)
        wanted = 1 if number == "last" else int(number)
        if wanted < 1:
            raise EmptyPage(self.error_messages["min_page"])
        start = (wanted - 1) * self.per_page
        found = rows[start : start + self.per_page + 1]
        if not found:
            raise EmptyPage(self.error_messages["no_results"])
        return _Page(found[: self.per_page], wanted, self, has_more=len(found) > self.per_page)


class _Page(Page):  # type: ignore[type-arg]
    def __init__(self, rows: Sequence[Any], number: int, paginator: FactPaginator, *, has_more: bool) -> None:
        super().__init__(rows, number, paginator)
        self._has_more = has_more

    def has_next(self) -> bool:
        return self._has_more

    def next_page_number(self) -> int:
        return int(self.number) + 1

    def previous_page_number(self) -> int:
        return int(self.number) - 1


class FactPaging(Paging):
    """As every list; `count` stops at `MOST_COUNTED`, `next` does not."""

    django_paginator_class = FactPaginator
