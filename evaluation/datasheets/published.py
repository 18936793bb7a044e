"""List and download of the published datasets."""

from __future__ import annotations

from pathlib import Path

from aprec_like.datasets import PUBLISHED
from aprec_like.errors import InputError

HEADER = ("name", "users", "items", "interactions", "on disk", "licence", "source")
RIGHT_ALIGNED = ("users", "items", "interactions")


def list_published(data_dir: Path) -> str:
    """Return a text table of the published datasets."""
    rows = [HEADER]
    for name, dataset in PUBLISHED.items():
        if publication := dataset.publication:
            sizes = publication.sizes
            numbers = (f"{sizes.users:,}", f"{sizes.items:,}", f"{sizes.interactions:,}")
            on_disk = "yes" if dataset.is_on_disk(data_dir) else "no"
            rows.append((name, *numbers, on_disk, publication.licence, publication.source))
    columns = [
        [cell.rjust(width) if column[0] in RIGHT_ALIGNED else cell.ljust(width) for cell in column]
        for column in zip(*rows, strict=True)
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def fetch_published(name: str, data_dir: Path) -> str:
    """Load a published dataset, which downloads and verifies it; returns a line with its sizes."""
    if name not in PUBLISHED:
        raise InputError(f"there is no dataset {name!r}; there are {', '.join(PUBLISHED)}")
    dataset = PUBLISHED[name]
    was_on_disk = dataset.is_on_disk(data_dir)
    interactions = dataset.load(data_dir)
    return (
        f"{name}: {'on disk already' if was_on_disk else 'fetched'} and verified, {interactions.num_users:,} users, "
        f"{interactions.num_items:,} items, {interactions.num_interactions:,} interactions"
    )
