"""The benchmark of the metrics: passes and floors are counted right, and its peers do the same work."""

import pytest
import torch

import bare
import metric_peers
import metrics


@pytest.fixture(scope="module")
def made():
    return metrics.bench("small", torch.device("cpu"), 2)


def case(label):
    (found,) = [one for one in metrics.cases(32) if one.label == label]
    return found


def at_once(net, one, kind, sizes=()):
    """No batch sizes are tried."""
    return bare.Pass(kind, net, one, "")


@pytest.mark.parametrize(
    ("label", "forward", "both", "second"),
    [
        ("average_drop", 2, 0, 0),
        ("deletion", 25, 0, 0),
        ("monotonicity(nguyen)", 49, 0, 0),
        ("max_sensitivity", 0, 20, 0),
        ("road", 18, 0, 0),
        ("complexity", 0, 0, 0),
    ],
)
def test_the_floor_counts_the_passes_that_a_metric_needs(made, label, forward, both, second):
    answers = metrics.run(case(label), made, "gradient", made.part(2))
    assert answers.counts == {"forward": 2 * forward, "both": 2 * both, "second": 2 * second}


def test_an_attack_walks_there_and_back_twice_at_every_step(made):
    answers = metrics.run(metrics.Case("attack_sensitivity", {"steps": 3}), made, "gradient", made.part(2))
    assert answers.counts["second"] == 2 * 3
    assert answers.counts["both"] == 2 * (1 + 4)  # the first map, and the maps of the points


def test_times_are_those_of_a_quiet_machine(made):
    rows = made.given.images[:1]
    forth, both = (bare.Pass(bare.forth, made.given.net, rows, "", best=best) for best in (1e-3, 3e-3))
    row = {
        "ratio": {"gradient": 1.5, "smooth": 2.0},
        "others": {"peer": 6.0, "peer, smooth maps": 3.0, "broken": "fails: ValueError: no"},
    }
    found = metrics.finished(row, bare.floor((2.0, forth), (0.0, forth), (1.0, both)))
    assert found["floor_ms"] == pytest.approx(2 * 1 + 3)
    assert found["ours_ms"] == {"gradient": pytest.approx(7.5), "smooth": pytest.approx(10.0)}
    assert found["faster"] == {"peer": pytest.approx(4.0), "peer, smooth maps": pytest.approx(1.5)}
    assert found["others_ms"]["peer"] == pytest.approx(30.0)
    assert found["others_ms"]["broken"] == "fails: ValueError: no"


def test_a_peer_that_crashes_says_so_in_one_line_and_a_missing_one_nothing(made, monkeypatch):
    monkeypatch.setattr(bare, "fastest", at_once)

    def crashes(asked):
        raise RuntimeError("first\nsecond")

    def missing(asked):
        raise ModuleNotFoundError("No module named 'quantus'", name="quantus")

    peers = [metric_peers.Peer("one", crashes), metric_peers.Peer("other", missing)]
    monkeypatch.setitem(metric_peers.PEERS, "sparseness", peers)
    assert metrics.peered(case("sparseness"), made, made.part(2), made.floor(0, 0, 0)) == {
        "one": "fails: RuntimeError: first"
    }


@pytest.mark.parametrize("label", ["deletion", "monotonicity(nguyen)", "max_sensitivity", "faithfulness_correlation"])
def test_quantus_takes_as_many_passes_as_we_do(made, label):
    pytest.importorskip("quantus")
    one, samples, rows = case(label), made.part(2), []
    handle = made.given.net.register_forward_hook(lambda _module, inputs, _output: rows.append(len(inputs[0])))
    try:
        peer = metric_peers.of(label)[0]
        maps = made.maps["gradient"][:2]
        batch = samples.batch
        asked = metric_peers.Asked(
            made.given.net, batch.images, batch.targets, maps, made.masks[:2], one.params, made.room
        )
        assert len(peer.ready(asked)()) == 2
    finally:
        handle.remove()
    ours = metrics.run(one, made, "gradient", samples)
    assert sum(rows) == pytest.approx(ours.passes, rel=0.06)  # some do not ask about the image itself


def test_the_usual_battery_shares_passes(made):
    found = metrics.saved(made)["gradient"]
    assert found["asked"] == 3 * 2 + 2 * (2 + 27) + 2 * 5
    assert found["ran"] == 1 + (1 + 27) + (1 + 27) + 5  # the image's own score comes with its map
    assert found["maps"] == 1


def test_a_table_is_printed(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(bare, "fastest", at_once)
    monkeypatch.setattr(metrics, "saved", lambda made: {"gradient": {"asked": 2.0, "ran": 1.0, "maps": 1.0}})
    metrics.main(["--metrics", "complexity,average_drop", "--no-peers", "--images", "2", "--out", str(tmp_path / "a")])
    said = capsys.readouterr().out
    assert "| average_drop | 2F | 32 |" in said
    assert "| complexity | none | 64 |" in said
    assert "50% saved" in said
    assert (tmp_path / "a").read_text().startswith("{")
