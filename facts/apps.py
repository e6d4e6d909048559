"""The facts app."""

from django.apps import AppConfig


class FactsConfig(AppConfig):
    """Facts, trust, contradictions and forgetting."""

    name = "facts"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Facts"

    def ready(self) -> None:
        """Joins the upkeep."""
        from facts.services.expiry import retire_expired  # noqa: PLC0415 - models are not loaded before
        from workspaces.services.maintenance import join_maintenance  # noqa: PLC0415

        join_maintenance(retire_expired)
