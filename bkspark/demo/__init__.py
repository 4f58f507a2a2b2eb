"""``bkspark demo``: the main job, end to end, with real data and a cluster of its own."""

from bkspark.demo.tour import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo"]
