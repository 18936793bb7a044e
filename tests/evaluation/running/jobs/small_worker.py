"""A worker for tests: writes a file, waits for another if told to, and ends with a code or by a signal."""

import json
import os
import sys
import time
from pathlib import Path

from evaluation.running.signals import StopFlag

options = json.loads(sys.argv[1])
stop = StopFlag()
stop.listen()
print(f"{options['name']} starts", file=sys.stderr, flush=True)
Path(options["folder"], options["name"]).write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
while not stop() and not all(Path(options["folder"], name).exists() for name in options.get("waits_for", [])):
    time.sleep(0.005)
if "signal" in options:
    os.kill(os.getpid(), options["signal"])
if stop():
    print(f"{options['name']} saved", file=sys.stderr, flush=True)
os._exit(stop.exit_code if stop() else options.get("code", 0))
