"""The stand-in model's few rules, so that a person can run the product against it: no network, no
randomness.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_FENCES = (
    r"<(?P<tag>[\w-]*(?:recall|memor)[\w-]*)[^>]*>(?P<body>.*?)</(?P=tag)>",
    r"```(?P<tag>[\w-]*(?:recall|memor)[\w-]*)[^\n]*\n(?P<body>.*?)```",
    r"\[(?P<tag>[^\]\n/]*(?:recall|memor)[^\]\n]*)\](?P<body>.*?)\[(?:/|end)[^\]\n]*\]",
)
_USE_TOOL = re.compile(
    r"(?:use|call) (?:the )?tool (?P<name>\w+)\s*(?:with\s*)?(?P<args>\{.*\})?", re.I | re.S
)
_LINE = re.compile(
    r"^[\s>*-]*(?:\[[^\]]*\]\s*)?(?P<who>\w[\w .'-]{0,40}?)(?:\s*[(\[][^)\]]*[)\]])?"
    r"\s*[:：]\s*(?P<said>\S.*)$"
)
_ABOUT_ONESELF = re.compile(r"\b(I|I'm|I've|my|we|our)\b|我|remember|记住|prefer", re.I)
_MACHINES = {"assistant", "agent", "system", "tool", "助手"}


@dataclass(frozen=True)
class Thought:
    """What to say, or the one tool to call."""

    text: str = ""
    tool_name: str = ""
    tool_arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A request, as far as the rules look at it. `tools`: name → JSON schema of the arguments."""

    system: str
    user: str
    last_role: str
    last_text: str
    tools: dict[str, dict[str, Any]]


def think(asked: Asked) -> Thought:
    """The first rule that fits: a tool's result, a tool asked for, a job's prompt, a chat."""
    if asked.last_role == "tool":
        return Thought(f"The tool answered: {asked.last_text[:500]}")
    if (thought := _tool_asked_for(asked)) is not None:
        return thought
    prompt = f"{asked.system}\n{asked.user}"
    if "daily_entry" in prompt:
        return Thought(json.dumps(_extraction(asked.user), ensure_ascii=False))
    if "memory_content" in prompt:
        return Thought(
            json.dumps({"should_update": False, "reason": "The stub leaves it be.", "memory_content": ""})
        )
    if re.search(r"summari[sz]e|摘要", asked.system, re.I):
        return Thought(" ".join(said for _, said in _lines(asked.user))[:600] or asked.user[:300])
    return Thought(_chat(asked.user))


def _tool_asked_for(asked: Asked) -> Thought | None:
    wish = _USE_TOOL.search(_question(asked.user))
    if wish is None or wish["name"] not in asked.tools:
        return None
    if wish["args"]:
        return Thought(tool_name=wish["name"], tool_arguments=json.loads(wish["args"]))
    schema = asked.tools[wish["name"]]
    rest = asked.user[wish.end() :].strip() or "?"
    fill = {"string": rest, "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    needed = {key: schema["properties"][key] for key in schema.get("required", [])}
    return Thought(
        tool_name=wish["name"],
        tool_arguments={key: fill.get(kind.get("type", "string"), rest) for key, kind in needed.items()},
    )


def _extraction(transcript: str) -> dict[str, Any]:
    """What people said about themselves, as bullets, in the answer's shape."""
    kept = [
        f"- {who}: {said}"
        for who, said in _lines(transcript)
        if who.lower() not in _MACHINES
        and _ABOUT_ONESELF.search(said)
        and not said.rstrip().endswith(("?", "？"))
    ]
    return {
        "should_update": bool(kept),
        "reason": f"{len(kept)} lines say something about a person.",
        "daily_entry": "\n".join(dict.fromkeys(kept)),
        "memory_update": "",
        "profile_update": "",
    }


def _lines(text: str) -> list[tuple[str, str]]:
    matches = (_LINE.match(line) for line in text.splitlines())
    return [(match["who"].strip(), match["said"].strip()) for match in matches if match]


def _chat(user: str) -> str:
    """The recalled lines that share most with the question, said back."""
    question = _question(user)
    words = _words(question)
    facts = _recalled(user)
    best = sorted(facts, key=lambda fact: -len(words & _words(fact)))[:3]
    if not best:
        return f"I know nothing about that yet. You said: {question[:300]}"
    return "From what I remember: " + " ".join(best)


def _recalled(user: str) -> list[str]:
    lines: list[str] = []
    for fence in _FENCES:
        for block in re.finditer(fence, user, re.I | re.S):
            lines += (line.strip(" -*\t") for line in block["body"].splitlines())
    return [line for line in dict.fromkeys(lines) if line and not line.startswith(("#", "---"))]


def _question(user: str) -> str:
    for fence in _FENCES:
        user = re.sub(fence, "", user, flags=re.I | re.S)
    return user.strip()


def _words(text: str) -> set[str]:
    """Latin words of three letters and more, and pairs of Chinese characters."""
    latin = set(re.findall(r"[a-z0-9]{3,}", text.lower()))
    return latin.union(*(_pairs(run) for run in re.findall(r"[\u4e00-\u9fff]+", text)))


def _pairs(run: str) -> Sequence[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]
