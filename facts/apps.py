"""The facts app."""

from django.apps import AppConfig


class FactsConfig(AppConfig):
    """Facts, trust, contradictions and forgetting."""

    name = "facts"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Facts"
