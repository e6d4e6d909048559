"""The agent's memory tools for one run, bound to the run's agent and owner.

A kind of tool is a module of its own, which names its tools in one tuple; here they come together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from pydantic_ai import Tool

from memory.tools.base import AgentTool, ToolRun
from memory.tools.entries import ENTRY_TOOLS
from memory.tools.facts import FACT_TOOLS
from memory.tools.files import FILE_TOOLS, MAX_READ_CHARS
from memory.types import OutsideTool

__all__ = ["AGENT_TOOLS", "MAX_READ_CHARS", "ToolRun", "agent_tools", "outside_tools"]

AGENT_TOOLS: Final[tuple[AgentTool, ...]] = (*FILE_TOOLS, *ENTRY_TOOLS, *FACT_TOOLS)


def agent_tools(run: ToolRun) -> list[Tool[Any]]:
    """The tools for that run."""
    return [tool.bound(run) for tool in AGENT_TOOLS]


def outside_tools(given: Sequence[OutsideTool], *, taken: Collection[str]) -> list[Tool[Any]]:
    """The tools that plugins give for a turn; one whose name is taken is left out, ours come first."""
    tools: dict[str, Tool[Any]] = {}
    for one in given:
        if one.name not in taken and one.name not in tools:
            tools[one.name] = _outside(one)
    return list(tools.values())


def _outside(given: OutsideTool) -> Tool[Any]:
    def call(**arguments: Any) -> Any:
        return given.call(arguments)

    return Tool.from_schema(call, given.name, given.description, dict(given.parameters))
