"""``bkspark demo``: the main job, end to end, on real data and a cluster that it makes itself."""

from bkspark.demo.run import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo"]
