"""Tables of the memory app."""

from memory.models.breakers import ProviderBreaker
from memory.models.conversations import ContextSummary, Conversation, Message, Turn
from memory.models.extraction import ExtractionState
from memory.models.hits import RecallHit

__all__ = [
    "ContextSummary",
    "Conversation",
    "ExtractionState",
    "Message",
    "ProviderBreaker",
    "RecallHit",
    "Turn",
]
