"""The names of embedders, checked without loading what makes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

EmbedderKind = Literal["none", "local", "openai", "bedrock"]

LOCAL_MODEL: Final = "multilingual-e5-small"
LOCAL_DIMENSIONS: Final = 384
TITAN: Final = "amazon.titan-embed-text-v2:0"
COHERE: Final = "cohere.embed-multilingual-v3"

MOST_DIMENSIONS: Final = 4000
"""What pgvector can index as `halfvec`."""

# The sizes of the models whose makers document them; the first is what they give when nothing is said.
_BEDROCK_SIZES: Final[Mapping[str, tuple[int, ...]]] = {TITAN: (1024, 512, 256), COHERE: (1024,)}
_OPENAI_SIZES: Final[Mapping[str, int]] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_RIGHT: Final = (
    "local, none, openai:<model>, openai:<model>@<dimensions>, "
    f"bedrock:{TITAN} (also @512, @256) or bedrock:{COHERE}"
)


@dataclass(frozen=True)
class EmbedderName:
    """`dimensions`: the size of its vectors; None where only the server knows it.

    `sends_dimensions`: whether the size was chosen, so that the service must be told.
    """

    kind: EmbedderKind
    model: str = ""
    dimensions: int | None = None
    sends_dimensions: bool = False

    def __str__(self) -> str:
        """The one spelling of this embedder: two embedders with one spelling make the same vectors."""
        size = f"@{self.dimensions}" if self.sends_dimensions else ""
        return f"{self.kind}:{self.model}{size}" if self.model else self.kind


def check_embedder_name(name: str) -> EmbedderName:
    """What `name` asks for. Builds nothing, asks nobody.

    Raises ValueError, naming the value and what would be right.
    """
    if name == "none":
        return EmbedderName("none")
    if name in ("local", f"local:{LOCAL_MODEL}"):
        return EmbedderName("local", LOCAL_MODEL, LOCAL_DIMENSIONS)
    found = re.fullmatch(r"(openai|bedrock):(\S+?)(?:@(\d{1,6}))?", name)
    if found is None:
        raise _wrong(name)
    model, size = found[2], int(found[3]) if found[3] else None
    return _openai(name, model, size) if found[1] == "openai" else _bedrock(name, model, size)


def _openai(name: str, model: str, size: int | None) -> EmbedderName:
    usual = _OPENAI_SIZES.get(model)
    most = usual or MOST_DIMENSIONS
    if size is not None and not 1 <= size <= most:
        raise ValueError(f"{name!r} asks for {size} dimensions: {model} has 1 to {most}.")
    if size is None or size == usual:
        return EmbedderName("openai", model, usual)
    return EmbedderName("openai", model, size, sends_dimensions=True)


def _bedrock(name: str, model: str, size: int | None) -> EmbedderName:
    sizes = _BEDROCK_SIZES.get(model)
    if sizes is None:
        raise _wrong(name)
    if size is not None and size not in sizes:
        right = " or ".join(map(str, sizes))
        raise ValueError(f"{name!r} asks for {size} dimensions: {model} has {right}.")
    chosen = size or sizes[0]
    return EmbedderName("bedrock", model, chosen, sends_dimensions=chosen != sizes[0])


def _wrong(name: str) -> ValueError:
    return ValueError(f"{name!r} is not the name of an embedder: it must be {_RIGHT}.")
