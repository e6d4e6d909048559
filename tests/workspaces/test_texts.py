"""What a model may write and Postgres cannot hold."""

from __future__ import annotations

import pytest

from workspaces.logic.texts import storable


@pytest.mark.parametrize(
    ("text", "kept"),
    [("plain", "plain"), ("a\0b", "ab"), ("a smile \ud83d", "a smile ?"), ("😀 林晓", "😀 林晓"), ("", "")],
)
def test_a_text_is_kept_but_for_what_cannot_be_stored(text, kept):
    assert storable(text) == kept
