"""The names of models, checked without loading what makes them."""

import re
from dataclasses import dataclass

_KINDS = ("openai", "anthropic", "bedrock")


@dataclass(frozen=True)
class ModelName:
    kind: str
    model: str


def check_model_name(name: str, *, allow_test: bool = False) -> ModelName:
    """The two parts of `name`. Builds nothing, asks nobody.

    Raises ValueError, naming the value and what would be right.
    """
    kinds = (*_KINDS, "test") if allow_test else _KINDS
    kind, colon, model = name.partition(":")
    if not colon or kind not in kinds or not model or re.search(r"\s", name):
        right = ", ".join(f"{known}:<model>" for known in kinds)
        raise ValueError(f"{name!r} is not the name of a model: it must be one of {right}, without spaces.")
    return ModelName(kind, model)
