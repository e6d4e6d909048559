"""The recall app: a search engine in Postgres that knows bucket ids, not tenants."""

from django.apps import AppConfig


class RecallConfig(AppConfig):
    """Records, lexemes, vectors, hybrid search. An index: rebuildable, not the truth."""

    name = "recall"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Recall"
