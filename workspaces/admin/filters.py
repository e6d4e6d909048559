"""Filters of lists."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RangeDateTimeFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm
from unfold.utils import parse_datetime_str


class _ChosenForm(AutocompleteDropdownForm):  # type: ignore[misc] # unfold is not typed
    """Unfold's form, reading by the default manager: ours named `objects` refuses to read a whole table."""

    def __init__(
        self,
        *,
        request: HttpRequest,  # noqa: ARG002 - unfold's signature
        name: str,
        label: str,
        choices: object,  # noqa: ARG002
        field: Any,
        model_admin: Any,
        **options: Any,
    ) -> None:
        options.pop("multiple", None)
        forms.Form.__init__(self, **options)
        self.fields[name] = forms.ModelChoiceField(
            label=label,
            required=False,
            queryset=field.remote_field.model._default_manager.all(),
            widget=AutocompleteSelect(
                field, model_admin.admin_site, attrs={"class": "unfold-filter-autocomplete"}
            ),
        )


class BetweenFilter(RangeDateTimeFilter):  # type: ignore[misc] # unfold is not typed
    """Rows between two times in UTC, both included; a day alone means its beginning, or its end."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        for edge, lookup, whole in (("from", "gte", "00:00:00"), ("to", "lte", "23:59:59")):
            name = f"{self.parameter_name}_{edge}"
            day, clock = self.used_parameters.get(f"{name}_0"), self.used_parameters.get(f"{name}_1")
            moment = parse_datetime_str(f"{day} {clock or whole}") if day else None
            if moment is not None:
                queryset = queryset.filter(
                    **{f"{self.parameter_name}__{lookup}": timezone.make_aware(moment)}
                )
        return queryset


class ChosenFilter(AutocompleteSelectFilter):  # type: ignore[misc] # unfold is not typed
    """Rows that belong to one of many, found by typing."""

    form_class = _ChosenForm
