"""The workspaces app."""

from django.apps import AppConfig
from django.conf import settings

from integrations.clients.models.loop import before_call


class WorkspacesConfig(AppConfig):
    """Tenants, agents, owners, buckets, files, settings, jobs and the outbox."""

    name = "workspaces"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Workspaces"

    def ready(self) -> None:
        """Joins the outbox, the upkeep and the model clients."""
        from workspaces.outbox import on_nudge  # noqa: PLC0415 - models are not loaded before
        from workspaces.services.maintenance import join_maintenance  # noqa: PLC0415
        from workspaces.services.schedules import review_schedules  # noqa: PLC0415
        from workspaces.tasks import send_nudge  # noqa: PLC0415
        from workspaces.tenancy import release_connection  # noqa: PLC0415

        # No model is waited for with a database connection in hand, and never inside a transaction.
        before_call.append(release_connection)
        join_maintenance(review_schedules)
        if settings.PROCESS != "command":
            # A command has no Celery app; the sweep finds its work.
            on_nudge(send_nudge)
