"""The hybrid search of an owner's memory as one plain statement, for psycopg: what the product's is measured by."""

from __future__ import annotations

import math
from typing import Any, Final

from bench.loading import Tenant, of_word
from bench.synthetic import share_of, vector_of

# Words: the rare ones choose, all of them score. Vectors: each bucket by itself, exactly (`+ 0` keeps an approximate
# index away) or, where the product made an index for the bucket, by it. Both legs' scores are added.
_WORDS = 8
_SCORE = " + ".join(
    f"CASE WHEN lexemes @@ %(t{n})s::tsquery THEN %(w{n})s::float ELSE 0 END" for n in range(_WORDS)
)
SEARCH: Final = f"""
WITH chosen AS MATERIALIZED (
  SELECT id, lexemes FROM recall_record WHERE lexemes @@ %(choose)s::tsquery LIMIT 2000
), words AS (
  SELECT id, {_SCORE} AS score
  FROM chosen ORDER BY score DESC LIMIT 50
), near AS MATERIALIZED (
  (SELECT record_id AS id, 1 - (value <=> %(vector)s::halfvec) AS score FROM recall_vector
   WHERE embedder = %(embedder)s AND bucket_id = %(own)s ORDER BY (value <=> %(vector)s::halfvec) + 0 LIMIT 50)
  UNION ALL
  (SELECT record_id AS id, 1 - (value <=> %(vector)s::halfvec) AS score FROM recall_vector
   WHERE embedder = %(embedder)s AND bucket_id = %(team)s ORDER BY (value <=> %(vector)s::halfvec) + 0 LIMIT 50)
), best AS (
  SELECT id, coalesce(words.score, 0) / %(most)s + coalesce(near.score, 0) AS score
  FROM words FULL JOIN near USING (id) ORDER BY score DESC LIMIT 10
)
SELECT r.id, m.content, m.speaker, m.at, best.score
FROM best JOIN recall_record r USING (id) JOIN memory_message m ON m.id = r.source_id ORDER BY best.score DESC
"""


def given(tenant: Tenant, owner: int, query: str) -> dict[str, Any]:
    """The statement's parameters. How rare a word is is known for nothing here, as is the question's vector."""
    words = list(dict.fromkeys(query.split()))[:_WORDS]
    weights = [math.log(1 / share_of(word)) for word in words]
    own, team = tenant.reach(owner)
    terms = [" & ".join(f"'{lexeme}'" for lexeme in of_word(word)) for word in words]
    rare = [term for term, word in zip(terms, words, strict=True) if share_of(word) < 0.01] or terms
    spare = _WORDS - len(words)
    return {
        "choose": f"('@{own}' | '@{team}') & ({' | '.join(f'({term})' for term in rare)})",
        **{f"t{n}": term for n, term in enumerate([*terms, *["'none'"] * spare])},
        **{f"w{n}": weight for n, weight in enumerate([*weights, *[0.0] * spare])},
        "most": sum(weights),
        "embedder": tenant.embedder,
        "vector": str(vector_of(query).tolist()),
        "own": own,
        "team": team,
    }
