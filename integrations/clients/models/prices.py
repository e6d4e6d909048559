"""What a call cost, by the price list that ships with pydantic-ai (no network)."""

from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from integrations.clients.models.answers import Usage

_PRICE_LIST_IDS = {"openai": "openai", "anthropic": "anthropic", "bedrock": "aws"}


def cost_usd(model_name: str, usage: Usage) -> Decimal | None:
    """US dollars for `usage` of `model_name` (`openai:gpt-…`), or None where no price is known: never zero
    for unknown.

    A usage that carries its own cost (summed request by request, which tiers need) is taken at its word. A
    model behind somebody else's server has no known price.
    """
    if usage.cost_usd is not None:
        return usage.cost_usd
    kind, _, model = model_name.partition(":")
    provider = _PRICE_LIST_IDS.get(kind)
    if provider is None:
        return None
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return calc_price(priced, model, provider_id=provider).total_price
    except (LookupError, ValueError):  # an unknown model, or counts that cannot be priced
        return None
