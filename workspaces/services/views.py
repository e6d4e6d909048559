"""Files that are no rows: another app shows its own rows as a file, and takes a written one apart again.

A lower app knows nothing of them but this: which names are theirs, how they read, and how they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from workspaces.errors import Unprocessable
from workspaces.services.writing import Author, Written
from workspaces.types import BucketRef, Reach


@dataclass(frozen=True, slots=True)
class ViewFile:
    """A view as it reads now. `revision` goes up with every change of what it shows."""

    bucket_id: int
    name: str
    content: str
    revision: int
    updated_at: datetime


class FileView(Protocol):
    """One app's files. Each call is made inside the caller's `tenant(…)`."""

    def owns(self, name: str) -> bool:
        """Whether a file of that (clean) name is a view of this app, whether or not it has content."""

    def files(self, reach: Reach, *, name: str | None = None) -> Sequence[ViewFile]:
        """The views within reach that hold anything, of one name or all."""

    def write(
        self, bucket: BucketRef, name: str, content: str, *, author: Author, base: int | None
    ) -> Written:
        """Makes the rows what the content says; what cannot be read is told in the warnings."""

    def delete(self, bucket: BucketRef, name: str, *, author: Author, base: int | None) -> Written:
        """Takes away all that the view shows; raises `NotFound` when that is nothing."""


_JOINED: list[FileView] = []


def join_file_view(view: FileView) -> None:
    """Adds an app's views; called once, at start."""
    if view not in _JOINED:
        _JOINED.append(view)


def view_of(name: str) -> FileView | None:
    """Whose view a file of that clean name is; None for an ordinary file."""
    return next((view for view in _JOINED if view.owns(name)), None)


def view_files(reach: Reach, *, name: str | None = None) -> list[ViewFile]:
    """All views within reach that hold anything, by name; one query an app."""
    if name is not None:
        view = view_of(name)
        return list(view.files(reach, name=name)) if view else []
    found = [one for view in _JOINED for one in view.files(reach)]
    return sorted(found, key=lambda one: (one.name, one.bucket_id))


def viewed(view: FileView, bucket: BucketRef, name: str) -> tuple[str, int]:
    """What a view of one bucket reads, and its revision; empty and 0 while it holds nothing."""
    found = next(iter(view.files(Reach(bucket.workspace_id, (bucket.id,)), name=name)), None)
    return (found.content, found.revision) if found else ("", 0)


def refuse_view(name: str) -> None:
    """Raises `Unprocessable` "file_is_view" for what only a file with revisions can do."""
    if view_of(name) is not None:
        raise Unprocessable(
            "file_is_view", f"{name} is made from rows; each of them has its own history.", field="name"
        )
