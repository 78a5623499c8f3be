"""Tests that share models, programs or the browser run in one process of `make test`."""

import pytest


def test_groups_reach_the_scheduler(request):
    """pytest-xdist hands out tests by names that end in their group; names without it are handed out one by one."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("only in processes of pytest-xdist with --dist loadgroup, as make test has them")
    grouped = [item for item in request.session.items if item.get_closest_marker("xdist_group")]
    assert all("@" in item.nodeid for item in grouped)
