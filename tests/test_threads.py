"""Work spread over the cores."""

import threading

import pytest

from pipeline import threads


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 32])
def test_each_number_is_worked_on_once_by_at_most_one_thread_a_core(cores: int, count: int, monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    done, workers = [], set()

    def work(start: int, stop: int) -> None:
        workers.add(threading.get_ident())
        done.extend(range(start, stop))

    threads.over_cores(work, count)
    assert sorted(done) == list(range(count))
    assert len(workers) <= cores


def test_an_error_in_any_part_is_raised():
    def work(start: int, stop: int) -> None:
        if start == 0:
            raise ValueError("the first part")

    with pytest.raises(ValueError, match="the first part"):
        threads.over_cores(work, 8)


def test_work_goes_on_in_the_caller_once_python_is_ending(monkeypatch):
    class Closed:
        def submit(self, *arguments: object) -> None:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threads, "_pool", Closed)
    monkeypatch.setattr(threads, "available_cores", lambda: 4)
    done: list[int] = []
    threads.over_cores(lambda start, stop: done.extend(range(start, stop)), 10)
    assert sorted(done) == list(range(10))
