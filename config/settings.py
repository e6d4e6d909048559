"""Django's settings, made from the environment (see `config.env`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import structlog
from psycopg.conninfo import conninfo_to_dict

from config import broker
from config.embedded import urls_of
from config.env import ensure_secrets, read_env
from workspaces.logic.registry import ENV_NAMES, check_environment

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = read_env(os.environ, setting_names=frozenset(ENV_NAMES))
check_environment(os.environ)
DATA_DIR = ENV.data_dir
PROCESS = os.environ.get("MATE_PROCESS", "command")

_secrets = ensure_secrets(DATA_DIR) if not (ENV.secret_key and ENV.encryption_key) else None
SECRET_KEY = ENV.secret_key or (_secrets.secret_key if _secrets else "")
ENCRYPTION_KEY = ENV.encryption_key or (_secrets.encryption_key if _secrets else "")
DEBUG = ENV.debug
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_celery_beat",
    "rest_framework",
    "drf_spectacular",
    "recall",
    "workspaces",
    "facts",
    "memory",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "workspaces.middleware.OperatorMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database -------------------------------------------------------------------------------------------
# Two roles: `default` is the application's (owns nothing, bound by row-level security), `owner` migrates.

_urls = urls_of(DATA_DIR) if ENV.database_url is None else None
_app_url = _urls.app if _urls else ENV.database_url
_owner_url = _urls.owner if _urls else (ENV.database_owner_url or ENV.database_url)

# A conversation of one request is short; a worker's child holds one connection for itself.
POOL_SIZE = 8
_SERVER_OPTIONS = (
    "-c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000"
    # What the embedded server is started with, for any other: filtered answers are filled up to their number.
    " -c hnsw.iterative_scan=strict_order -c hnsw.ef_search=100"
)


def _database(url: str, *, options: str, pool: dict[str, Any] | None) -> dict[str, Any]:
    parts = conninfo_to_dict(url)
    named = {
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
    }
    return named | {
        "ENGINE": "config.postgres",
        # A kept connection is checked before it is used again; a pooled one by `config.postgres`.
        "CONN_HEALTH_CHECKS": pool is None,
        "CONN_MAX_AGE": 0 if pool else 60,
        "OPTIONS": parts | {"options": options, "connect_timeout": 5} | ({"pool": pool} if pool else {}),
    }


# Where the one URL given is the owner's, the application still acts as its own role.
_act_as = " -c role=mate_app" if _urls is None and ENV.database_owner_url is None else ""
DATABASES = {
    "default": _database(
        str(_app_url),
        options=_SERVER_OPTIONS + _act_as,
        pool={"min_size": 1, "max_size": POOL_SIZE, "timeout": 10} if PROCESS == "web" else None,
    ),
    "owner": _database(str(_owner_url), options="", pool=None),
}
DATABASE_ROUTERS = ["config.database.OwnerMigrates"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- celery ---------------------------------------------------------------------------------------------
BROKER_DIR = DATA_DIR / "broker"
CELERY_BROKER_URL = ENV.celery_broker_url or broker.URL

# --- web ------------------------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "中文")]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
WHITENOISE_USE_FINDERS = True
LOGIN_URL = "/admin/login/"

MAX_BODY_BYTES = 8 * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

REST_FRAMEWORK = {
    # `workspaces.api.base.Endpoint` names its own; what is left (the schema) needs none.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api.problem_response",
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Mate Memory",
    "DESCRIPTION": "The memory of a team's AI agents.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_NAME_OVERRIDES": {
        "BucketEnum": ["shared", "personal"],
        "ConsolidatedBucket": ["personal", "shared", "all"],
        "RunStatus": ["queued", "running", "stored", "nothing", "skipped", "failed"],
        "ProviderStatus": ["answered", "skipped", "failed", "late"],
        "MessageRole": ["user", "assistant", "tool", "system"],
        "MemberRole": ["viewer", "member", "admin", "owner"],
    },
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
}

# --- models ---------------------------------------------------------------------------------------------
MATE_MODEL = ENV.model or ""
OPENAI_BASE_URL = ENV.openai_base_url
MATE_EMBEDDER = ENV.embedder
MATE_VECTOR_STORE = ENV.vector_store
OPENSEARCH_USERNAME = ENV.opensearch_username
OPENSEARCH_PASSWORD = ENV.opensearch_password
MATE_PROVIDERS = ENV.providers

# --- logs -----------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Plain: a traceback that shows local variables would put people's words into the log.
                structlog.dev.ConsoleRenderer(
                    colors=False, exception_formatter=structlog.dev.plain_traceback
                ),
            ],
            "foreign_pre_chain": [
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
        },
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": ENV.log_level},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "httpx": {"level": "WARNING"},
        # Each request at INFO, each failure with its traceback: what fails is told where it is asked.
        "opensearch": {"level": "CRITICAL"},
        "botocore": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)

UNFOLD = {
    "SITE_TITLE": "Mate Memory",
    "SITE_HEADER": "Mate Memory",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {"show_search": True, "navigation": "workspaces.admin.sidebar.navigation"},
}
