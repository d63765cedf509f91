"""A start that fails when the environment says so."""

import os

from better_compute import ModuleContext


def start(ctx: ModuleContext) -> None:
    match os.environ.get("PLANT_START"):
        case "raises":
            raise ValueError("password=hunter2")
        case "misses a table":
            ctx.sql.query("SELECT FROM plg_plant_absent")
