"""The tool that asks for facts."""

from __future__ import annotations

from typing import Annotated, Final

from django.utils import timezone
from pydantic import Field

from facts.logic.trust import decayed
from facts.models import Fact
from facts.queries import FactList, FactsWanted, holding
from memory.tools.base import MAX_HITS, AgentTool, Arguments, Moment, Result, Text, ToolRun
from recall.types import RecordKind
from workspaces.logic.keyword import MAX_QUERY_CHARS
from workspaces.tenancy import tenant

HALF_LIFE: Final = "mate.memory.fact.trust-half-life-days"


class FactArguments(Arguments):
    query: Annotated[Text, Field(max_length=MAX_QUERY_CHARS)] | None = Field(
        None, description="What to know; its meaning counts. Absent: the newest facts."
    )
    category: Annotated[Text, Field(max_length=64)] | None = Field(
        None, description="Only facts of this category."
    )
    as_of: Moment | None = Field(
        None, description="What was true at this moment, also if it has changed since; takes no query."
    )
    include_history: bool = Field(
        default=False, description="Also what held once and no more; takes no query."
    )
    limit: int = Field(10, description=f"Facts, at most {MAX_HITS}.")


def _query(run: ToolRun, given: FactArguments) -> Result:
    """Facts that this person may know, best first with a query, else newest first."""
    limit = min(max(given.limit, 1), MAX_HITS)
    note = ""
    ids: list[int] | None = None
    if (given.query or "").strip() and given.as_of is None and not given.include_history:
        found, note = run.search(
            run.opened,
            query=str(given.query),
            limit=limit if given.category is None else MAX_HITS,
            kinds=[RecordKind.FACT],
            since=None,
            until=None,
        )
        ids = [item.record_source for item in found if item.record_source is not None]
    wanted = FactsWanted(
        category=given.category,
        includes_retired=given.include_history,
        as_of=given.as_of,
        ids=None if ids is None else tuple(ids),
    )
    with tenant(run.opened.reach):
        facts = list(FactList(run.opened.reach, wanted)[:limit])
        now = timezone.now()
        current = set(
            holding(Fact.objects.within(run.opened.reach), now=now)
            .filter(pk__in=[fact.pk for fact in facts])
            .values_list("pk", flat=True)
        )
    half_life = run.settings.count(HALF_LIFE)
    shown = [
        _shown(fact, trust=decayed(fact.trust, since=fact.confirmed_at, now=now, half_life_days=half_life))
        | {"holds": fact.pk in current}
        for fact in facts
    ]
    answer: Result = {"agentId": run.agent_id, "count": len(shown), "facts": shown}
    if given.query:
        answer["query"] = given.query
    if not shown:
        answer["hint"] = "No such fact is known. Try other words, or session_search for what was said."
    return answer | ({"note": note} if note else {})


def _shown(fact: Fact, *, trust: float) -> Result:
    return {
        "factId": fact.pk,
        "statement": fact.statement,
        "category": fact.category,
        "trust": round(trust, 3),
        "scope": fact.bucket.scope,
        "validFrom": fact.valid_from.isoformat() if fact.valid_from else None,
        "validTo": fact.valid_to.isoformat() if fact.valid_to else None,
        "learnedAt": fact.learned_at.isoformat(),
    }


FACT_TOOLS: Final = (
    AgentTool(
        "fact_query",
        "Finds facts that are known of this person and shared ones, with how far each is trusted and since when.",
        FactArguments,
        _query,
    ),
)
