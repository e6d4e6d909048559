"""Tables of the facts app."""

from facts.models.contradictions import Contradiction
from facts.models.facts import Evidence, Fact, FactRevision, Feedback, ProjectedSection
from facts.models.forgetting import Receipt, Tombstone

__all__ = [
    "Contradiction",
    "Evidence",
    "Fact",
    "FactRevision",
    "Feedback",
    "ProjectedSection",
    "Receipt",
    "Tombstone",
]
