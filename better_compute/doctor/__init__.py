"""What is wrong with this installation, as findings that an operator can act on.

``compute.self_check()``, the method ``system.selfCheck`` and ``manage.py doctor`` give the same answer.
"""

from __future__ import annotations

from better_compute.doctor.examination import report

__all__ = ["report"]
