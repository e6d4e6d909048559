"""The tables of ours, and a row of several people in every one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.apps import apps
from django.db import models
from django.utils import timezone

from memory.models import (
    ContextSummary,
    Conversation,
    ExtractionState,
    Message,
    ProviderBreaker,
    RecallHit,
    Turn,
)
from memory.services.turns import record_turns
from memory.types import Incoming
from tests import factories
from tests.factories import World
from workspaces.access import open_personal, principal_of_token
from workspaces.models import (
    Change,
    IdempotencyKey,
    ModelUsage,
    Plugin,
    Run,
    Schedule,
    SettingOverride,
    Workspace,
)
from workspaces.services.files import Author, write_file
from workspaces.tenancy import tenant, workspace
from workspaces.types import AuthorKind, BucketRef

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(config.label for config in apps.get_app_configs() if (ROOT / config.label).is_dir())
"""The labels of our own apps."""
MODELS = [model for model in apps.get_models() if model._meta.app_label in OURS]
TENANTS = [model for model in MODELS if any(field.attname == "workspace_id" for field in model._meta.fields)]
BUCKETS = [model for model in TENANTS if any(field.attname == "bucket_id" for field in model._meta.fields)]
GUARDED = [Workspace, *TENANTS]
"""Every table that row-level security must guard."""


def table(model: type[models.Model]) -> str:
    """The name of a model's table; also the id of a test's parameter."""
    return model._meta.db_table


def _speak(world: World, name: str, bucket: BucketRef) -> None:
    principal = principal_of_token(world.people[name].token, address="", now=timezone.now())
    opened = open_personal(principal, world.agent_id, end_user_id=None, writes=True)
    assert opened.own == bucket
    said = [Incoming(role="user", content=f"I am {name}."), Incoming(role="assistant", content="Hello.")]
    record_turns(opened, conversation_id=f"of-{name}", messages=said, source="web")


def fill(world: World, name: str) -> BucketRef:
    """At least one row of that person in every bucket table, and of their workspace in every other one."""
    bucket = world.personal(world.people[name].owner_key)
    now = timezone.now()
    own = {"workspace_id": bucket.workspace_id, "bucket_id": bucket.id}
    _speak(world, name, bucket)
    with tenant(bucket):
        write_file(bucket, "PROFILE.md", f"# {name}\n", author=Author(AuthorKind.PERSON, f"user:{name}"))
        run = Run.objects.create(**own, kind="extract", created_at=now)
        Change.objects.create(**own, run=run, target_kind="file", target="PROFILE.md", created_at=now)
        ModelUsage.objects.create(**own, at=now, purpose="chat", model="rules")
        conversation = Conversation.objects.of(bucket).get(external_id=f"of-{name}")
        question, answer = Message.objects.of(bucket).order_by("pk")
        Turn.objects.create(
            **own,
            conversation=conversation,
            question=question,
            answer=answer,
            status="answered",
            started_at=now,
            finished_at=now,
        )
        ContextSummary.objects.create(
            **own,
            conversation=conversation,
            upto_message=answer.pk,
            text=f"Talked with {name}.",
            tokens=5,
            model="rules",
            prompt_version=1,
            created_at=now,
            expires_at=now,
        )
        ExtractionState.objects.create(**own)
        factories.fill_knowledge(bucket, f"{name} drinks tea.")
        RecallHit.objects.create(
            **own, at=now, source="chat", query_hash="0", item="message:1", kind="message", rank=0, score=0.5
        )
    with workspace(bucket.workspace_id):
        SettingOverride.objects.create(
            workspace_id=bucket.workspace_id, key=f"test.{name}", value=1, updated_at=now
        )
        Plugin.objects.create(
            workspace_id=bucket.workspace_id, kind=f"of_{name}", created_at=now, updated_at=now
        )
        Schedule.objects.create(workspace_id=bucket.workspace_id, agent_id=world.agent_id, job=f"of_{name}")
        ProviderBreaker.objects.create(
            workspace_id=bucket.workspace_id, provider=f"of_{name}", failures=1, changed_at=now
        )
        IdempotencyKey.objects.create(
            workspace_id=bucket.workspace_id,
            caller=f"user:{name}",
            key="k",
            request_sha256="",
            created_at=now,
        )
    return bucket


@dataclass
class Filled:
    """Both workspaces, and the own buckets of the people whose rows are looked for."""

    acme: World
    umbra: World
    vera: BucketRef
    bob: BucketRef
    mallory: BucketRef


def fill_all() -> Filled:
    """Both workspaces with a row of everybody in every table."""
    acme, umbra = factories.acme(), factories.umbra()
    return Filled(acme, umbra, fill(acme, "vera"), fill(acme, "bob"), fill(umbra, "mallory"))
