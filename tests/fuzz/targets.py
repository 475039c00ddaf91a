"""All targets by name: what each tries, and sound inputs to begin from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.fuzz import of_files, of_job, of_keys, of_machine, of_recordings, of_relay, of_settings, of_texts

Run = Callable[[bytes, bool], None]
"""(input, whether to look at all that can be made of it). Raises where something is wrong."""


@dataclass(frozen=True)
class Target:
    """One way in."""

    run: Run
    what: str
    seeds: Callable[[], list[bytes]] = list
    quick: int = 20
    """So many made-up inputs it is tried with in the tests."""


def _documents(name: str) -> list[bytes]:
    return [one for one in of_settings.documents()[name] if len(one) <= 20_000]


TARGETS: dict[str, Target] = {
    "stream": Target(of_job.stream, "bytes from a job's socket", of_job.stream_seeds),
    "bodies": Target(of_job.bodies, "JSON from a job's socket", of_job.bodies_seeds),
    "messages": Target(of_job.messages, "messages of a hook with odd values"),
    "commands": Target(of_job.commands, "bytes that a hook hears", of_job.commands_seeds),
    "ordered": Target(of_job.ordered, "commands that a hook hears, with odd values"),
    "any": Target(of_files.of_file, "a file of any kind", of_files.any_seeds),
    "log": Target(of_files.log, "TORCH_TRACE logs", of_files.log_seeds),
    "records": Target(of_files.records, "TORCH_TRACE records with odd values"),
    "kineto": Target(of_files.kineto, "Kineto traces", of_files.kineto_seeds),
    "events": Target(of_files.events, "Kineto events with odd values"),
    "ncu": Target(of_files.ncu, "tables of Nsight Compute", of_files.ncu_seeds),
    "cells": Target(of_files.cells, "such tables with odd cells"),
    "blocks": Target(of_recordings.blocks, "blocks of recordings", of_recordings.blocks_seeds),
    "folded": Target(of_recordings.folded, "events of recordings with odd values"),
    "compared": Target(of_recordings.compared, "two such recordings, compared", quick=10),
    "exported": Target(of_recordings.exported, "such recordings, exported"),
    "played": Target(of_recordings.played, "such recordings, gone through", quick=8),
    "typed": Target(of_recordings.typed, "places in a recording that are typed", of_recordings.typed_seeds),
    "heard": Target(of_relay.heard, "bytes from a far end", of_relay.heard_seeds),
    "words": Target(of_relay.words, "words of a far end with odd values"),
    "asked": Target(of_relay.asked, "bytes that a far end hears", of_relay.asked_seeds),
    "requests": Target(of_relay.requests, "requests to a far end with odd values"),
    "login": Target(of_relay.login, "what a shell says before a far end runs", of_relay.login_seeds),
    "ceilings": Target(of_settings.reader("ceilings"), "files of ceilings", partial(_documents, "ceilings")),
    "machines": Target(of_settings.reader("machines"), "files of machines", partial(_documents, "machines")),
    "calibration": Target(of_settings.reader("calibration"), "calibrations", partial(_documents, "calibration")),
    "themes": Target(of_settings.reader("themes"), "themes", partial(_documents, "themes")),
    "walk": Target(of_settings.reader("walk"), "guided walks", partial(_documents, "walk")),
    "accepted": Target(of_settings.reader("accepted"), "accepted boundaries, also written", partial(_documents, "accepted")),
    "config": Target(of_settings.reader("config"), "settings", partial(_documents, "config")),
    "values": Target(of_settings.values, "all of these seven with odd values", quick=60),
    "environment": Target(of_settings.environment, "settings in the environment"),
    "proc": Target(of_machine.proc, "what /proc tells of a process"),
    "driver": Target(of_machine.driver, "what NVML answers"),
    "places": Target(of_machine.places, "where a job says that its files are"),
    "texts": Target(of_texts.texts, "texts, laid out", quick=60),
    "keys": Target(of_keys.keys, "keys on the screens of odd jobs", quick=1),
}
