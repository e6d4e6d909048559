"""Routes of those who administer a workspace, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from workspaces.api import activity, agents, people, plugins, schedules, settings, tenants, tokens

urlpatterns = [
    path("workspaces", tenants.Workspaces.as_view(), name="workspaces"),
    path("agents", agents.Agents.as_view(), name="agents"),
    path("agents/<rowid:agent_id>", agents.OneAgent.as_view(), name="agent"),
    path("agents/<rowid:agent_id>/schedules", schedules.Schedules.as_view(), name="schedules"),
    path("agents/<rowid:agent_id>/schedules/<str:job>", schedules.OneSchedule.as_view(), name="schedule"),
    path("members", tenants.Members.as_view(), name="members"),
    path("members/<rowid:user_id>", tenants.OneMember.as_view(), name="member"),
    path("owners", people.Owners.as_view(), name="owners"),
    path("owners/<rowid:owner_id>", people.OneOwner.as_view(), name="owner"),
    path("tokens", tokens.Tokens.as_view(), name="tokens"),
    path("tokens/<rowid:token_id>", tokens.OneToken.as_view(), name="token"),
    path("plugins", plugins.Plugins.as_view(), name="plugins"),
    path("plugins/<str:kind>", plugins.OnePlugin.as_view(), name="plugin"),
    path("plugins/<str:kind>/check", plugins.PluginCheck.as_view(), name="plugin_check"),
    path("settings", settings.Settings.as_view(), name="settings"),
    path("settings/<str:key>", settings.OneSetting.as_view(), name="setting"),
    path("usage", activity.Usage.as_view(), name="usage"),
    path("audit", activity.Audit.as_view(), name="audit"),
]
