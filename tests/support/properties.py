"""Settings of the tests that try many generated inputs."""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

REPRODUCIBLE: Final = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
"""The same inputs each time, so that a failure can be reproduced, and no limit of time."""
