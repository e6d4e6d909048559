"""The operator's view shows everything, changes it by services only, and lets nobody else in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import Model
from django.http import Http404, HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from memory.models import (
    ContextSummary,
    Conversation,
    ExtractionState,
    Message,
    ProviderBreaker,
    RecallHit,
    Turn,
)
from tests.factories import World, fill_knowledge
from tests.stubs.plugins import Sample, joined
from workspaces import outbox
from workspaces.access import principal_of_token
from workspaces.middleware import OperatorMiddleware
from workspaces.models import (
    GLOBAL_BUCKET_ID,
    Agent,
    AuditEvent,
    Bucket,
    Change,
    File,
    Heartbeat,
    IdempotencyKey,
    Member,
    ModelUsage,
    OutboxMessage,
    Owner,
    PersonalAccessToken,
    Plugin,
    Revision,
    Run,
    Schedule,
    SettingOverride,
    Workspace,
)
from workspaces.services.files import Author, write_file
from workspaces.tenancy import Door, door, tenant
from workspaces.types import AuthorKind, BucketRef, Role

READ_ONLY = {
    "AuditEvent",
    "Bucket",
    "Change",
    "ContextSummary",
    "Contradiction",
    "Conversation",
    "Entry",
    "EntryRevision",
    "Evidence",
    "ExtractionState",
    "Fact",
    "FactRevision",
    "Feedback",
    "Heartbeat",
    "Lane",
    "Message",
    "ModelUsage",
    "OutboxMessage",
    "ProjectedSection",
    "ProviderBreaker",
    "RecallHit",
    "Receipt",
    "Revision",
    "Run",
    "SettingOverride",
    "Tombstone",
    "Turn",
}
MODELS = sorted(admin.site._registry, key=lambda model: model.__name__)
KEY = "mate.memory.cooldown-minutes"


def url_of(model: type[Model], what: str, *args: object) -> str:
    options = model._meta
    return reverse(f"admin:{options.app_label}_{options.model_name}_{what}", args=args)


@pytest.fixture
def root(db) -> User:
    return User.objects.create_superuser("root", password="a long password")


@pytest.fixture
def client(root: User) -> Client:
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def staff(db) -> Client:
    """Someone who may enter the admin and has every permission, but is no global administrator."""
    user = User.objects.create_user("staff", password="a long password", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def topic(monkeypatch) -> str:
    monkeypatch.setattr(outbox, "_TOPICS", {})
    outbox.register("test.work", family="test", handle=lambda delivery: None)
    return "test.work"


def remember(world: World) -> BucketRef:
    """Erin's own memory with the agent, in two revisions."""
    bucket = world.personal("api:erin")
    with tenant(bucket):
        for text in ("Likes tea.\n", "Likes coffee.\n"):
            author = Author(AuthorKind.PERSON, "user:1", reason="Said so.")
            write_file(bucket, "PROFILE.md", text, author=author)
    return bucket


def fill(world: World, bucket: BucketRef, topic: str) -> None:
    """A row of every model that has a page."""
    now = timezone.now()
    row = {"workspace_id": world.workspace.pk, "bucket_id": bucket.id}
    with tenant(bucket):
        run = Run.objects.create(**row, kind="extract", status="stored", created_at=now, finished_at=now)
        Change.objects.create(**row, run=run, target_kind="file", target="PROFILE.md", created_at=now)
        ModelUsage.objects.create(**row, at=now, purpose="reply", model="openai:tiny", input_tokens=7)
        talk = Conversation.objects.create(**row, external_id="c1", source="api", created_at=now, last_at=now)
        said = Message.objects.create(
            **row, conversation=talk, role="user", content="I like <b>tea</b>.", at=now, created_at=now
        )
        Turn.objects.create(**row, conversation=talk, question=said, started_at=now)
        ContextSummary.objects.create(
            **row,
            conversation=talk,
            upto_message=said.pk,
            text="Tea.",
            tokens=1,
            model="rules",
            prompt_version=1,
            created_at=now,
            expires_at=now,
        )
        ExtractionState.objects.create(**row)
        fill_knowledge(bucket, "Drinks tea.")
        RecallHit.objects.create(
            **row, at=now, source="chat", query_hash="0", item="message:1", kind="message", rank=0, score=0.5
        )
        outbox.emit(bucket, topic, key="k", payload={"a": 1})
    slug = world.workspace.slug
    Heartbeat.objects.create(process=f"worker@{slug}:1", kind="worker", at=now)
    hourly = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.HOURS)
    CrontabSchedule.objects.create()
    PeriodicTask.objects.create(name=slug, task="workspaces.maintain", interval=hourly)
    with door(Door.OPERATOR):
        SettingOverride.objects.create(workspace_id=world.workspace.pk, key=KEY, value=9, updated_at=now)
        Schedule.objects.create(workspace_id=world.workspace.pk, agent_id=world.agent_id, job="dream")
        set_up = {"workspace_id": world.workspace.pk, "created_at": now, "updated_at": now}
        Plugin.objects.create(**set_up, kind=Sample.kind)
        ProviderBreaker.objects.create(
            workspace_id=world.workspace.pk, provider=Sample.kind, failures=1, changed_at=now
        )


@pytest.fixture
def personal(acme: World) -> BucketRef:
    return remember(acme)


@pytest.fixture
def everything(acme: World, personal: BucketRef, topic: str) -> Iterator[World]:
    with joined(Sample):
        fill(acme, personal, topic)
        yield acme


def first_of(model: type[Model]) -> Model:
    with door(Door.OPERATOR):
        found = model._default_manager.order_by("-pk").first()
    assert found is not None, f"The test makes no {model.__name__}."
    return found


def traces(*actions: str) -> list[AuditEvent]:
    with door(Door.OPERATOR):
        return list(AuditEvent.unscoped.filter(action__in=actions).order_by("pk"))


def messages_of(answer) -> str:
    return " ".join(str(one) for one in answer.context["messages"])


def counts_of(client: Client, url: str) -> dict[str, str]:
    """What a browser sends along for the tables within a page."""
    tables = client.get(url).context["inline_admin_formsets"]
    names = ("TOTAL_FORMS", "INITIAL_FORMS")
    return {f"{one.formset.prefix}-{name}": "0" for one in tables for name in names}


# --- every page -------------------------------------------------------------------------------------------


def test_every_page_opens_for_an_operator(everything: World, client: Client):
    seen = {}
    for model in MODELS:
        listed = client.get(url_of(model, "changelist"))
        rows = len(listed.context["cl"].result_list) if listed.status_code == 200 else 0
        shown = client.get(url_of(model, "change", first_of(model).pk)).status_code
        seen[model.__name__] = (listed.status_code, shown, rows > 0)
    assert seen == dict.fromkeys((model.__name__ for model in MODELS), (200, 200, True))


def test_only_what_operators_make_has_a_page_to_add_it(everything: World, client: Client):
    added = {model.__name__ for model in MODELS if client.get(url_of(model, "add")).status_code == 200}
    assert added == {
        "Agent",
        "CrontabSchedule",
        "File",
        "IntervalSchedule",
        "Member",
        "PeriodicTask",
        "PersonalAccessToken",
        "Plugin",
        "User",
        "Workspace",
    }


def test_every_table_but_answers_to_repeated_requests_has_a_page():
    ours = {model for label in ("workspaces", "memory") for model in apps.get_app_config(label).get_models()}
    assert ours - set(MODELS) == {IdempotencyKey}


def test_what_is_append_only_or_machine_made_cannot_be_changed(everything: World, client: Client):
    closed = set()
    for model in MODELS:
        row = first_of(model)
        answers = (
            client.post(url_of(model, "change", row.pk), {}),
            client.post(url_of(model, "delete", row.pk), {"post": "yes"}),
            client.post(url_of(model, "add"), {}),
        )
        if {answer.status_code for answer in answers} == {403}:
            closed.add(model.__name__)
    assert closed == READ_ONLY


def questions_of_lists(client: Client) -> dict[str, int]:
    asked = {}
    for model in MODELS:
        with CaptureQueriesContext(connection) as queries:
            client.get(url_of(model, "changelist"))
        asked[model.__name__] = len(queries)
    return asked


def test_no_list_asks_once_a_row(everything: World, umbra: World, client: Client, topic: str):
    client.get(url_of(Workspace, "changelist"))  # what is asked once a process
    few = questions_of_lists(client)
    fill(umbra, remember(umbra), topic)
    assert questions_of_lists(client) == few


def test_the_sidebar_leads_to_every_section(everything: World, client: Client):
    page = client.get("/admin/").content.decode()
    for model in (File, PersonalAccessToken, OutboxMessage, AuditEvent, Conversation):
        assert url_of(model, "changelist") in page
    assert reverse("admin:settings_in_force") in page


# --- nobody else ------------------------------------------------------------------------------------------


def test_staff_without_superuser_see_nothing(everything: World, staff: Client):
    for model in MODELS:
        row = first_of(model)
        for url in (url_of(model, "changelist"), url_of(model, "change", row.pk)):
            answer = staff.get(url)
            assert answer.status_code in {302, 403}, url
            assert str(row) not in answer.content.decode()
    assert staff.get(reverse("admin:settings_in_force")).status_code == 403


def test_staff_cannot_press_buttons(everything: World, staff: Client):
    token = first_of(PersonalAccessToken)
    body = {"action": "revoke", "_selected_action": [token.pk]}
    assert staff.post(url_of(PersonalAccessToken, "changelist"), body).status_code == 403
    revision = first_of(Revision)
    url = f"{url_of(Revision, 'changelist')}{revision.pk}/restore/"
    assert staff.post(url, {"_form_submitted": "True", "reason": "mine"}).status_code == 403
    agent = first_of(Agent)
    url = f"{url_of(Agent, 'changelist')}{agent.pk}/remove/"
    assert staff.post(url, {"_form_submitted": "True", "confirm": "Mate"}).status_code == 403


# --- workspaces, members, people --------------------------------------------------------------------------


def test_a_workspace_is_made_and_changed_with_a_trace(client: Client, root: User):
    body = {"name": "Nova", "slug": "nova", "language": "zh", "timezone": "Asia/Shanghai"}
    assert client.post(url_of(Workspace, "add"), body).status_code == 302
    made = first_of(Workspace)
    url = url_of(Workspace, "change", made.pk)
    nested = counts_of(client, url)
    assert client.post(url, {**body, "name": "Nova 2", **nested}).status_code == 302
    assert str(first_of(Workspace)) == "Nova 2"
    assert [one.actor for one in traces("workspace.created", "workspace.changed")] == [f"user:{root.pk}"] * 2
    wrong = client.post(url, {**body, "timezone": "Mars"})
    assert "no IANA time zone" in wrong.content.decode()


def test_the_reserved_workspace_stays_as_it_is(client: Client):
    body = {"name": "Mine", "language": "en", "timezone": "UTC"}
    assert client.post(url_of(Workspace, "change", 1), body).status_code == 403


def test_a_member_is_added_changed_and_removed_by_services(acme: World, client: Client, root: User):
    carol = User.objects.create_user("carol", password="a long password")
    body = {"workspace": acme.workspace.pk, "user": carol.pk, "role": Role.VIEWER.value}
    assert client.post(url_of(Member, "add"), body).status_code == 302
    member = first_of(Member)
    assert client.post(url_of(Member, "change", member.pk), {"role": Role.ADMIN.value}).status_code == 302
    assert client.post(url_of(Member, "delete", member.pk), {"post": "yes"}).status_code == 302
    made = [
        one
        for one in traces("member.added", "member.role_changed", "member.removed")
        if one.actor != "system"
    ]
    assert [(one.action, one.actor) for one in made] == [
        ("member.added", f"user:{root.pk}"),
        ("member.role_changed", f"user:{root.pk}"),
        ("member.removed", f"user:{root.pk}"),
    ]


def test_the_last_workspace_owner_is_kept_and_the_operator_is_told(acme: World, client: Client):
    with door(Door.OPERATOR):
        olivia = Member.unscoped.get(user=acme.olivia.user)
    answer = client.post(url_of(Member, "delete", olivia.pk), {"post": "yes"}, follow=True)
    assert "name another first" in messages_of(answer)
    answer = client.post(url_of(Member, "change", olivia.pk), {"role": 1}, follow=True)
    assert "name another first" in messages_of(answer)
    with door(Door.OPERATOR):
        assert Member.unscoped.get(pk=olivia.pk).role == Role.OWNER


def test_a_person_is_named_and_their_key_stays(personal: BucketRef, client: Client):
    owner = first_of(Owner)
    body = {"name": "Erin", "timezone": "", "key": "api:other"}
    assert client.post(url_of(Owner, "change", owner.pk), body).status_code == 302
    with door(Door.OPERATOR):
        changed = Owner.unscoped.get(pk=owner.pk)
    assert (changed.name, changed.key) == ("Erin", "api:erin")
    assert len(traces("owner.changed")) == 1


def test_an_account_is_made_and_deactivated_with_a_trace(client: Client):
    secret = "correct horse battery"
    body = {"username": "carol", "usable_password": "true", "password1": secret, "password2": secret}
    assert client.post(url_of(User, "add"), body).status_code == 302
    carol = User.objects.get(username="carol")
    assert carol.check_password(secret)
    url = url_of(User, "change", carol.pk)
    body = {"username": "carol", **counts_of(client, url)}
    assert client.post(url, body).status_code == 302
    carol.refresh_from_db()
    assert not carol.is_active
    assert [one.target for one in traces("user.created", "user.changed")] == [f"user:{carol.pk}"] * 2


# --- agents -----------------------------------------------------------------------------------------------


def test_an_agent_is_born_in_the_admin_too(acme: World, client: Client, root: User):
    body = {"workspace": acme.workspace.pk, "name": "Ada", "system_prompt": "Be brief."}
    assert client.post(url_of(Agent, "add"), body).status_code == 302
    made = first_of(Agent)
    with door(Door.OPERATOR):
        assert File.unscoped.filter(bucket__agent=made).count() == 4
    assert client.post(url_of(Agent, "change", made.pk), {"name": "Ada"}).status_code == 302
    with door(Door.OPERATOR):
        assert not Agent.unscoped.get(pk=made.pk).enabled
    url = f"{url_of(Agent, 'changelist')}{made.pk}/remove/"
    assert client.get(url).status_code == 200
    answer = client.post(url, {"_form_submitted": "True", "confirm": "Eve"}, follow=True)
    assert "confirm with its name" in messages_of(answer)
    answer = client.post(url, {"_form_submitted": "True", "confirm": "Ada"}, headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == url_of(Agent, "changelist")
    with door(Door.OPERATOR):
        assert not Agent.unscoped.filter(pk=made.pk).exists()
    assert [one.actor for one in traces("agent.deleted")] == [f"user:{root.pk}"]


# --- files ------------------------------------------------------------------------------------------------


def edited(file: File, **changes: object) -> dict[str, object]:
    body = {
        "content": file.content,
        "reason": "Corrected.",
        "base": file.head,
        "sort_order": file.sort_order,
        **({"enabled": "on"} if file.enabled else {}),
    }
    return {name: value for name, value in {**body, **changes}.items() if value is not None}


def file_of(bucket_id: int, name: str) -> File:
    with door(Door.OPERATOR):
        return File.unscoped.get(bucket_id=bucket_id, name=name)


def test_an_edit_is_a_revision_with_its_author_and_reason(personal: BucketRef, client: Client, root: User):
    file = file_of(personal.id, "PROFILE.md")
    body = edited(file, content="Likes water.\r\nAnd tea.\r\n")
    assert client.post(url_of(File, "change", file.pk), body).status_code == 302
    saved = file_of(personal.id, "PROFILE.md")
    assert (saved.content, saved.head) == ("Likes water.\nAnd tea.\n", file.head + 1)
    revision = first_of(Revision)
    assert isinstance(revision, Revision)
    assert (revision.author_kind, revision.actor, revision.reason) == (
        "person",
        f"user:{root.pk}",
        "Corrected.",
    )
    assert saved.held


def test_an_edit_without_a_reason_or_with_a_stale_base_is_told_and_keeps_what_was_typed(
    personal: BucketRef, client: Client
):
    file = file_of(personal.id, "PROFILE.md")
    url = url_of(File, "change", file.pk)
    assert client.post(url, edited(file, reason="")).status_code == 200
    answer = client.post(url, edited(file, content="Mine.\n", base=1))
    told = answer.content.decode()
    assert "changed meanwhile" in told
    assert "+Likes coffee." in told
    assert "Mine." in told
    assert file_of(personal.id, "PROFILE.md").head == file.head
    again = {**edited(file, content="Mine.\n"), "base": answer.context["adminform"].form["base"].value()}
    assert client.post(url, again).status_code == 302
    assert file_of(personal.id, "PROFILE.md").content == "Mine.\n"


def test_a_file_of_everyone_is_made_by_an_operator(acme: World, client: Client):
    body = {"bucket": GLOBAL_BUCKET_ID, "name": "HOUSE.md", "content": "Be kind.\n", "reason": "House rules."}
    assert client.post(url_of(File, "add"), body).status_code == 302
    assert file_of(GLOBAL_BUCKET_ID, "HOUSE.md").content == "Be kind.\n"
    assert "already exists" in client.post(url_of(File, "add"), body).content.decode()
    for name in ("../x.md", "x.txt", "/x.md"):
        assert client.post(url_of(File, "add"), {**body, "name": name}).status_code == 200


def test_the_prompts_order_and_switches_are_changed(acme: World, client: Client):
    file = file_of(acme.team.id, "MEMORY.md")
    url = url_of(File, "change", file.pk)
    assert client.post(url, edited(file, sort_order=0)).status_code == 302
    moved = file_of(acme.team.id, "MEMORY.md")
    assert (moved.sort_order, moved.head) == (0, file.head)
    assert file_of(acme.team.id, "AGENTS.md").sort_order == 1
    assert client.post(url, edited(moved, enabled=None)).status_code == 302
    assert not file_of(acme.team.id, "MEMORY.md").enabled


def test_a_file_that_is_written_and_moved_at_once_is_locked_with_the_others(acme: World, client: Client):
    """In the order that all keep to, before it is written: else two who do so wait for each other."""
    file = file_of(acme.team.id, "PROFILE.md")
    with CaptureQueriesContext(connection) as asked:
        sent = edited(file, content="# Ours\n", sort_order=0)
        assert client.post(url_of(File, "change", file.pk), sent).status_code == 302
    locks = [one["sql"] for one in asked if "FOR UPDATE" in one["sql"] and "workspaces_file" in one["sql"]]
    assert "COLLATE" in locks[0]
    assert all(name in locks[0] for name in ("AGENTS.md", "SOUL.md", "PROFILE.md", "MEMORY.md"))
    moved = file_of(acme.team.id, "PROFILE.md")
    assert (moved.content, moved.sort_order) == ("# Ours\n", 0)


def test_a_deleted_file_keeps_its_revisions_and_is_restored(personal: BucketRef, client: Client):
    file = file_of(personal.id, "PROFILE.md")
    confirm = client.get(url_of(File, "delete", file.pk))
    assert "its revisions stay" in confirm.content.decode()
    assert client.post(url_of(File, "delete", file.pk), {"post": "yes"}).status_code == 302
    assert file_of(personal.id, "PROFILE.md").deleted_at is not None
    with door(Door.OPERATOR):
        first = Revision.unscoped.get(file=file, number=1)
    url = f"{url_of(Revision, 'changelist')}{first.pk}/restore/"
    assert client.get(url).status_code == 200
    assert file_of(personal.id, "PROFILE.md").deleted_at is not None
    answer = client.post(url, {"_form_submitted": "True", "reason": "By mistake."})
    assert answer["Location"] == url_of(File, "change", file.pk)
    assert file_of(personal.id, "PROFILE.md").content == "Likes tea.\n"


def test_a_revision_shows_what_it_changed(personal: BucketRef, client: Client):
    page = client.get(url_of(Revision, "change", first_of(Revision).pk)).content.decode()
    assert "-Likes tea." in page
    assert "+Likes coffee." in page


@pytest.mark.parametrize("model", [File, Revision, Conversation, Message, Turn])
def test_who_reads_a_persons_own_is_written_down(
    everything: World, client: Client, root: User, model: type[Model]
):
    client.get(url_of(model, "change", first_of(model).pk))
    made = traces(f"{model._meta.model_name}.read")
    assert [one.actor for one in made] == [f"user:{root.pk}"]


def test_reading_shared_memory_leaves_no_such_trace(acme: World, client: Client):
    client.get(url_of(File, "change", file_of(acme.team.id, "SOUL.md").pk))
    assert traces("file.read") == []


def test_what_people_wrote_is_shown_as_text(everything: World, client: Client):
    page = client.get(url_of(Message, "change", first_of(Message).pk)).content.decode()
    assert "I like &lt;b&gt;tea&lt;/b&gt;." in page


# --- tokens -----------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_works_and_its_hash_never(acme: World, client: Client, root: User):
    body = {
        "workspace": acme.workspace.pk,
        "user": acme.bob.user.pk,
        "name": "for a robot",
        "grants": ["chat", "read"],
        "agents": [acme.agent_id],
        "namespace": "",
    }
    answer = client.post(url_of(PersonalAccessToken, "add"), body)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    secret = answer.context["secret"]
    assert secret in answer.content.decode()
    assert principal_of_token(secret, address="", now=timezone.now()).agent_ids == {acme.agent_id}
    made = first_of(PersonalAccessToken)
    assert isinstance(made, PersonalAccessToken)
    for url in (url_of(PersonalAccessToken, "changelist"), url_of(PersonalAccessToken, "change", made.pk)):
        page = client.get(url).content.decode()
        assert secret not in page
        assert made.sha256 not in page
        assert made.prefix in page
    assert [one.target for one in traces("token.issued") if one.actor == f"user:{root.pk}"] == [
        f"token:{made.pk}"
    ]


def test_a_token_for_a_stranger_is_refused(acme: World, umbra: World, client: Client):
    body = {
        "workspace": acme.workspace.pk,
        "user": umbra.mallory.user.pk,
        "name": "n",
        "grants": ["read"],
    }
    assert "is no member of" in client.post(url_of(PersonalAccessToken, "add"), body).content.decode()
    foreign = {**body, "user": acme.bob.user.pk, "agents": [umbra.agent_id]}
    answer = client.post(url_of(PersonalAccessToken, "add"), foreign, follow=True)
    assert f"no agent {umbra.agent_id}" in messages_of(answer)


def test_chosen_tokens_are_revoked(acme: World, client: Client):
    with door(Door.OPERATOR):
        token = PersonalAccessToken.unscoped.get(user=acme.bob.user)
    body = {"action": "revoke", "_selected_action": [token.pk]}
    assert client.post(url_of(PersonalAccessToken, "changelist"), body).status_code == 302
    assert acme.bob.client().get("/api/v1/agents").status_code == 401
    assert acme.alice.client().get("/api/v1/agents").status_code == 200


# --- settings ---------------------------------------------------------------------------------------------


def test_settings_are_shown_changed_and_reset_for_a_place(acme: World, client: Client, root: User):
    url = f"{reverse('admin:settings_in_force')}?workspace={acme.workspace.pk}&agent={acme.agent_id}"
    answer = client.post(url, {"key": KEY, "value": "11", "set": ""}, follow=True)
    assert f"{KEY} is 11 now" in messages_of(answer)
    row = next(row for row in answer.context["rows"] if row.in_force.setting.key == KEY)
    assert (row.in_force.value, row.in_force.origin, row.is_here) == (11, "agent", True)
    wrong = client.post(url, {"key": KEY, "value": "-1", "set": ""}, follow=True)
    assert "a whole number from 0 to 1440" in messages_of(wrong)
    answer = client.post(url, {"key": KEY, "value": "11", "reset": ""}, follow=True)
    row = next(row for row in answer.context["rows"] if row.in_force.setting.key == KEY)
    assert (row.in_force.value, row.in_force.origin, row.is_here) == (5, "default", False)
    assert [one.actor for one in traces("setting.changed", "setting.reset")] == [f"user:{root.pk}"] * 2


def test_a_setting_for_everyone_holds_everywhere(acme: World, client: Client):
    client.post(reverse("admin:settings_in_force"), {"key": KEY, "value": "12", "set": ""})
    body = acme.bob.client().get("/api/v1/settings?pageSize=200").json()
    row = next(row for row in body["results"] if row["key"] == KEY)
    assert (row["value"], row["origin"]) == (12, "global")


@pytest.mark.parametrize(
    ("query", "status"), [("workspace=999999", 404), ("workspace=x", 404), ("agent=9", 200)]
)
def test_a_place_that_is_not_there_is_no_error_of_ours(client: Client, query: str, status: int):
    assert client.get(f"{reverse('admin:settings_in_force')}?{query}").status_code == status


# --- work and trail ---------------------------------------------------------------------------------------


def test_a_parked_message_runs_again(everything: World, client: Client, topic: str):
    message = first_of(OutboxMessage)
    with door(Door.OPERATOR):
        OutboxMessage.unscoped.filter(pk=message.pk).update(parked_at=timezone.now(), attempts=9)
    listed = client.get(url_of(OutboxMessage, "changelist") + f"?topic={topic}&parked_at__isempty=0")
    assert [row.pk for row in listed.context["cl"].result_list] == [message.pk]
    body = {"action": "run_again", "_selected_action": [message.pk]}
    assert client.post(url_of(OutboxMessage, "changelist"), body).status_code == 302
    with door(Door.OPERATOR):
        again = OutboxMessage.unscoped.get(pk=message.pk)
    assert (again.parked_at, again.attempts) == (None, 0)
    assert len(traces("outbox.rerun")) == 1


def test_usage_is_summed_for_what_is_chosen(everything: World, umbra: World, client: Client):
    with tenant(umbra.team):
        ModelUsage.objects.create(
            workspace_id=umbra.workspace.pk,
            bucket_id=umbra.team.id,
            at=timezone.now(),
            purpose="reply",
            model="openai:tiny",
            input_tokens=100,
        )
    url = url_of(ModelUsage, "changelist")
    assert client.get(url).context["totals"]["sent"] == 107
    chosen = client.get(f"{url}?workspace__id__exact={umbra.workspace.pk}")
    assert chosen.context["totals"]["sent"] == 100


def test_the_trail_is_filtered_by_workspace_action_and_date(everything: World, umbra: World, client: Client):
    url = url_of(AuditEvent, "changelist")
    tomorrow = (timezone.now() + timedelta(days=1)).date().isoformat()
    rows = (
        client.get(f"{url}?workspace__id__exact={umbra.workspace.pk}&action__icontains=agent.created")
        .context["cl"]
        .result_list
    )
    assert [(row.workspace_id, row.action) for row in rows] == [(umbra.workspace.pk, "agent.created")]
    later = client.get(f"{url}?at_from_0={tomorrow}&at_from_1=00:00:00")
    assert len(later.context["cl"].result_list) == 0
    until = client.get(f"{url}?at_to_0={tomorrow}")
    assert len(until.context["cl"].result_list) > 0
    nonsense = client.get(f"{url}?at_to_0=soon")
    assert nonsense.status_code == 200


def test_log_ins_and_failed_ones_leave_a_trace_without_the_password(root: User):
    client = Client()
    url = reverse("admin:login")
    client.post(url, {"username": "root", "password": "wrong guess"})
    client.post(url, {"username": "root", "password": "a long password"})
    client.post(reverse("admin:logout"))
    made = traces("login.failed", "login.succeeded", "login.ended")
    assert [(one.action, one.actor, one.target, one.address) for one in made] == [
        ("login.failed", "anonymous", "username:root", "127.0.0.1"),
        ("login.succeeded", f"user:{root.pk}", "username:root", "127.0.0.1"),
        ("login.ended", f"user:{root.pk}", "username:root", "127.0.0.1"),
    ]
    assert "wrong guess" not in json.dumps([one.detail for one in made])


def test_bucket_rows_of_everyone_are_reachable_by_links(everything: World, client: Client):
    with door(Door.OPERATOR):
        bucket = Bucket.unscoped.get(owner__key="api:erin")
    page = client.get(f"{url_of(File, 'changelist')}?bucket__owner__id__exact={bucket.owner_id}")
    assert [row.name for row in page.context["cl"].result_list] == ["PROFILE.md"]


# --- one transaction a request ----------------------------------------------------------------------------


def _half_done() -> None:
    Heartbeat.objects.create(process="half@done:1", kind="worker", at=timezone.now())


def is_left() -> bool:
    return Heartbeat.objects.filter(process="half@done:1").exists()


@pytest.mark.parametrize(("error", "status"), [(ZeroDivisionError(), 500), (Http404(), 404)])
def test_an_operators_request_that_breaks_leaves_nothing_half_done(
    client: Client, monkeypatch, error: Exception, status: int
):
    def broken(self, request):
        _half_done()
        raise error

    monkeypatch.setattr(type(admin.site._registry[AuditEvent]), "get_changelist_instance", broken)
    client.raise_request_exception = False
    assert client.get(url_of(AuditEvent, "changelist")).status_code == status
    assert not is_left()


def test_a_page_that_cannot_be_shown_leaves_nothing_half_done(client: Client, monkeypatch):
    page = type(admin.site._registry[AuditEvent])
    real = page.get_changelist_instance

    def listed(self, request):
        _half_done()
        return real(self, request)

    monkeypatch.setattr(page, "get_changelist_instance", listed)
    assert client.get(url_of(AuditEvent, "changelist")).status_code == 200
    assert is_left()
    Heartbeat.objects.all().delete()
    monkeypatch.setattr(page, "change_list_template", "no/such.html")
    client.raise_request_exception = False
    assert client.get(url_of(AuditEvent, "changelist")).status_code == 500
    assert not is_left()


@pytest.mark.parametrize(("status", "is_kept"), [(200, True), (422, True), (500, False), (503, False)])
def test_an_answer_that_says_it_failed_commits_nothing(root: User, rf, status: int, is_kept: bool):
    def answer(_request) -> HttpResponse:
        _half_done()
        return HttpResponse(status=status)

    request = rf.post("/admin/")
    request.user = root
    assert OperatorMiddleware(answer)(request).status_code == status
    assert is_left() == is_kept
