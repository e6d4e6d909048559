"""Routes of the facts app, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from facts.api.contradictions import ContradictionsView, ResolveView, UndoView
from facts.api.facts import FactHistoryView, FactsView, FactView
from facts.api.feedback import FactFeedbackView, FeedbackView

_AGENT = "memory/<rowid:agent_id>/"

urlpatterns = [
    path(_AGENT + "facts", FactsView.as_view(), name="facts"),
    path(_AGENT + "facts/<rowid:fact_id>", FactView.as_view(), name="fact"),
    path(_AGENT + "facts/<rowid:fact_id>/history", FactHistoryView.as_view(), name="fact-history"),
    path(_AGENT + "facts/<rowid:fact_id>/feedback", FactFeedbackView.as_view(), name="fact-feedback"),
    path(_AGENT + "contradictions", ContradictionsView.as_view(), name="contradictions"),
    path(
        _AGENT + "contradictions/<rowid:contradiction_id>/resolve",
        ResolveView.as_view(),
        name="contradiction-resolve",
    ),
    path(
        _AGENT + "contradictions/<rowid:contradiction_id>/undo", UndoView.as_view(), name="contradiction-undo"
    ),
    path(_AGENT + "feedback", FeedbackView.as_view(), name="feedback"),
]
