"""The process of one measurement: `evaluation.benchmark` starts one for each, so that peak memory is not shared."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evaluation.cli import DONE, import_tensorflow, run_command


def main() -> int:
    """Print the measurement that the one argument, a JSON object, describes; as JSON."""
    import_tensorflow()
    from evaluation.benchmarking.measurements import measure_model, measure_model_at_size
    from evaluation.benchmarking.planning.measured_epoch import PLAN_KINDS
    from evaluation.benchmarking.sizes import Size

    options = json.loads(sys.argv[1])
    recipe, name, num_steps = Path(options["recipe"]), options["model"], options.get("steps", 0)
    if options.get("kind") in PLAN_KINDS:
        values = PLAN_KINDS[options["kind"]](recipe, name, Path(options["data"]), bool(options.get("smoke")))
    elif "size" in options:
        values = measure_model_at_size(recipe, name, Size(*options["size"]), num_steps)
    else:
        values = measure_model(options["kind"], recipe, name, Path(options["data"]), num_steps)
    print(json.dumps(values))
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
