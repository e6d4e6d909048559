"""Frozen values that cross apps. No Django, no clock, no network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel


class Scope(StrEnum):
    """A bucket's kind."""

    PERSONAL = "PERSONAL"
    TEAM = "TEAM"
    GLOBAL = "GLOBAL"


class Role(IntEnum):
    """A member's role; a higher one may do all that a lower one may."""

    VIEWER = 1
    MEMBER = 2
    ADMIN = 3
    OWNER = 4


class Grant(StrEnum):
    """What a token may be used for; a session has those of its role."""

    CHAT = "chat"
    READ = "read"
    WRITE = "write"
    JOBS = "jobs"
    ON_BEHALF = "on_behalf"
    AGENTS = "agents"
    ADMIN = "admin"


class AuthorKind(StrEnum):
    """Who wrote a revision. What a `MACHINE` wrote is never evidence."""

    PERSON = "person"
    PROGRAM = "program"
    MACHINE = "machine"
    IMPORT = "import"
    SYSTEM = "system"


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    STORED = "stored"
    NOTHING = "nothing"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BucketRef:
    """Where memory is written. `agent_id` is None for GLOBAL, `owner_key` for all but PERSONAL."""

    id: int
    workspace_id: int
    scope: Scope
    agent_id: int | None = None
    owner_key: str | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """The buckets a reader sees: their own (if it exists), the agent's shared one, the global one.

    `writes` are those of them that may also be written; always a subset of `buckets`.
    """

    workspace_id: int
    buckets: tuple[int, ...]
    writes: tuple[int, ...] = ()


In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


class UnusableAnswerError(Exception):
    """A model's answer that holds nothing to work with; says what was wrong."""


class Prompt(ABC, Generic[In, Out]):
    """One question to a model: what it is given, what it must answer, and the answer without a model.

    Pure: no Django, clock, randomness or network. `version` goes up with every change of wording,
    and is stored with what was learned.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    answer: type[Out]

    @abstractmethod
    def system(self, given: In) -> str:
        """The instructions; never holds text that an end user wrote."""

    @abstractmethod
    def user(self, given: In) -> str:
        """The material, fenced as data."""

    def parse(self, raw: str) -> Out:
        """The model's text as an answer; raises `UnusableAnswerError`. Override it where models need patience."""
        try:
            return self.answer.model_validate_json(raw)
        except ValueError as bad:
            raise UnusableAnswerError(str(bad)) from bad

    @abstractmethod
    def rules(self, given: In) -> Out:
        """What to answer when no model is configured: a real answer, made by rules."""
