"""Scenarios from dicts and texts, and what is said of wrong ones."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
from conftest import SCENARIO
from hypothesis import given
from hypothesis import strategies as st

import narrows as nw

DICT = {
    "name": "two and a call",
    "duration": "10s",
    "warmup": "1s",
    "hop": [{"name": "bottleneck", "rate": "20mbit", "queue": "fq_codel"}],
    "flow": [
        {"name": "bulk", "count": 2, "controller": "cubic", "rtt": "40ms", "route": ["bottleneck"]},
        {
            "name": "call",
            "traffic": {"kind": "cbr", "rate": "100kbit", "packet": "200B"},
            "transport": "udp",
            "rtt": "40ms",
            "route": ("bottleneck",),
        },
    ],
}


def test_a_dict_is_the_file():
    scenario = nw.Scenario(DICT)
    assert scenario == nw.Scenario.from_toml(SCENARIO)
    assert scenario == nw.Scenario.from_toml(scenario.to_toml())
    assert scenario.flows == ["bulk.0", "bulk.1", "call"]
    assert (scenario.duration_s, scenario.warmup_s, scenario.seed) == (10.0, 1.0, 1)


@pytest.mark.parametrize(
    ("path", "value", "place", "says"),
    [
        (("hop", 0, "qeue"), "fifo", "hop[0].qeue", 'did you mean "queue"'),
        (("hop", 0, "queue"), "fq_codle", "hop[0].queue", 'did you mean "fq_codel"'),
        (("flow", 1, "rtt"), "40", "flow[1].rtt", "allowed"),
        (("flow", 0, "route"), ["elsewhere"], "flow[0].route", "bottleneck"),
        (("duration",), -1, "duration", "allowed"),
        (("warmup",), "11s", "warmup", "allowed"),
        (("hop", 0, "loss"), math.nan, "hop[0].loss", "allowed"),
        (("hop", 0, "loss"), 10**30, "hop[0].loss", ""),
    ],
)
def test_a_wrong_value_is_named(path, value, place, says):
    wrong = copy.deepcopy(DICT)
    part = wrong
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(nw.ScenarioError) as caught:
        nw.Scenario(wrong)
    assert caught.value.place == place
    assert says in caught.value.message
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_text_is_the_file_too():
    assert nw.Scenario(SCENARIO) == nw.Scenario.from_toml(SCENARIO)
    with pytest.raises(nw.ScenarioError, match=r"fq_codle"):
        nw.Scenario(SCENARIO.replace("fq_codel", "fq_codle"))


def test_a_scenario_is_built_in_steps():
    start = nw.ScenarioBuilder(name="two and a call", duration="10s", warmup="1s")
    link = start.hop("bottleneck", rate="20mbit", queue="fq_codel")
    bulk = link.flow("bulk", count=2, controller="cubic", rtt="40ms")
    call = {"kind": "cbr", "rate": "100kbit", "packet": "200B"}
    assert bulk.flow("call", traffic=call, transport="udp", rtt="40ms").build() == nw.Scenario(DICT)
    # A builder stays as it is.
    assert bulk.build().flows == ["bulk.0", "bulk.1"]
    assert repr(link) == "<ScenarioBuilder: 1 hops; 0 flows>"


def test_a_built_scenario_has_the_same_errors():
    with pytest.raises(nw.ScenarioError) as caught:
        nw.ScenarioBuilder(duration="10s").hop("link", rate="20mbit", qeue="fifo").flow("bulk", rtt="40ms").build()
    assert (caught.value.place, caught.value.suggestion) == ("hop[0].qeue", "queue")
    with pytest.raises(nw.ScenarioError):
        nw.ScenarioBuilder().build()


@pytest.mark.parametrize("text", ["", "household.toml"])
def test_a_file_name_is_no_text_of_a_scenario(text):
    with pytest.raises(nw.ScenarioError, match=r"allowed for a file: Scenario\.load"):
        nw.Scenario(text)


def test_a_number_is_no_scenario():
    with pytest.raises(TypeError, match="not a scenario: 3; allowed: a dict or the text"):
        nw.Scenario(3)  # pyright: ignore[reportArgumentType]


def test_values_that_no_file_has():
    with pytest.raises(TypeError, match=r"hop\[0\]\.queue: cannot be None; allowed"):
        nw.Scenario({**DICT, "hop": [{**DICT["hop"][0], "queue": None}]})
    with pytest.raises(TypeError, match="the key 3 is no text"):
        nw.Scenario({3: 4})  # pyright: ignore[reportArgumentType]


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_any_text_reaches_the_scenario_as_it_is(text):
    assert nw.Scenario({**DICT, "name": text}).name == text


def test_settings_are_the_command_lines():
    scenario = nw.Scenario(DICT).set({"hop.rate": "5mbit", "hop.queue": "fifo:limit=10p"}, duration="3s")
    assert scenario.hops == {"bottleneck": "fifo:limit=10p"}
    assert scenario.set({"hop.queue": "codel"}).hops == {"bottleneck": "codel"}
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    with pytest.raises(nw.ScenarioError, match="allowed"):
        scenario.set({"hop.rat": "5mbit"})


def test_arguments_that_are_refused():
    with pytest.raises(nw.ScenarioError, match='world: "moon"; allowed: "sim", "live", "kernel"'):
        nw.run(DICT, world="moon")
    with pytest.raises(nw.ScenarioError, match='queues: "fifo" is given twice'):
        nw.compare("cubic", ["fifo", "fifo"])
    with pytest.raises(nw.ScenarioError, match='did you mean "fq_codel"'):
        nw.compare(DICT, ["fq_codle"])
    with pytest.raises(nw.ScenarioError, match="rate: is for flows"):
        nw.compare(DICT, ["fifo"], rate="5mbit")
    with pytest.raises(nw.ScenarioError, match="are more than 100000 runs; allowed: fewer values, or fewer runs"):
        nw.sweep(DICT, {"hop.loss": [n / 1000 for n in range(700)], "hop.jitter": [f"{n}us" for n in range(700)]})
    with pytest.raises(nw.ScenarioError, match=r"allowed: a file that ends with \.csv"):
        nw.sweep(DICT, {"hop.rate": ["5mbit"]}, out="table.xls")
    with pytest.raises(MemoryError, match="memory allows"):
        nw.run_all([DICT], memory="1KB")
    with pytest.raises(TypeError, match="not a scenario"):
        nw.run(3)  # pyright: ignore[reportArgumentType]


def test_every_queue_is_listed():
    assert {"fifo", "fq_codel", "cocoa"} <= set(nw.queues())
    assert "cubic" in nw.controllers()
    assert "sequential" in nw.detectors()
    assert "÷" in nw.metrics()["hop.utilisation"]
    assert "flow.rtt_ms.mean" in nw.metrics()
