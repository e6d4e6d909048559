"""The facts app."""

from django.apps import AppConfig


class FactsConfig(AppConfig):
    """Facts, trust, contradictions and forgetting."""

    name = "facts"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Facts"

    def ready(self) -> None:
        """Joins the outbox, the upkeep and what is told of files."""
        from facts.handlers import register_topics  # noqa: PLC0415 - models are not loaded before
        from facts.services.expiry import retire_expired  # noqa: PLC0415
        from facts.services.project import tell_of_file  # noqa: PLC0415
        from workspaces.services.files import on_file_written  # noqa: PLC0415
        from workspaces.services.maintenance import join_maintenance  # noqa: PLC0415

        register_topics()
        join_maintenance(retire_expired)
        on_file_written(tell_of_file)
