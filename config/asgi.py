"""The web process: what uvicorn serves."""

import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()

# WhiteNoise reads static files synchronously; they are few and small, and browsers keep them.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
