"""Questions answered beside the loop: a line with an end, and askers that go."""

import select
import threading

from ambermq.engine.history.background_jobs import BackgroundJob, BackgroundJobs
from ambermq.log.storage.worker_threads import InlineWorkers, ThreadWorkers


def failing(_job: BackgroundJob) -> int:
    """A question that has no answer."""
    raise KeyError("none")


def test_answers_come_with_their_keys_in_order() -> None:
    """Each job ends once, with its value."""
    workers = InlineWorkers()
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=10)
    assert all(jobs.submit(BackgroundJob(key, lambda job: int(job.key))) for key in ("1", "2", "3"))
    assert jobs.take_ended() == []
    workers.collect()
    assert [(job.key, job.value, job.error) for job in jobs.take_ended()] == [
        ("1", 1, None),
        ("2", 2, None),
        ("3", 3, None),
    ]
    assert jobs.take_ended() == []
    workers.close()


def test_an_error_is_an_answer_and_the_lane_goes_on() -> None:
    """The exception of a job is its result; the next job runs."""
    workers = InlineWorkers()
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=10)
    jobs.submit(BackgroundJob("bad", failing))
    jobs.submit(BackgroundJob("good", lambda _: 0))
    workers.collect()
    bad, good = jobs.take_ended()
    assert isinstance(bad.error, KeyError)
    assert (good.value, good.error) == (0, None)
    workers.close()


def test_a_full_line_refuses_and_a_dropped_job_makes_room() -> None:
    """A full line refuses; a dropped job never runs, and is never told."""
    ran: list[str] = []
    workers = InlineWorkers()
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=2)
    first, second, third = (BackgroundJob(name, lambda job: ran.append(job.key)) for name in "abc")
    assert jobs.submit(first)
    assert jobs.submit(second)
    assert not jobs.submit(third)
    jobs.drop(first)
    assert jobs.submit(third)
    workers.collect()
    assert ran == ["b", "c"]
    assert [job.key for job in jobs.take_ended()] == ["b", "c"]
    workers.close()


def test_a_job_that_is_dropped_while_it_runs_is_not_told() -> None:
    """It is let run, and its answer is dropped; the loop goes on meanwhile."""
    began, go = threading.Event(), threading.Event()

    def wait(_job: BackgroundJob) -> None:
        began.set()
        assert go.wait(60)

    workers = ThreadWorkers(has_kernel_sync=False)
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=2)
    job = BackgroundJob("slow", wait)
    jobs.submit(job)
    assert began.wait(60)
    jobs.drop(job)
    go.set()
    jobs.drop_all()
    workers.close()
    assert jobs.take_ended() == []


def test_a_dropped_job_ends_at_its_next_rest() -> None:
    """Other jobs continue; a dropped job ends at its next rest."""
    rests = 0

    def work(job: BackgroundJob) -> None:
        nonlocal rests
        for _ in range(10):
            job.rest()
            rests += 1
            job.is_dropped = rests == 4

    workers = InlineWorkers()
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=2)
    job = BackgroundJob("key", work)
    jobs.submit(job)
    workers.collect()
    assert (rests, jobs.take_ended()) == (4, [])
    assert job.error is not None
    workers.close()


def test_a_stop_ends_what_runs_at_its_next_rest() -> None:
    """A close does not wait for the end of a fold, and discards the results of ended jobs."""
    began = threading.Event()

    def work(job: BackgroundJob) -> None:
        began.set()
        while True:
            job.rest()

    workers = ThreadWorkers(has_kernel_sync=False)
    jobs = BackgroundJobs(workers, "test", lanes_max=1, waiting_max=2)
    endless, behind = BackgroundJob("endless", work), BackgroundJob("behind", repr)
    assert jobs.submit(endless)
    assert jobs.submit(behind)
    assert began.wait(60)
    jobs.drop_all()
    workers.close()
    assert endless.error is not None
    assert jobs.take_ended() == []
    assert behind.value is None


def test_no_thread_before_the_first_job() -> None:
    """Lanes are opened one a job, up to lanes_max."""
    workers = ThreadWorkers(has_kernel_sync=False)
    before = threading.active_count()
    jobs = BackgroundJobs(workers, "test", lanes_max=2, waiting_max=10)
    assert threading.active_count() == before
    for _ in range(3):
        jobs.submit(BackgroundJob("key", repr))
    assert threading.active_count() == before + 2
    news, ended = select.poll(), list[BackgroundJob]()
    news.register(workers.fileno(), select.POLLIN)
    while len(ended) < 3:
        assert news.poll(60_000)
        workers.collect()
        ended += jobs.take_ended()
    workers.close()
