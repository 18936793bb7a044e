"""Datasets: which there are, fetching them, and what they look like.

python -m evaluation.data describe MovieLens1M
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import DONE, EXIT_CODES, import_tensorflow, run_command


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.data",
        description="List the published datasets, fetch and verify one, or describe one or a file of your own.",
        epilog=EXIT_CODES,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    folder = {
        "type": Path,
        "metavar": "DIR",
        "help": "data folder (default: $APREC_LIKE_DATA, else a cache folder)",
    }
    listing = commands.add_parser("list", help="the published datasets, their numbers, and which are on disk")
    fetch = commands.add_parser("fetch", help="fetch a published dataset, and verify it")
    fetch.add_argument("name", metavar="NAME", help="a name that `list` shows")
    describe = commands.add_parser(
        "describe",
        help="sizes, lengths, repeats, ties, popular items, memory, and a row for a paper's table of datasets",
    )
    describe.add_argument(
        "name", metavar="NAME|FILE", help="a name that `list` shows, or a .txt, .csv, .tsv, .parquet or .inter file"
    )
    for purpose in ("user", "item", "timestamp", "rating"):
        describe.add_argument(f"--{purpose}", metavar="COLUMN", help=f"the column of a CSV or Parquet file: {purpose}")
    for command in (listing, fetch, describe):
        command.add_argument("--data", **folder)  # type: ignore[arg-type]
    return parser.parse_args()


def main() -> int:
    """Do what the command line asks."""
    arguments = parse_arguments()
    from aprec_like.datasets.download import default_data_dir

    data_dir = arguments.data or default_data_dir()
    if arguments.command == "list":
        print(list_published(data_dir))
        return DONE
    if arguments.command == "describe":
        import_tensorflow()  # for the memory that models would need, which their own classes know
    from evaluation.datasheet import describe_interactions, find_readings

    columns = {name: getattr(arguments, name, None) for name in ("user", "item", "timestamp", "rating")}
    if arguments.command == "fetch":
        return fetch_published(arguments.name, data_dir)
    sheets = [describe_interactions(*reading) for reading in find_readings(arguments.name, data_dir, columns)]
    print("\n\n".join(sheets))
    return DONE


def list_published(data_dir: Path) -> str:
    """The table of published datasets."""
    from aprec_like.datasets import PUBLISHED

    rows = [("name", "users", "items", "interactions", "on disk", "licence", "source")]
    for name, dataset in PUBLISHED.items():
        publication = dataset.publication
        assert publication is not None
        sizes = publication.sizes
        is_here = "yes" if dataset.is_on_disk(data_dir) else "no"
        numbers = (f"{sizes.users:,}", f"{sizes.items:,}", f"{sizes.interactions:,}")
        rows.append((name, *numbers, is_here, publication.licence, publication.source))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    aligned = [
        "  ".join(
            cell.rjust(width) if column in (1, 2, 3) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, [*widths, 0], strict=True))
        )
        for row in rows
    ]
    return "\n".join(aligned)


def fetch_published(name: str, data_dir: Path) -> int:
    """Load a published dataset, which fetches and verifies it."""
    from aprec_like.datasets import PUBLISHED
    from aprec_like.errors import InputError

    if name not in PUBLISHED:
        raise InputError(f"there is no dataset {name!r}; there are {', '.join(PUBLISHED)}")
    dataset = PUBLISHED[name]
    was_here = dataset.is_on_disk(data_dir)
    interactions = dataset.load(data_dir)
    print(
        f"{name}: {'on disk already' if was_here else 'fetched'} and verified, {interactions.num_users:,} users, "
        f"{interactions.num_items:,} items, {interactions.num_interactions:,} interactions"
    )
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
