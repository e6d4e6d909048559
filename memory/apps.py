"""The memory app."""

from django.apps import AppConfig
from django.conf import settings


class MemoryConfig(AppConfig):
    """Conversations, the context of a turn, chat and extraction."""

    name = "memory"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Memory"

    def ready(self) -> None:
        """Joins the outbox, the upkeep, the schedules, the metrics and what is told of files; loads the plugins."""
        from facts.services.feedback import join_base_trust  # noqa: PLC0415 - models are not loaded before
        from facts.services.searching import join_embedder  # noqa: PLC0415
        from memory.api.metrics import turn_metrics  # noqa: PLC0415
        from memory.handlers import register_topics  # noqa: PLC0415
        from memory.models import RecallHit  # noqa: PLC0415
        from memory.providers.registry import load_plugins  # noqa: PLC0415
        from memory.services.embedding import (  # noqa: PLC0415
            ask_for_missing,
            clear_gone,
            embed_question,
        )
        from memory.services.entries import ToolStore, clear_expired, trust_of_entry  # noqa: PLC0415
        from memory.services.indexing import index_file  # noqa: PLC0415
        from memory.services.rounds import JOB  # noqa: PLC0415
        from memory.services.structured_view import StructuredView  # noqa: PLC0415
        from memory.services.upkeep import close_abandoned  # noqa: PLC0415
        from memory.tools.entries import join_entry_store  # noqa: PLC0415
        from recall.types import RecordKind  # noqa: PLC0415
        from workspaces.api.operations import add_collector  # noqa: PLC0415
        from workspaces.services.files import on_file_written  # noqa: PLC0415
        from workspaces.services.maintenance import join_maintenance, join_retention  # noqa: PLC0415
        from workspaces.services.schedules import join_job  # noqa: PLC0415
        from workspaces.services.views import join_file_view  # noqa: PLC0415

        register_topics()
        for work in (close_abandoned, ask_for_missing, clear_gone, clear_expired):
            join_maintenance(work)
        join_retention(RecallHit, "hits-days")
        add_collector(turn_metrics)
        on_file_written(index_file)
        join_file_view(StructuredView())
        join_job(JOB)
        join_entry_store(ToolStore())
        join_base_trust(RecordKind.ENTRY, trust_of_entry)
        join_embedder(lambda text, buckets, kinds: embed_question(text, buckets=buckets, kinds=kinds)[0])
        load_plugins(settings.MATE_PROVIDERS)
