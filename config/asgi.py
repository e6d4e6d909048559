"""The web process: what uvicorn serves."""

import importlib
import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()

# The Celery app that nudges are sent by: made here, since nothing else of the web process imports it.
importlib.import_module("config.celery")

# WhiteNoise reads static files synchronously; they are few and small, and browsers keep them.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
