"""The simulation's clock and chance are those of its own thread: others go on as they were."""

import threading
import time

from bkspark.testing.simulation.runtime import determined


def test_another_thread_sleeps_for_real() -> None:
    slept: list[float] = []
    sleeps_there: list[float] = []

    def doze() -> None:
        begin = time.perf_counter()
        time.sleep(0.05)
        slept.append(time.perf_counter() - begin)

    with determined(1, sleep=sleeps_there.append):
        other = threading.Thread(target=doze)
        other.start()
        other.join()
        time.sleep(3600)
    assert slept[0] >= 0.05
    assert sleeps_there == [3600]
