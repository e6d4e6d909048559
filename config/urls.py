"""Every address of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, register_converter
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from workspaces.api.fields import RowIdConverter

register_converter(RowIdConverter, "rowid")

handler404 = "config.api.not_found"
handler500 = "config.api.server_error"

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("facts.api.urls")),
    path("api/v1/", include("memory.api.urls")),
    path("api/v1/", include("workspaces.api.urls_files")),
    path("api/v1/", include("workspaces.api.urls_admin")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("", include("workspaces.api.operations")),
]
