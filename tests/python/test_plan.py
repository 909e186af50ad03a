import re

import pytest

import tidepool


def test_version_is_the_projects():
    assert re.fullmatch(r"\d+\.\d+\.\d+", tidepool.__version__)


def test_plan_keeps_the_budget(digits):
    free = tidepool.plan(digits, 64)
    tight = tidepool.plan(digits, 64, "2MiB")
    assert free.summary["peak_bytes"] > 2 << 20 >= tight.summary["peak_bytes"]
    assert tight.summary["memory_bytes"] == 2 << 20
    assert tight.summary["offloaded_bytes"] + tight.summary["recomputed_tasks"] > 0
    assert tidepool.plan(digits, 64, 2 << 20).to_json() == tight.to_json()


def test_plan_as_lists_agrees_with_its_summary(digits):
    plan = tidepool.plan(digits, 64, "2MiB")
    ends = [stay["address"] + stay["bytes"] for stay in plan.stays if stay["tier"] == "device"]
    workspaces = [op["bytes"] for op in plan.ops if op["kind"].startswith("run")]
    assert max(ends) <= plan.summary["peak_bytes"] <= 2 << 20
    assert len(workspaces) == plan.summary["tasks"]
    out = sum(op["bytes"] for op in plan.ops if op["kind"] == "copy device to host")
    assert out == plan.summary["offloaded_bytes"]
    assert max(step["live_data_bytes"] for step in plan.steps) == plan.summary["peak_data_bytes"]
    assert all(wait < op["op"] for op in plan.ops for wait in op["waits"])


def test_table_is_for_pandas(digits):
    plan = tidepool.plan(digits, 64)
    try:
        import pandas
    except ImportError:
        with pytest.raises(tidepool.Error, match="needs pandas: pip install pandas"):
            plan.table()
        return
    table = plan.table("stays")
    assert isinstance(table, pandas.DataFrame)
    assert len(table) == len(plan.stays) and set(table.columns) == set(plan.stays[0])
    with pytest.raises(tidepool.Error, match="there is no table 'x'"):
        plan.table("x")


def test_too_small_a_budget_is_said_as_the_program_says_it(digits):
    with pytest.raises(tidepool.Infeasible) as caught:
        tidepool.plan(digits, 64, "1MiB")
    error = caught.value
    assert isinstance(error, tidepool.Error)
    assert error.tier == "device" and error.task
    assert str(error).startswith(f"auto does not fit into 1.00 MiB: it needs {error.needed} bytes")
    assert "\n" not in str(error)
    assert tidepool.plan(digits, 64, error.needed).summary["peak_bytes"] <= error.needed


@pytest.mark.parametrize("options, text", [
    ({"polcy": "auto"}, "there is no option 'polcy'; there are memory"),
    ({"policy": "best"}, "unknown policy 'best'; the policies are baseline"),
    ({"memory": "12 apples"}, "12 apples"),
    ({"memory": -1}, "memory=-1 is negative"),
    ({"memory": 1.5}, "memory=1.5: is a float, not a size"),
    ({"device": "abacus"}, "abacus"),
    ({"backend": "abacus"}, "abacus"),
    ({"momentum": 2}, "momentum=2 is not in"),
    ({"optimizer": "best"}, "unknown optimizer 'best'; they are sgd"),
    ({"batch": 0}, "0"),
    ({"batch": "many"}, "batch='many' is not a whole number"),
    ({"memory": "device"}, "needs a device="),
    ({"threads": -1}, "threads=-1 is not possible"),
    ({"fuse": "no"}, "fuse='no': is a str, not True or False"),
])
def test_bad_words_get_one_line(digits, options, text):
    with pytest.raises(tidepool.Error) as caught:
        tidepool.plan(digits, **options)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_networks_get_one_line(tmp_path):
    with pytest.raises(tidepool.Error, match="there is no model 'resnet51'; did you mean"):
        tidepool.network("resnet51")
    with pytest.raises(tidepool.Error, match="no_such.json"):
        tidepool.network(tmp_path / "no_such.json")
    with pytest.raises(tidepool.Error, match="is not a network"):
        tidepool.plan("digits", 4)


def test_compare_has_every_policy(digits):
    rows = tidepool.compare(digits, 64, "2MiB")
    assert [row["policy"] for row in rows] == [policy["name"] for policy in tidepool.policies()]
    fitting = [row for row in rows if row["feasible"]]
    assert fitting and all(row["peak_bytes"] <= 2 << 20 for row in fitting)
    assert all(row["floor_bytes"] > 2 << 20 for row in rows if not row["feasible"])
    assert rows.lower_bound_seconds <= min(row["predicted_seconds"] for row in fitting) * (1 + 1e-9)
    assert "auto" in str(rows)


def test_fit_finds_what_no_larger_batch_does():
    net = tidepool.network("lenet")
    seen = []
    found = tidepool.fit(net, "64MiB", device="rtx3060", progress=lambda size, fits: seen.append((size, fits)))
    assert found["peak_bytes"] <= 64 << 20 < found["next_floor_bytes"]
    assert len(seen) == found["sizes_asked"]
    tidepool.plan(net, found["batch"], "64MiB", device="rtx3060")
    with pytest.raises(tidepool.Infeasible):
        tidepool.plan(net, found["batch"] + 1, "64MiB", device="rtx3060")


def test_what_progress_throws_ends_the_search(digits):
    def stop(size, fits):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        tidepool.fit(digits, "64MiB", progress=stop)


def test_networks_go_to_files_and_back(digits, tmp_path):
    digits.save(str(tmp_path / "net.json"))
    again = tidepool.network(tmp_path / "net.json")
    assert again.fingerprint == digits.fingerprint
    assert again.parameters == digits.parameters == 30762
    assert sum(layer["parameters"] for layer in again.layers()) == 30762
    with pytest.raises(tidepool.Error, match="call it .json"):
        digits.save(str(tmp_path / "net.onnx"))


def test_plans_for_other_devices_are_files(digits, tmp_path):
    plan = tidepool.plan(digits, 64, "2MiB", device="rtx3060")
    plan.save(str(tmp_path / "plan.json"))
    assert (tmp_path / "plan.json").stat().st_size > 1000
    assert "rtx3060" in plan.summary["times"]
