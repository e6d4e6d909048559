"""What kind of thing a text is, as lexemes that the index carries beside its words: `is:question` when it ends
by asking, `is:timed` when it says when something was or will be.
"""

from __future__ import annotations

import re

ASKS = "is:question"
TIMED = "is:timed"

# A note in brackets at the end tells of something attached, such as a picture.
_NOTE = re.compile(r"\s*\[[^\[\]]{0,500}\]\s*$")
_ends_asking = re.compile(r"(?:[?？]|[吗呢][。.!！~～]?)[\s\"'”’)）]*$").search
_says_when = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:last|next|this|past) (?:\w+ )?"
    r"(?:night|week|weekend|month|year|summer|winter|spring|fall|autumn|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday)|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday|recently|just|(?:19|20)\d\d"
    r"|gestern|heute|morgen|letzte[nrs]?|nächste[nrs]?|vorgestern|hier|demain|aujourd'hui|dernière?|prochaine?"
    r"|ayer|hoy|mañana|pasad[oa]|próxim[oa]|ieri|oggi|domani|scors[oa]|prossim[oa]|ontem|hoje|amanhã|passad[oa]"
    r"|вчера|сегодня|завтра|назад|прошл\w+|следующ\w+)\b"
    "|昨天|前天|今天|明天|后天|昨晚|今晚|今早|上周|下周|这周|本周|上个?月|下个?月|去年|今年|明年|前年|周末|星期|礼拜|刚刚"
    "|最近|[天周月年]前|月[0-9一二三四五六七八九十]+[日号]|年[0-9一二三四五六七八九十]+月"
    "|昨日|今日|明日|先週|来週|先月|来月|어제|오늘|내일"
).search


def marks_of(folded_text: str, *, holds_date: bool) -> tuple[str, ...]:
    """The marks of a folded text; `holds_date` when a date was found in it."""
    asks = (ASKS,) if _ends_asking(_NOTE.sub("", folded_text[-600:])[-40:]) else ()
    return (*asks, TIMED) if holds_date or _says_when(folded_text) else asks
