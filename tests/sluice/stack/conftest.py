"""The bundle of the tests of serving."""

from tests.serving.conftest import bundle_folder, market, trained

__all__ = ["bundle_folder", "market", "trained"]
