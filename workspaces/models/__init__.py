"""Tables of the workspaces app. Invariants live here and in Postgres."""

from workspaces.models.agents import Agent, Owner
from workspaces.models.audit import AuditEvent, IdempotencyKey
from workspaces.models.buckets import GLOBAL_BUCKET_ID, Bucket
from workspaces.models.files import File, Revision
from workspaces.models.jobs import Change, Run, Schedule
from workspaces.models.outbox import Heartbeat, Lane, OutboxMessage
from workspaces.models.plugins import Plugin
from workspaces.models.settings import SettingOverride
from workspaces.models.tenants import GLOBAL_WORKSPACE_ID, Member, Workspace
from workspaces.models.tokens import PersonalAccessToken
from workspaces.models.usage import ModelUsage

__all__ = [
    "GLOBAL_BUCKET_ID",
    "GLOBAL_WORKSPACE_ID",
    "Agent",
    "AuditEvent",
    "Bucket",
    "Change",
    "File",
    "Heartbeat",
    "IdempotencyKey",
    "Lane",
    "Member",
    "ModelUsage",
    "OutboxMessage",
    "Owner",
    "PersonalAccessToken",
    "Plugin",
    "Revision",
    "Run",
    "Schedule",
    "SettingOverride",
    "Workspace",
]
