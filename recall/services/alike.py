"""Records that share words with a text: where its like would be, if it is there."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from django.db import connection

from recall.logic.lexemes import lexemes_of
from recall.models import BucketCount
from recall.services.index import bucket_lexeme
from recall.types import RecordKind

FEW: Final = 2000
"""Records of a bucket up to which one shared word is enough to be looked at; above, it takes two."""
_WORDS: Final = 24
_PAIRED: Final = 8

_ALIKE: Final = """
WITH met AS MATERIALIZED (
  SELECT source_id, lexemes FROM recall_record
  WHERE lexemes @@ %(chosen)s::tsquery AND kind = %(kind)s AND bucket_id = %(bucket)s LIMIT 2000
)
SELECT source_id FROM met
ORDER BY (SELECT count(*) FROM unnest(%(words)s::text[]) AS w(word)
          WHERE lexemes @@ ('''' || replace(word, '''', '''''') || '''')::tsquery) DESC, source_id DESC
LIMIT %(limit)s
"""


def alike(bucket_id: int, *, kind: RecordKind, text: str, limit: int) -> list[int]:
    """The sources of that kind in that bucket which share most words with the text, the closest first.

    Two statements, whatever the size of the tenant: words choose at most 2,000 records, all words rank them.
    """
    words = sorted(
        (word for word in lexemes_of(text) if ":" not in word), key=lambda word: (-len(word), word)
    )[:_WORDS]
    if not words:
        return []
    count = BucketCount.objects.filter(pk=bucket_id).values_list("records", flat=True).first() or 0
    quoted = [_quoted(word) for word in words]
    if count > FEW and len(words) > 1:
        # The longest words are the rarest, as a rule; what is alike shares two of them.
        chosen = " | ".join(f"({a} & {b})" for a, b in combinations(quoted[:_PAIRED], 2))
    else:
        chosen = " | ".join(quoted)
    with connection.cursor() as cursor:
        cursor.execute(
            _ALIKE,
            {
                "chosen": f"{_quoted(bucket_lexeme(bucket_id))} & ({chosen})",
                "kind": kind.value,
                "bucket": bucket_id,
                "words": words,
                "limit": limit,
            },
        )
        return [row[0] for row in cursor.fetchall()]


def _quoted(lexeme: str) -> str:
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"
