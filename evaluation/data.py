"""Command: list published datasets, download one, or describe a dataset.

python -m evaluation.data describe MovieLens1M
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import DONE, EXIT_CODES, add_memory_option, import_tensorflow, program, run_command

COLUMN_OPTIONS = ("user", "item", "timestamp", "rating")
FORMAT_OPTIONS = {
    "separator": "characters between the columns of a CSV file (default: a comma; a tab in a .tsv file)",
    "header": "names of the columns of a CSV file without a header line, with commas between them",
    "encoding": "encoding of a CSV file (default: utf-8)",
    "time_unit": "unit of timestamps that are numbers: s, ms, us or ns (default: s)",
}


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("data"),
        description="List the published datasets, download and verify one, or describe one or a file of your own.",
        epilog=EXIT_CODES,
    )
    data_option = argparse.ArgumentParser(add_help=False)
    data_option.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder (default: $APREC_LIKE_DATA, else a cache folder)"
    )
    add_memory_option(data_option)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "list", parents=[data_option], help="the published datasets, their sizes, and which are on disk"
    )
    fetch = commands.add_parser("fetch", parents=[data_option], help="download a published dataset, and verify it")
    fetch.add_argument("name", metavar="NAME", help="a name that `list` shows")
    describe = commands.add_parser(
        "describe",
        parents=[data_option],
        help="sizes, lengths, repeats, ties, popular items, memory, and a LaTeX row for a table of datasets",
    )
    describe.add_argument(
        "name",
        metavar="NAME|FILE",
        help="a name that `list` shows, a .txt, .csv, .tsv, .parquet or .inter file, or a folder of Parquet files",
    )
    for column in COLUMN_OPTIONS:
        describe.add_argument(
            f"--{column}", metavar="COLUMN", help=f"name of the {column} column of a CSV or Parquet file"
        )
    for option, text in FORMAT_OPTIONS.items():
        metavar = {"separator": "TEXT", "header": "NAMES"}.get(option, "NAME")
        describe.add_argument(f"--{option.replace('_', '-')}", metavar=metavar, help=text)
    return parser.parse_args()


def main() -> int:
    """Execute the subcommand of the command line."""
    arguments = parse_arguments()
    from aprec_like.datasets.download import default_data_dir
    from evaluation.datasheets.published import fetch_published, list_published

    data_dir = arguments.data or default_data_dir()
    if arguments.command == "list":
        print(list_published(data_dir))
    elif arguments.command == "fetch":
        print(fetch_published(arguments.name, data_dir))
    else:
        import_tensorflow()  # the predicted memory depends on the classes of models
        from evaluation.datasheets.describe import describe_data

        columns = {name: getattr(arguments, name) for name in COLUMN_OPTIONS}
        formats = {name: value for name in FORMAT_OPTIONS if (value := getattr(arguments, name)) is not None}
        print(describe_data(arguments.name, data_dir, columns, formats))
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
