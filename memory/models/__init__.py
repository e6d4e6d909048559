"""Tables of the memory app."""

from memory.models.breakers import ProviderBreaker
from memory.models.conversations import ContextSummary, Conversation, Message, Turn
from memory.models.entries import Entry, EntryRevision
from memory.models.extraction import ExtractionState
from memory.models.hits import RecallHit

__all__ = [
    "ContextSummary",
    "Conversation",
    "Entry",
    "EntryRevision",
    "ExtractionState",
    "Message",
    "ProviderBreaker",
    "RecallHit",
    "Turn",
]
