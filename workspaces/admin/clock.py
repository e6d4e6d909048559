"""The clock's system entries. Schedules of agents are rows of their own."""

from __future__ import annotations

from django.contrib import admin
from django_celery_beat.admin import PeriodicTaskForm, TaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from workspaces.admin.base import AuditedAdmin

for _model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(_model)


class _TaskWidget(UnfoldAdminSelectWidget, TaskSelectWidget):  # type: ignore[misc] # neither is typed
    """A choice among the tasks that there are."""


class TaskForm(PeriodicTaskForm):  # type: ignore[misc] # not typed
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = _TaskWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(AuditedAdmin):
    section = "People and clock"
    icon = "schedule"
    may_add = may_change = may_delete = True
    form = TaskForm
    list_display = ("name", "task", "enabled", "interval", "crontab", "last_run_at")
    list_select_related = ("interval", "crontab")
    search_fields = ("name", "task")
    ordering = ("name",)
    fields = ("name", "regtask", "task", "enabled", "interval", "crontab", "args", "kwargs", "description")


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(AuditedAdmin):
    may_add = may_change = True
    list_display = ("__str__", "every", "period")
    ordering = ("period", "every")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(AuditedAdmin):
    may_add = may_change = True
    list_display = ("__str__", "human_readable")
    ordering = ("id",)
