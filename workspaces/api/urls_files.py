"""Routes of memory files, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path, register_converter

from workspaces.api import files


class NameConverter:
    """All that follows, whatever it is: a wrong file name is told as such, not as a missing address."""

    regex = r"[\s\S]*"

    def to_python(self, value: str) -> str:
        """The name as it was sent."""
        return value

    def to_url(self, value: str) -> str:
        """The name as it is."""
        return value


register_converter(NameConverter, "filename")

_WORKSPACE = "agents/<str:agent_id>/workspace/"
_FILE = f"{_WORKSPACE}files/<filename:name>"

urlpatterns = [
    path(f"{_WORKSPACE}files", files.Files.as_view(), name="files"),
    path(f"{_FILE}/revisions", files.Revisions.as_view(), name="file-revisions"),
    path(f"{_FILE}/revisions/<int:number>", files.OneRevision.as_view(), name="file-revision"),
    path(f"{_FILE}/diff", files.Diff.as_view(), name="file-diff"),
    path(f"{_FILE}/restore", files.Restore.as_view(), name="file-restore"),
    path(_FILE, files.OneFile.as_view(), name="file"),
    path(f"{_WORKSPACE}prompt-files", files.PromptFiles.as_view(), name="prompt-files"),
    path(f"{_WORKSPACE}memory/search", files.Search.as_view(), name="file-search"),
    path(f"{_WORKSPACE}memory/write", files.MergeMemory.as_view(), name="write-memory"),
]
