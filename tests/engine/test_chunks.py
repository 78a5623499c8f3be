"""How many steps are asked for at a time: as many as take a tenth of a second, whatever made the driver stop before."""

from dalembert.engine._run import next_chunk


def test_chunks_take_a_tenth_of_a_second():
    chunk, speed = 1, 2e6
    for _ in range(3):  # calls of the driver take up to a tenth of the time of a short run
        chunk = next_chunk(chunk, chunk / speed, 10**8)
    assert chunk == 2 * 10**5
    assert next_chunk(7, 10.0, 100) == 1 and next_chunk(5, 0.0, 20) == 20


def test_early_stops_do_not_make_chunks_longer():
    assert next_chunk(1, 2e-6, 10**12) <= 1000  # a step, and then an event
