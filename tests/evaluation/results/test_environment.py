import psutil
import pytest

from evaluation.results import environment


@pytest.mark.parametrize(("limit", "is_limited"), [("max\n", False), (f"{1 << 20}\n", True), (None, False)])
def test_a_containers_limit_caps_the_total_and_the_available_memory(tmp_path, monkeypatch, limit, is_limited):
    path = tmp_path / "memory.max"
    monkeypatch.setattr(environment, "CONTAINER_LIMIT", path)
    if limit is not None:
        path.write_text(limit)
    assert environment.total_memory() == (1 << 20 if is_limited else psutil.virtual_memory().total)
    assert (environment.available_memory() == 1 << 20) == is_limited


def test_peak_memory_is_at_least_what_the_process_has_now():
    """A unit of bytes instead of KiB would make it a thousand times smaller, or larger than the machine."""
    resident = psutil.Process().memory_info().rss / 2**30
    assert 0.9 * resident <= environment.peak_memory_gib() <= environment.total_memory() / 2**30


def test_the_description_names_versions_and_no_machine():
    description = environment.describe_environment()
    assert set(description["packages"]) == set(environment.PACKAGES)
    assert set(description) == {
        "aprec_like", "python", "packages", "system", "machine", "processor", "cores", "memory_gib",
        "devices", "commit", "date",
    }  # fmt: skip
