"""Tables of the memory app."""

from memory.models.breakers import ProviderBreaker
from memory.models.conversations import ContextSummary, Conversation, Message, Turn
from memory.models.extraction import ExtractionState

__all__ = ["ContextSummary", "Conversation", "ExtractionState", "Message", "ProviderBreaker", "Turn"]
