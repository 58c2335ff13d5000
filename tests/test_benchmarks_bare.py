"""The benchmarks' measure: ratios do not depend on how busy a machine is."""

import pytest
import torch
from torch import nn

import bare


@pytest.fixture
def machine(monkeypatch):
    """A clock that is told how long work takes, on a machine that others use from time to time."""

    class Machine:
        runs = 0

        def seconds(self, work, device):
            self.runs += 1
            took = work()
            return (1.0 if took is None else took) * (1 + (self.runs // 7) % 3)  # phases: quiet, busy, very busy

    machine = Machine()
    monkeypatch.setattr(bare, "seconds", machine.seconds)
    return machine


def passing(kind=bare.forth, size=4):
    return bare.Pass(kind, nn.Flatten(), torch.rand(size, 3, 2, 2).requires_grad_(kind is not bare.forth), "")


def test_a_run_is_held_against_the_passes_around_it(machine):
    floor = bare.floor((2.0, passing()), (1.0, passing(bare.forth_and_back)), (0.0, passing()))
    assert len(floor.parts) == 2
    ratio = floor.held(lambda: 9.0, images=8, repeats=21, enough=1e9)  # the floor: 8 images x (2 + 1) / 4 seconds
    assert ratio == pytest.approx(9.0 / 6.0, rel=0.01)
    assert floor.best() == pytest.approx(3 / 4)  # the quietest moment


def test_the_first_run_counts_only_where_it_is_long(machine):
    floor, times = bare.floor((1.0, passing(size=1))), iter([50.0, 2.0, 2.0])
    assert floor.held(lambda: next(times), images=1, repeats=2, enough=1e9) < 10
    assert bare.floor((1.0, passing(size=1))).held(lambda: 50.0, images=1, enough=2.0) > 10


def test_others_on_the_cores_do_not_count_with_one_thread(monkeypatch):
    clocks = {"process_time": iter([0.0, 1.0]), "perf_counter": iter([0.0, 5.0])}
    for name, times in clocks.items():
        monkeypatch.setattr(bare.time, name, lambda times=times: next(times))
    for threads, wanted in ((1, 1.0), (2, 5.0)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert bare.seconds(lambda: None, torch.device("cpu")) == wanted


def test_the_fastest_way_to_pass_is_found():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Softplus(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for kind in (bare.forth, bare.forth_and_back, bare.slope_of_slope):
        found = bare.fastest(net, torch.rand(1, 3, 8, 8), kind, sizes=(2, 4), rounds=1)
        assert found.best < 1
        assert len(found.rows) in (2, 4)
        assert found.how.startswith(("channels_last, ", "contiguous_format, "))
