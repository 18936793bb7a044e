"""The models that recommend and are exported."""

import pytest

from tests.evaluation.inference.made_models import make_models


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))
