"""References to GitHub objects attached to a prompt: one line each, without their content."""

from __future__ import annotations

from typing import Any, cast


def reference(item: dict[str, Any]) -> str | None:
    """Return the line for an attachment of a ``github_*`` type; ``None`` for all others.

    Recorded conversations fix the form of ``github_reference``; the other types follow it. An unknown type is
    represented by its URL.
    """
    kind = str(item.get("type"))
    if not kind.startswith("github_"):
        return None
    url = f"({item.get('url')})"
    match kind:
        case "github_reference":
            what = f"#{item.get('number')} - {item.get('title')}"
            return f"{what} [{item.get('referenceType')}] [{item.get('state')}] {url}"
        case "github_commit":
            return f"{_repository(item)}@{str(item.get('oid'))[:12]} - {item.get('message')} [commit] {url}"
        case "github_release":
            return f"{_repository(item)} {item.get('tagName')} - {item.get('name')} [release] {url}"
        case "github_actions_job":
            result = f" [{item['conclusion']}]" if item.get("conclusion") else ""
            what = f"{item.get('workflowName')} / {item.get('jobName')} #{item.get('jobId')}"
            return f"{_repository(item)} - {what} [job]{result} {url}"
        case "github_repository":
            ref = f"@{item['ref']}" if item.get("ref") else ""
            about = f" - {item['description']}" if item.get("description") else ""
            return f"{_repository(item)}{ref}{about} [repository] {url}"
        case "github_file":
            return f"{_place(item)} [file] {url}"
        case "github_snippet":
            lines = _object(item.get("lineRange"))
            return f"{_place(item)} lines {lines.get('start')}-{lines.get('end')} [snippet] {url}"
        case "github_file_diff":
            sides = [_place(_object(side)) for side in (item.get("base"), item.get("head")) if side]
            return f"{' -> '.join(sides)} [diff] {url}"
        case "github_tree_comparison":
            base, head = _object(item.get("base")), _object(item.get("head"))
            ends = f"{base.get('revision')}...{head.get('revision')}"
            return f"{_repository(base)} {ends} [comparison] {url}"
        case _:
            return str(item.get("url"))


def _place(item: dict[str, Any]) -> str:
    """Return ``owner/name@ref:path``."""
    return f"{_repository(item)}@{item.get('ref')}:{item.get('path')}"


def _repository(item: dict[str, Any]) -> str:
    repo = _object(item.get("repo"))
    return f"{repo.get('owner')}/{repo.get('name')}"


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
