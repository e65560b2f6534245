"""Commands of operators: the state of a cluster, and copies of sessions from files to JetStream and back."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import anyio.to_thread

from jumpseat.cluster.cluster import Cluster
from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.names import Names
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.replicas.handshake import decode_versions
from jumpseat.cluster.sessions.documents import APPROVALS, SETTINGS
from jumpseat.errors import JumpseatError
from jumpseat.store.session.sessions import SessionStore
from jumpseat.store.user.location_approvals import FILE as APPROVALS_FILE
from jumpseat.store.user.location_approvals import with_location_keys
from jumpseat.store.user.private_file import PrivateFile
from jumpseat.store.user.settings import FILE as SETTINGS_FILE
from jumpseat.store.user.settings import SettingsFile, without_unknown

Copied: TypeAlias = tuple[str, Literal["copied", "exists", "open", "failed"], str]
"""A session or document, what was done with it, and why it failed."""


async def cluster_status(settings: ClusterSettings) -> dict[str, Any]:
    """Return the replicas, the numbers of sessions and what is stored, as a JSON object.

    Raises:
        StoreError: NATS cannot be reached.
        ConfigError: NATS does not accept the credentials.
    """
    async with jetstream.connect(settings, "jumpseat cluster status") as stream:
        names: Names = stream.names
        beats = (await stream.values(names.replicas)).values()
        replicas = [beat for beat in beats if not beat.get("left") and isinstance(beat.get("id"), str)]
        for replica in replicas:
            replica["beatAgeS"] = round(max(0.0, time.time() - replica.pop("timeS", time.time())), 1)
            versions = decode_versions(replica.get("relay"))
            replica["relay"] = versions.encode()
            replica["incompatible"] = sorted(
                other["id"] for other in replicas if not versions.fits(decode_versions(other.get("relay")))
            )
        sessions, owners = await stream.values(names.index), await stream.values(names.owners)
        return {
            "name": names.cluster,
            "replicas": sorted(replicas, key=lambda replica: (str(replica.get("host")), replica["id"])),
            "sessions": len(sessions),
            "open": len(owners),
            "stores": [await stream.describe(name) for name in names.streams],
        }


@asynccontextmanager
async def _member(settings: ClusterSettings, home: Path) -> AsyncGenerator[Cluster]:
    """Join a cluster as a replica that takes no sessions of clients."""
    async with anyio.create_task_group() as tasks, jetstream.connect(settings, "jumpseat store copy") as stream:
        cluster = Cluster(stream, settings, home, tasks)
        cluster.membership.draining = True
        await cluster.start()
        try:
            yield cluster
        finally:
            with anyio.CancelScope(shield=True):
                await cluster.close()
            tasks.cancel_scope.cancel()


async def copy_to_cluster(settings: ClusterSettings, home: Path, only: Collection[str]) -> AsyncIterator[Copied]:
    """Copy the sessions in the files of ``home`` to JetStream, all or ``only`` some; yield each with its outcome.

    The files stay. Sessions that a process has open are left out, and what the cluster has already. Approvals and
    settings are copied with all sessions.
    """
    async with _member(settings, home) as cluster, anyio.create_task_group() as tasks:
        if not only:
            async for copied in _documents_to_cluster(cluster, home):
                yield copied
        files = SessionStore(home, tasks)
        for folder in list(files.iter_stored()):
            session_id = folder.session_id
            if only and session_id not in only:
                continue
            if folder.in_use():
                yield session_id, "open", ""
                continue
            if cluster.index.get(session_id) is not None:
                yield session_id, "exists", ""
                continue
            workspace = folder.read_workspace()
            host = settings.host_of(workspace.cwd if workspace is not None else None)
            try:
                await cluster.ownerships.store_folder(session_id, folder, host)
            except (JumpseatError, OSError) as error:
                yield session_id, "failed", str(error)
            else:
                yield session_id, "copied", ""
        files.ownership.close()


async def copy_to_files(settings: ClusterSettings, home: Path, only: Collection[str]) -> AsyncIterator[Copied]:
    """Copy the sessions of a cluster to files in ``home``, all or ``only`` some; yield each with its outcome.

    What is in JetStream stays. Sessions that a replica has open are left out, and what has files already. Approvals
    and settings are copied with all sessions.
    """
    async with _member(settings, home) as cluster, anyio.create_task_group() as tasks:
        if not only:
            for copied in await anyio.to_thread.run_sync(_documents_to_files, cluster, home):
                yield copied
        files = SessionStore(home, tasks)
        for entry in cluster.index.all():
            session_id = entry.session_id
            if only and session_id not in only:
                continue
            folder = files.folder(session_id)
            if folder.log.exists():
                yield session_id, "exists", ""
                continue
            if await cluster.ownerships.owner(session_id) is not None:
                yield session_id, "open", ""
                continue
            try:
                await cluster.ownerships.copy(session_id, folder.path)
            except (JumpseatError, OSError) as error:
                yield session_id, "failed", str(error)
            else:
                yield session_id, "copied", ""
        files.ownership.close()


async def _documents_to_cluster(cluster: Cluster, home: Path) -> AsyncIterator[Copied]:
    approvals = await anyio.to_thread.run_sync(PrivateFile(home / APPROVALS_FILE).read)
    settings = without_unknown(await anyio.to_thread.run_sync(SettingsFile(home / SETTINGS_FILE).read))
    for name, values, target in (
        (APPROVALS, with_location_keys(approvals, cluster.settings.location_key), cluster.documents.approvals),
        (SETTINGS, settings, cluster.documents.settings),
    ):
        if not values:
            continue
        if target.read():
            yield name, "exists", ""
            continue
        await target.change_here(lambda stored, values=values: stored.update(values))
        yield name, "copied", ""


def _documents_to_files(cluster: Cluster, home: Path) -> list[Copied]:
    """Copy the documents, with the approvals for folders that this host has."""
    approvals = with_location_keys(cluster.documents.approvals.read(), cluster.settings.location_of)
    done: list[Copied] = []
    for name, values, target in (
        (APPROVALS, approvals, PrivateFile(home / APPROVALS_FILE)),
        (SETTINGS, cluster.documents.settings.read(), SettingsFile(home / SETTINGS_FILE)),
    ):
        if not values:
            continue
        if target.read():
            done.append((name, "exists", ""))
            continue
        target.change(lambda stored, values=values: stored.update(values))
        done.append((name, "copied", ""))
    return done
