"""The test host with the plant, for worker processes; how fast they beat comes from the environment."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import COMPUTE, DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.engine.plant"]
DATABASES["default"]["CONN_MAX_AGE"] = int(os.environ.get("PLANT_CONN_MAX_AGE", "0"))
COMPUTE = {
    **COMPUTE,
    "WORKER": {
        "TTL_MS": int(os.environ.get("PLANT_TTL_MS", "3000")),
        "TICK_MS": int(os.environ.get("PLANT_TICK_MS", "500")),
        "HUNG_MS": int(os.environ.get("PLANT_HUNG_MS", "60000")),
        "RESYNC_MS": int(os.environ.get("PLANT_RESYNC_MS", "300000")),
        "POLL_MS": int(os.environ.get("PLANT_POLL_MS", "1000")),
        "POOLED": os.environ.get("PLANT_POOLED") == "1",
        "GRACE_MS": int(os.environ.get("PLANT_GRACE_MS", "5000")),
    },
    "OBSERVE": {"PORT": int(os.environ.get("PLANT_OBSERVE_PORT", "0")), "TOKEN": "t" * 32},
}
if os.environ.get("PLANT_POOLED") == "1":
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
if "PLANT_VISIBILITY_S" in os.environ:
    CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": int(os.environ["PLANT_VISIBILITY_S"])}
