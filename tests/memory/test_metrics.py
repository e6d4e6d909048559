"""What `/metrics` tells of turns and providers."""

from __future__ import annotations

from tests.factories import World


def test_turns_and_providers_are_counted(acme: World):
    client = acme.bob.client()
    client.post("/api/v1/chat", {"agentId": acme.agent_id, "message": "Hello there."})
    text = client.get("/metrics").content.decode()
    assert 'mate_turns_total{status="answered"} 1.0' in text
    assert 'mate_turns_total{status="failed"} 0.0' in text
    assert "mate_turn_seconds_count 1.0" in text
    assert "mate_recall_seconds_count 1.0" in text
    assert 'mate_recall_seconds_bucket{le="+Inf"} 1.0' in text
    assert 'mate_provider_asked_total{provider="builtin",status="answered"} 1.0' in text
    assert 'mate_provider_asked_total{provider="builtin",status="late"} 0.0' in text
    assert 'mate_provider_seconds_count{provider="builtin",status="answered"} 1.0' in text
    assert 'mate_provider_seconds_bucket{le="+Inf",provider="builtin",status="answered"} 1.0' in text
