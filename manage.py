#!/usr/bin/env python
"""Django's command line for the example project."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    from better_compute.devtools import running

    # Beside `make demo`, every command speaks to the database that it started.
    running.adopt(sys.argv[1:2])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
