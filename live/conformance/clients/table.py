"""The clients of which something is known, and all that is known of them."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_verifier.live.conformance.clients import aiokafka, every, java, kafka_python, librdkafka
from rebalance_verifier.live.conformance.clients.traits import (
    ClientTraits,
    Deviation,
    Diagnosis,
    FindingContext,
)

CLIENTS: tuple[ClientTraits, ...] = (
    librdkafka.TRAITS,
    kafka_python.TRAITS,
    aiokafka.TRAITS,
    java.TRAITS,
)

BY_RECORDER: Mapping[str, ClientTraits] = {client.recorder: client for client in CLIENTS}
"""By the name in ``--clients``."""

BY_REPORT: Mapping[str, ClientTraits] = {client.reports: client for client in CLIENTS}
"""By the first word of what a recorded consumer says that it is."""

DEVIATIONS: tuple[Deviation, ...] = (
    *every.DEVIATIONS,
    *(deviation for client in CLIENTS for deviation in client.deviations),
)

BY_ID: Mapping[str, Deviation] = {deviation.id: deviation for deviation in DEVIATIONS}

DIAGNOSES: tuple[Diagnosis, ...] = tuple(
    {one.id: one for client in CLIENTS for one in client.diagnoses}.values()
)
"""Reviewed causes of what breaks a check of `rebalance record`."""


def client_of(profile: str) -> ClientTraits:
    """Return whose traits a release profile has: ``librdkafka-1.6`` librdkafka's; one without any where
    nobody's."""
    return next(
        (one for one in CLIENTS if profile == one.name or profile.startswith(f"{one.name}-")),
        ClientTraits(name=profile),
    )


def diagnosis(seen: FindingContext) -> Diagnosis | None:
    """Return the reviewed cause of a finding; without one it is a question for people."""
    return next((one for one in BY_RECORDER[seen.client].diagnoses if one.explains(seen)), None)
