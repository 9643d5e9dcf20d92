"""The Python face of the estimators against the vectors that Rust and C reproduce."""

import sys
import threading
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

import noctule
from noctule import sync

VECTORS = Path(__file__).parents[2] / "vectors" / "time-sync"
NAMES = sorted(path.stem for path in VECTORS.glob("*.csv"))
# Columns of the vectors after the four stamps.
ESTIMATORS = {"bounded": 4, "ema": 5, "ema_mavros": 6}


def rows(name):
    return [line.split(",") for line in (VECTORS / f"{name}.csv").read_text().splitlines()]


def stamps(name):
    return np.array([[int(stamp) for stamp in row[:4]] for row in rows(name)], np.int64).T


def even_clock(count=200, offset_ns=5_000, drift_ppm=10, delay_ns=1_000):
    """Exchanges every 100 ms over a way that takes equally long in both directions."""
    t1 = np.arange(count, dtype=np.int64) * 100_000_000
    remote = lambda local: local + offset_ns + local * drift_ppm // 1_000_000
    t4 = t1 + 2 * delay_ns
    t2 = remote(t1 + delay_ns)
    return t1, t2, t2, t4


def same(one, other):
    return all(
        np.array_equal(getattr(one, field), getattr(other, field), equal_nan=field == "drift_ppm")
        for field in one.__slots__
    )


def test_there_are_vectors():
    assert NAMES == ["drawn", "hostile", "polling_timer", "step"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", NAMES)
def test_replay_reproduces_the_vectors_to_the_last_bit(name, estimator):
    got = noctule.replay(*stamps(name), estimator=estimator)
    for i, row in enumerate(rows(name)):
        said = row[ESTIMATORS[estimator]].split(":")
        if said[1] == "-":
            offset_ns, per_2_46, bound_ns, sigma_ns, state = sync.UNKNOWN_OFFSET_NS, np.nan, -1, -1, -1
        else:
            offset_ns, per_2_46, bound_ns, sigma_ns, state = map(int, said[1:6])
        assert got.verdict[i] == int(said[0]), f"row {i + 1}"
        expected = (offset_ns, bound_ns, sigma_ns, state)
        assert (got.offset_ns[i], got.bound_ns[i], got.sigma_ns[i], got.state[i]) == expected, f"row {i + 1}"
        drift_ppm = float(per_2_46) * (1e6 / 2**46)
        assert np.float64(drift_ppm).tobytes() == got.drift_ppm[i].tobytes() or np.isnan(drift_ppm), f"row {i + 1}"
        assert np.isnan(drift_ppm) == np.isnan(got.drift_ppm[i])


@pytest.mark.parametrize("name", NAMES)
def test_align_reproduces_the_vectors_to_the_last_bit(name):
    pieces = sync.align(*stamps(name))
    got = [
        f"{pieces.from_ns[i]},{pieces.to_ns[i]},{pieces.offset_ns[i]},"
        f"{pieces.drift_ppm.view(np.uint64)[i]:016x},{pieces.clearance_ns[i]}"
        for i in range(len(pieces.from_ns))
    ]
    assert got == (VECTORS / "pieces" / f"{name}.csv").read_text().splitlines()


def test_the_licence_texts_are_installed():
    names = {Path(path).name for path in distribution("noctule").files if ".dist-info/" in str(path)}
    assert {"LICENSE-MIT", "LICENSE-APACHE"} <= names


def test_types_and_lengths_of_what_comes_out():
    got = sync.replay(*stamps("step"))
    types = {"offset_ns": "i8", "drift_ppm": "f8", "bound_ns": "i8", "sigma_ns": "i8", "state": "i1", "verdict": "i1"}
    assert {name: getattr(got, name).dtype.str[1:] for name in got.__slots__} == types
    assert all(len(getattr(got, name)) == len(rows("step")) for name in got.__slots__)


def test_what_is_not_known_is_no_plausible_number():
    # The reply arrives before the request leaves: nothing usable.
    got = sync.replay([10], [0], [0], [5])
    assert got.state[0] == sync.State.UNKNOWN
    assert got.offset_ns[0] == sync.UNKNOWN_OFFSET_NS
    assert np.isnan(got.drift_ppm[0])
    assert (got.bound_ns[0], got.sigma_ns[0]) == (-1, -1)
    assert len(sync.align([10], [0], [0], [5]).from_ns) == 0


def test_no_exchanges_give_no_estimates():
    assert len(sync.replay([], [], [], []).state) == 0
    assert len(sync.align([], [], [], []).from_ns) == 0


@pytest.mark.parametrize(
    "convert", [list, tuple, lambda a: a.astype(">i8"), lambda a: np.repeat(a, 2)[::2], lambda a: a.astype("u8")]
)
def test_anything_that_holds_whole_numbers_is_taken(convert):
    trace = even_clock()
    assert same(sync.replay(*trace), sync.replay(*(convert(column) for column in trace)))


def test_other_integers_are_widened():
    narrow = [np.array([column], np.int16) for column in (0, 500, 510, 30)]
    assert sync.replay(*narrow).offset_ns[0] == 490


@pytest.mark.parametrize("call", [sync.replay, sync.align])
@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (([1, 2], [1], [1], [1]), "t1, t2, t3 and t4 must be equally long, but have [2, 1, 1, 1] elements"),
        (([1], [1.5], [1], [1]), "t2 must hold whole nanoseconds (int64), but holds float64"),
        (([1], [1], [True], [1]), "t3 must hold whole nanoseconds (int64), but holds bool"),
        (([1], [1], [1], [[1]]), "t4 must have one dimension, but has 2"),
        ((1, [1], [1], [1]), "t1 must have one dimension, but has 0"),
        (([2**63], [1], [1], [1]), "t1 holds 9223372036854775808, which does not fit into int64 nanoseconds"),
    ],
)
def test_wrong_stamps_are_refused_in_one_sentence(call, trace, message):
    with pytest.raises(ValueError) as caught:
        call(*trace)
    assert str(caught.value) == message


def test_wrong_settings_are_refused_in_one_sentence():
    trace = even_clock(2)
    with pytest.raises(ValueError, match='no estimator is called "kalman"; there are ema, '):
        sync.replay(*trace, estimator="kalman")
    for ppm in (-1, 10_001):
        with pytest.raises(ValueError, match=f"max_drift_ppm must be 0 to 10000, but is {ppm}"):
            sync.replay(*trace, max_drift_ppm=ppm)
    with pytest.raises(ValueError, match="wire_back_ns must fit into int64 nanoseconds"):
        sync.align(*trace, wire_back_ns=2**63)


def test_settings_reach_the_estimator():
    trace = even_clock(1)
    # Alone an exchange proves half its round trip; wire time known on both ways narrows it.
    wide = sync.replay(*trace).bound_ns[0]
    assert sync.replay(*trace, wire_forward_ns=900, wire_back_ns=900).bound_ns[0] == wide - 900
    trace = even_clock()
    assert sync.replay(*trace, max_drift_ppm=2000).bound_ns[-1] > sync.replay(*trace).bound_ns[-1]
    # Half of what is known of one way only moves the line.
    moved = sync.align(*trace, wire_back_ns=900).offset_ns[0] - sync.align(*trace).offset_ns[0]
    assert abs(moved - 450) <= 1


def test_past_distrusted_is_past_not_used():
    # A slow exchange after a quick one: only the past says more than its own half round trip.
    trace = np.array([[0, 5_100, 5_100, 200], [1_000_000, 1_045_000, 1_045_000, 1_080_000]]).T
    assert sync.replay(*trace).bound_ns[1] < 1_000
    assert sync.replay(*trace, distrust_past=True).bound_ns[1] >= 40_000


def test_why_an_exchange_was_not_used_is_said():
    got = sync.replay([0, 10, 20, 5], [100, 0, 120, 105], [100, 0, 120, 105], [10, 5, 30, 15])
    assert [sync.Verdict(code) for code in got.verdict] == [
        sync.Verdict.USED,
        sync.Verdict.CLOCK_WENT_BACK,
        sync.Verdict.USED,
        sync.Verdict.OUT_OF_ORDER,
    ]


def test_align_finds_an_even_clock_exactly():
    trace = even_clock()
    pieces = sync.align(*trace)
    assert len(pieces.from_ns) == 1
    assert (pieces.from_ns[0], pieces.to_ns[0]) == (trace[3][0], trace[3][-1])
    assert abs(pieces.offset_ns[0] - 5_000) <= 1
    assert abs(pieces.drift_ppm[0] - 10) < 1e-3
    assert abs(pieces.clearance_ns[0] - 1_000) <= 1


def test_align_cuts_at_a_step():
    t1, t2, t3, t4 = even_clock()
    step_ns = 50_000_000
    t2 = t2 + np.where(np.arange(len(t2)) >= 100, step_ns, 0)
    pieces = sync.align(t1, t2, t2, t4)
    assert np.array_equal(pieces.from_ns, t4[[0, 100]])
    drifted_ns = 100_000  # 10 ppm over 10 s
    assert abs(pieces.offset_ns[1] - pieces.offset_ns[0] - step_ns - drifted_ns) <= 2


def test_stamps_are_left_as_they_were():
    trace = even_clock()
    before = [column.copy() for column in trace]
    for column in trace:
        column.flags.writeable = False
    sync.replay(*trace)
    assert all(np.array_equal(a, b) for a, b in zip(trace, before))


def test_other_threads_run_meanwhile():
    trace = even_clock(1_000_000)
    entered = threading.Event()
    finished = []

    def work():
        entered.set()
        finished.append(sync.replay(*trace))

    worker = threading.Thread(target=work)
    interval_s = sys.getswitchinterval()
    # No thread is made to hand over: this one gets its turn only when the worker lets go by itself.
    sys.setswitchinterval(1000)
    try:
        worker.start()
        entered.wait()
        finished_before_our_turn = len(finished)
    finally:
        sys.setswitchinterval(interval_s)
    worker.join()
    assert finished_before_our_turn == 0
    assert len(finished[0].state) == 1_000_000
