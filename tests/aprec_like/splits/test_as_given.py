import pytest

from aprec_like.errors import InputError
from aprec_like.splits import AsGiven
from tests.conftest import interactions_from


def test_data_without_a_split_is_refused():
    with pytest.raises(InputError, match="PreSplitFolder"):
        AsGiven().split(interactions_from([[0, 1, 2]]))
