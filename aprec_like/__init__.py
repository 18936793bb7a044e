"""Sequential recommendation experiments in TensorFlow/Keras: data, models, losses, training, ranking, metrics."""

import os

__version__ = "0.1.0"

# Keras picks its backend when it is first imported, and a configuration file in the user's home may name another.
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
