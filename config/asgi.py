"""The web process: what uvicorn serves."""

import gc
import importlib
import os
import warnings

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django.setup(set_prefix=False)

# After the set-up; the Celery app, that nudges are sent by, is made here since nothing else here imports it.
application = importlib.import_module("config.serving").Handler()
importlib.import_module("config.celery")

# WhiteNoise reads static files synchronously; they are few and small, and browsers keep them.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

# What is loaded by now stays: looking through it again and again held requests up for a tenth of a second.
gc.collect()
gc.freeze()
