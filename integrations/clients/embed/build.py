"""Embedders by name: `local`, `openai:…`, `bedrock:…`, and `none`."""

from pathlib import Path

from integrations.clients.embed.embedder import CarefulEmbedder, Embedder
from integrations.clients.embed.local import LocalEmbedder
from integrations.clients.embed.names import check_embedder_name


def make_embedder(
    name: str, *, data_dir: Path, openai_base_url: str | None = None, timeout_s: float
) -> Embedder | None:
    """An embedder ready to be called, of any thread and after any fork; keep it, since it holds connections.

    None for `none`: there are no vectors then. `timeout_s` bounds one request; passages may take several.
    Keys: `OPENAI_API_KEY`; Bedrock takes AWS's own variables, files or instance role. Raises ValueError for
    a bad name, ProviderError (`auth`, `bad_request`) when a key or region is missing.
    """
    asked = check_embedder_name(name)
    if asked.kind == "none":
        return None
    if asked.kind == "local":
        return CarefulEmbedder(LocalEmbedder(data_dir, timeout_s=timeout_s))
    if asked.kind == "openai":
        from integrations.clients.embed.openai_compatible import OpenAIEmbedder  # noqa: PLC0415 - loads httpx

        return CarefulEmbedder(OpenAIEmbedder(asked, base_url=openai_base_url or None, timeout_s=timeout_s))
    from integrations.clients.embed.bedrock import BedrockEmbedder  # noqa: PLC0415 - loads boto3: a second

    return CarefulEmbedder(BedrockEmbedder(asked, timeout_s=timeout_s))
