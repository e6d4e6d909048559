"""Plugins: kinds that join at start, and how a workspace has set each of them up.

A kind's class says what its form asks (`Config`), makes the thing itself of a filled form (`make`), and finds
out whether it can be reached (`check`). Secrets are sealed, never shown again, and kept when left blank.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, cast, get_args

from django.utils import timezone
from pydantic import BaseModel, SecretStr, ValidationError

from workspaces.crypto import seal, unseal
from workspaces.errors import BadInput, Conflict, NotFound, Unprocessable
from workspaces.logic.texts import storable
from workspaces.models import Plugin
from workspaces.services.audit import record_audit
from workspaces.services.calls import BusyError, DeadlineError, call_within
from workspaces.tenancy import release_connection, workspace

CHECK_TIMEOUT_S: Final = 20.0
"""Seconds that a check of a connection may take."""
_CHECKS: Final = threading.BoundedSemaphore(8)
MAX_TOLD: Final = 500
"""Characters that are kept of what a check found, or of why it failed."""
MAX_CONFIG: Final = 20_000
_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,23}")


class PluginKind(Protocol):
    """What the class of a plugin states. `Config` has flat fields, in the names that users see."""

    kind: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    Config: ClassVar[type[BaseModel]]

    @classmethod
    def make(cls, config: Any) -> Any:
        """The thing itself. Reaches for nothing: the first question may come much later, or never."""

    @classmethod
    def check(cls, config: Any) -> str:
        """Whether it can be reached: what was found, in a sentence; raises what went wrong."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who sets a plugin up, for the audit trail."""

    actor: str
    address: str = ""


_KINDS: dict[str, type[PluginKind]] = {}


def join_plugin(found: object) -> None:
    """Adds a kind; called at start. Raises `ValueError` saying what its class lacks, or that the name is taken."""
    faults = faults_of_kind(found)
    if faults:
        raise ValueError("; ".join(faults))
    kind = cast("type[PluginKind]", found)
    if _KINDS.get(kind.kind, kind) is not kind:
        raise ValueError(f"the kind {kind.kind!r} is taken by {_KINDS[kind.kind].__qualname__}")
    _KINDS[kind.kind] = kind


def leave_plugin(kind: str) -> None:
    """Takes a kind away; no error when it is not there."""
    _KINDS.pop(kind, None)


def plugin_kinds() -> list[type[PluginKind]]:
    """All kinds, by name."""
    return [_KINDS[name] for name in sorted(_KINDS)]


def plugin_kind(kind: str) -> type[PluginKind]:
    """The kind of that name; raises `NotFound`."""
    found = _KINDS.get(kind)
    if found is None:
        raise NotFound("plugin_not_found", f"There is no plugin {kind[:64]!r}; GET /plugins lists them.")
    return found


def faults_of_kind(found: object) -> list[str]:
    """What a class lacks to be a plugin's; empty for a good one."""
    faults = [
        f"`{name}` must be a text of its class"
        for name in ("kind", "title", "about")
        if not isinstance(getattr(found, name, None), str) or not getattr(found, name).strip()
    ]
    if not faults and not _KIND.fullmatch(cast("PluginKind", found).kind):
        faults.append("`kind` must be 1 to 24 small letters, digits and underscores")
    faults += [f"`{name}` must be a class method" for name in ("make", "check") if not _calls(found, name)]
    config = getattr(found, "Config", None)
    if not isinstance(config, type) or not issubclass(config, BaseModel):
        return [*faults, "`Config` must be a pydantic model"]
    nested = [
        name
        for name, field in config.model_fields.items()
        if any(isinstance(one, type) and issubclass(one, BaseModel) for one in _types_of(field.annotation))
    ]
    return faults + [f"`Config.{name}` must be a plain value, no model of its own" for name in nested]


def secret_names(kind: type[PluginKind]) -> list[str]:
    """The fields of a kind's form that are never shown again."""
    return [
        name
        for name, field in fields_of(kind).items()
        if SecretStr in _types_of(kind.Config.model_fields[field].annotation)
    ]


def fields_of(kind: type[PluginKind]) -> dict[str, str]:
    """The fields of a kind's form in their order: the name that users see → the model's own."""
    return {field.alias or name: name for name, field in kind.Config.model_fields.items()}


# --- reading ----------------------------------------------------------------------------------------------


def plugins_of(workspace_id: int) -> dict[str, Plugin]:
    """What a workspace has set up, by kind. Inside its transaction; one query."""
    return {row.kind: row for row in Plugin.objects.of_workspace(workspace_id).order_by("kind")}


def enabled_plugins(workspace_id: int) -> list[Plugin]:
    """The plugins in force in a workspace, by kind. Inside its transaction; one query."""
    return list(Plugin.objects.of_workspace(workspace_id).filter(enabled=True).order_by("kind"))


def config_of(row: Plugin) -> BaseModel:
    """The filled form of a plugin, secrets included. Raises `Unavailable` when they were sealed with another key."""
    return _parsed(plugin_kind(row.kind), row.config | _secrets_of(row))


def secrets_set(row: Plugin) -> list[str]:
    """Which secrets a plugin has. Raises as `config_of`."""
    return sorted(_secrets_of(row))


def without_secrets(row: Plugin, text: str) -> str:
    """A text as it may be shown: the plugin's secrets are taken out, what is left is bounded."""
    return _masked(text, _secrets_of(row))


# --- writing ----------------------------------------------------------------------------------------------


def save_plugin(
    workspace_id: int, kind_name: str, *, config: Mapping[str, Any], enabled: bool, by: Actor
) -> Plugin:
    """Sets a plugin up; in force on the next turn, everywhere. Outside any transaction.

    A secret that is absent or blank is kept, None removes it. To be enabled, the plugin is checked first: when
    that fails, nothing is changed and `Unprocessable` "plugin_check_failed" tells why. Raises `BadInput`
    "bad_config" naming the fields, `Conflict` when somebody else saved meanwhile.
    """
    kind = plugin_kind(kind_name)
    before = _row(workspace_id, kind_name)
    filled, parsed = _merged(kind, before, config)
    state = _State(filled.plain, filled.secrets, Plugin.Status.UNCHECKED)
    if enabled:
        state = _checked(kind, parsed, state)
        if state.status is Plugin.Status.FAILED:
            with workspace(workspace_id):
                _audit(workspace_id, kind_name, by, "plugin.check_failed", reason=state.error)
            raise Unprocessable("plugin_check_failed", f"{kind.title} is not enabled: {state.error}")
    return _store(workspace_id, kind_name, before=before, state=state, enabled=enabled, by=by)


def check_plugin(workspace_id: int, kind_name: str, *, by: Actor) -> Plugin:
    """Checks a plugin as it is set up, and keeps what was found, or why it failed. Outside any transaction.

    Raises `NotFound` "plugin_not_set_up". A failure switches nothing off.
    """
    kind = plugin_kind(kind_name)
    row = _row(workspace_id, kind_name)
    if row is None:
        raise NotFound("plugin_not_set_up", f"The plugin {kind_name!r} is not set up in this workspace.")
    secrets = _secrets_of(row)
    state = _checked(kind, config_of(row), _State(row.config, secrets, Plugin.Status.UNCHECKED))
    with workspace(workspace_id):
        # Not `updated_at`: the configuration is the same.
        Plugin.objects.of_workspace(workspace_id).filter(pk=row.pk, updated_at=row.updated_at).update(
            status=state.status, found=state.found, last_error=state.error, checked_at=state.checked_at
        )
        _audit(workspace_id, kind_name, by, "plugin.checked", status=state.status, reason=state.error)
        found: Plugin = Plugin.objects.of_workspace(workspace_id).get(pk=row.pk)
    return found


@dataclass(frozen=True, slots=True)
class _Filled:
    plain: dict[str, Any]
    secrets: dict[str, str]


@dataclass(frozen=True, slots=True)
class _State:
    plain: dict[str, Any]
    secrets: dict[str, str]
    status: Plugin.Status
    found: str = ""
    error: str = ""
    checked_at: datetime | None = None


def _row(workspace_id: int, kind: str) -> Plugin | None:
    with workspace(workspace_id):
        return plugins_of(workspace_id).get(kind)


def _merged(
    kind: type[PluginKind], before: Plugin | None, given: Mapping[str, Any]
) -> tuple[_Filled, BaseModel]:
    names = secret_names(kind)
    if unknown := sorted(set(given) - set(fields_of(kind))):
        raise _bad({unknown[0]: f"There is no such field; known are {', '.join(fields_of(kind))}."})
    blank = [name for name in names if given.get(name, "") == ""]
    kept = _secrets_of(before) if before is not None and blank else {}
    secrets = {name: kept[name] for name in blank if name in kept}
    secrets |= {name: given[name] for name in names if given.get(name) not in ("", None)}
    plain = {name: value for name, value in given.items() if name not in names}
    parsed = _parsed(kind, plain | secrets)
    stored = parsed.model_dump(mode="json", by_alias=True, exclude={fields_of(kind)[name] for name in names})
    try:
        text = json.dumps([stored, secrets], allow_nan=False, ensure_ascii=False)
    except ValueError as bad:
        raise _bad({"config": "A number is not finite."}) from bad
    if "\\u0000" in text or storable(text) != text or len(text) > MAX_CONFIG:
        raise _bad({"config": f"At most {MAX_CONFIG} plain characters are allowed in all."})
    return _Filled(stored, secrets), parsed


def _parsed(kind: type[PluginKind], values: Mapping[str, Any]) -> BaseModel:
    try:
        return kind.Config.model_validate(dict(values))
    except ValidationError as bad:
        secrets = {name: values[name] for name in secret_names(kind) if isinstance(values.get(name), str)}
        told = bad.errors(include_url=False, include_input=False, include_context=False)
        raise _bad(
            {".".join(map(str, one["loc"])) or "config": _masked(one["msg"], secrets) for one in told}
        ) from None


def _bad(fields: Mapping[str, str]) -> BadInput:
    errors = [{"field": name, "message": message, "code": "bad_config"} for name, message in fields.items()]
    return BadInput(
        "bad_config", "; ".join(f"{one['field']}: {one['message']}" for one in errors), errors=errors
    )


def _checked(kind: type[PluginKind], parsed: BaseModel, state: _State) -> _State:
    """The state after a check. What a plugin says, of its success too, may quote its secrets: they are taken out."""
    release_connection()
    try:
        found = call_within(
            CHECK_TIMEOUT_S, lambda: kind.check(parsed), name=f"check-{kind.kind}", slots=_CHECKS
        )
    except (DeadlineError, BusyError) as error:
        return _failed(state, str(error))
    except Exception as error:  # noqa: BLE001 - a plugin's own check: it is told, and kept with the plugin
        return _failed(state, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    told = _masked(str(found), state.secrets)
    return replace(state, status=Plugin.Status.OK, found=told, error="", checked_at=timezone.now())


def _failed(state: _State, reason: str) -> _State:
    told = _masked(reason, state.secrets)
    return replace(state, status=Plugin.Status.FAILED, found="", error=told, checked_at=timezone.now())


def _store(
    workspace_id: int, kind: str, *, before: Plugin | None, state: _State, enabled: bool, by: Actor
) -> Plugin:
    now = timezone.now()
    with workspace(workspace_id):
        rows = Plugin.objects.of_workspace(workspace_id).select_for_update()
        row: Plugin | None = rows.filter(kind=kind).first()
        if (row and row.updated_at) != (before and before.updated_at):
            raise Conflict("plugin_changed", "Somebody else set this plugin up meanwhile; look at it again.")
        if row is None:
            row = Plugin(workspace_id=workspace_id, kind=kind, created_at=now)
        changed = sorted(
            name
            for name in {*row.config, *state.plain}
            if row.config.get(name, _NOTHING) != state.plain.get(name, _NOTHING)
        )
        row.config, row.enabled, row.updated_at = state.plain, enabled, now
        row.secrets = seal(state.secrets) if state.secrets else ""
        row.status, row.found, row.last_error = state.status, state.found, state.error
        row.checked_at = state.checked_at
        row.save()
        _audit(
            workspace_id,
            kind,
            by,
            "plugin.enabled" if enabled else "plugin.saved",
            fields=changed,
            secrets=sorted(state.secrets),
        )
    return row


_NOTHING: Final = object()


def _audit(workspace_id: int, kind: str, by: Actor, action: str, **detail: Any) -> None:
    """Names of fields, never values: an address may hold a password."""
    record_audit(
        workspace_id,
        actor=by.actor,
        action=action,
        target=f"plugin:{kind}",
        address=by.address,
        detail={name: value for name, value in detail.items() if value != ""},
    )


def _secrets_of(row: Plugin) -> dict[str, str]:
    return cast("dict[str, str]", unseal(row.secrets)) if row.secrets else {}


def _masked(text: str, secrets: Mapping[str, str]) -> str:
    for secret in sorted(secrets.values(), key=len, reverse=True):
        text = text.replace(secret, "•••")
    return storable(" ".join(text[: 4 * MAX_TOLD].split()))[:MAX_TOLD]


def _types_of(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *get_args(annotation))


def _calls(found: object, name: str) -> bool:
    method = getattr(found, name, None)
    return callable(method) and (not isinstance(found, type) or hasattr(method, "__self__"))
