"""Routes of the memory app, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from memory.api.chat import ChatStreamView, ChatView
from memory.api.consolidation import ConsolidationView
from memory.api.entries import EntriesView, EntryHistoryView, EntryView
from memory.api.jobs import RunsView, RunView, SummarizeView
from memory.api.search import SearchView
from memory.api.turns import ContextView, ConversationsView, ConversationView, TurnsView

_AGENT = "memory/<rowid:agent_id>/"

urlpatterns = [
    path("chat", ChatView.as_view(), name="chat"),
    path("chat/stream", ChatStreamView.as_view(), name="chat-stream"),
    path(_AGENT + "turns", TurnsView.as_view(), name="turns"),
    path(_AGENT + "search", SearchView.as_view(), name="search"),
    path(_AGENT + "context", ContextView.as_view(), name="context"),
    path(_AGENT + "conversations", ConversationsView.as_view(), name="conversations"),
    path(_AGENT + "conversations/<path:conversation_id>", ConversationView.as_view(), name="conversation"),
    path(_AGENT + "summarize/<path:conversation_id>", SummarizeView.as_view(), name="summarize"),
    path(_AGENT + "structured-consolidation", ConsolidationView.as_view(), name="structured-consolidation"),
    path(_AGENT + "entries", EntriesView.as_view(), name="entries"),
    path(_AGENT + "entries/<rowid:entry_id>", EntryView.as_view(), name="entry"),
    path(_AGENT + "entries/<rowid:entry_id>/history", EntryHistoryView.as_view(), name="entry-history"),
    path(_AGENT + "runs", RunsView.as_view(), name="runs"),
    path(_AGENT + "runs/<rowid:run_id>", RunView.as_view(), name="run"),
]
