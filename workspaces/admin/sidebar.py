"""The sidebar: the registered pages by their sections. An app above joins by naming a section in its pages."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from workspaces.admin.base import is_operator

_ORDER: Final = (
    "Workspaces",
    "Memory",
    "Facts",
    "Conversations",
    "Work",
    "Settings",
    "Trail",
    "People and clock",
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Unfold's groups of links; named in the setting `UNFOLD`."""
    if not is_operator(request):
        return []
    pages: dict[str, list[dict[str, Any]]] = {}
    for model, page in admin.site._registry.items():
        section = getattr(page, "section", "")
        if section:
            options = model._meta
            pages.setdefault(section, []).append(
                {
                    "title": str(options.verbose_name_plural).capitalize(),
                    "icon": getattr(page, "icon", "table_rows"),
                    "link": reverse(f"admin:{options.app_label}_{options.model_name}_changelist"),
                }
            )
    if "Settings" in pages:
        pages["Settings"].insert(
            0, {"title": "Settings in force", "icon": "tune", "link": reverse("admin:settings_in_force")}
        )
    known = [section for section in _ORDER if section in pages]
    return [
        {"title": section, "separator": True, "items": pages[section]}
        for section in (*known, *sorted(set(pages) - set(_ORDER)))
    ]
