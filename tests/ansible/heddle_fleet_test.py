"""What the playbooks' filters compute. Run by playbooks_test.ts."""

import json
import os
import pathlib
import re
import struct
import sys
import tempfile
import unittest

ANSIBLE = pathlib.Path(__file__).resolve().parents[2] / "ansible"
sys.path[:0] = [str(ANSIBLE / "filter_plugins"), str(ANSIBLE / "library")]

import heddle_fleet as fleet  # noqa: E402
import heddle_host_check as host_check  # noqa: E402

VALUES = {
    "heddle_cluster": "prod",
    "heddle_address": "10.0.0.1",
    "heddle_listen": "0.0.0.0",
    "heddle_metrics_listen": "127.0.0.1",
    "heddle_dists": {"x86_64": "/dist"},
    "heddle_certificate_hosts": [],
    "heddle_control_port": 7443,
    "heddle_admin_listen": "127.0.0.1:9090",
    "heddle_operator_tokens": [],
    "heddle_metrics_tls_listen": "",
    "heddle_control_extra": {},
    "heddle_router_port": 8080,
    "heddle_router_instances": [{"id": 1, "admin_port": 9091}],
    "heddle_router_key_policy": "key_file",
    "heddle_router_keys": [],
    "heddle_restore": "",
    "heddle_catalog_file": "/catalog.yaml",
    "heddle_ca_folder": "/ca",
    "heddle_cache_folder": "/cache",
    "heddle_certificate_valid": "90d",
    "heddle_certificate_renew_before": "30d",
    "heddle_nvidia_smi": "",
    "heddle_launcher": "systemd",
    "heddle_prometheus_folder": "/etc/prometheus/heddle",
    "heddle_prometheus_group": "prometheus",
    "heddle_prometheus_unit": "",
    "heddle_prometheus_config": "",
    "heddle_grafana_provisioning": "/etc/grafana/provisioning",
    "heddle_grafana_dashboards": "/var/lib/grafana/dashboards/heddle",
    "heddle_grafana_group": "grafana",
    "heddle_grafana_unit": "",
    "heddle_backup_folder": "/backups",
    "heddle_engine_tasks": "",
    "heddle_router_extra": {},
    "heddle_fabric_defs": {
        "fabric_ib_a": {"name": "ib-a", "link_layer": "infiniband", "hcas": ["mlx5_0", "mlx5_1"]},
        "fabric_ib_b": {"name": "ib-b", "hcas": ["mlx5_0"]},
    },
    "heddle_fabric_hcas": {},
    "heddle_engines": [],
    "heddle_engine_env": {},
    "heddle_engine_ports": {"first": 20000, "last": 31999},
    "heddle_model_dirs": [],
    "heddle_gpus_min": 0,
    "heddle_agent_extra": {},
    "heddle_disk_min_gib": {},
    "heddle_shm_min_mib": 0,
    "heddle_clock_skew_max_s": 30,
    "heddle_accepted_problems": [],
    "heddle_downgrade": False,
    "heddle_upgrade_soak_s": 60,
    "heddle_upgrade_gate_s": 90,
    "heddle_firewall": False,
    "heddle_firewall_trusted": [],
    "group_names": ["heddle"],
}


def inventory(**changes):
    """A good fleet of three, with changes to the values of its machines."""
    machines = {
        "control-1": {"heddle_address": "10.0.0.1"},
        "router-1": {"heddle_address": "10.0.0.2"},
        "gpu-1": {"heddle_address": "10.0.0.3", "group_names": ["fabric_ib_a", "heddle_agents"]},
    }
    for name, values in changes.items():
        machines.setdefault(name.replace("_", "-"), {}).update(values)
    hostvars = {name: {**VALUES, **values} for name, values in machines.items()}
    groups = {
        "heddle": sorted(machines),
        "heddle_control": ["control-1"],
        "heddle_routers": ["router-1"],
        "heddle_agents": [name for name in sorted(machines) if name.startswith("gpu")],
    }
    return hostvars, groups


class Controls(unittest.TestCase):
    SHARED = {"heddle_control_extra": {"store": {"postgres": {"address": "db:5432"}}}}

    def two(self, first, second):
        hostvars, groups = inventory(control_1=first, control_2={"heddle_address": "fd00::2", **second})
        groups["heddle_control"] = ["control-1", "control-2"]
        return hostvars, groups

    def test_several_want_one_store(self):
        found = fleet.inventory_problems(*self.two({}, self.SHARED))
        self.assertEqual(len(found), 1)
        self.assertIn("store.postgres in heddle_control_extra", found[0])
        self.assertEqual(fleet.inventory_problems(*self.two(self.SHARED, self.SHARED)), [])

    def test_none_is_too_few(self):
        hostvars, groups = inventory()
        groups["heddle_control"] = []
        self.assertEqual(fleet.inventory_problems(hostvars, groups), ["group heddle_control has no machine: want at least one"])

    def test_each_is_reached_at_its_address_and_one_alone_where_it_listens(self):
        hostvars, groups = self.two({}, {})
        both = groups["heddle_control"]
        self.assertEqual(
            fleet.control_urls(hostvars, both), ["https://10.0.0.1:7443", "https://[fd00::2]:7443"]
        )
        self.assertEqual(
            fleet.admin_urls(hostvars, both), ["https://10.0.0.1:9090", "https://[fd00::2]:9090"]
        )
        for listen, url in (
            ("127.0.0.1:9090", "https://127.0.0.1:9090"),
            ("0.0.0.0:9095", "https://127.0.0.1:9095"),
            ("10.0.0.1:9090", "https://10.0.0.1:9090"),
        ):
            hostvars["control-1"]["heddle_admin_listen"] = listen
            self.assertEqual(fleet.admin_urls(hostvars, ["control-1"]), url)


class Engines(unittest.TestCase):
    def test_the_version_that_control_sees(self):
        nodes = json.dumps([{"name": "a", "inventory": {"engines": [{"name": "vllm", "version": "0.11.0"}]}}])
        self.assertEqual(fleet.engine_version(nodes, "a", "vllm"), "0.11.0")
        self.assertEqual(fleet.engine_version(nodes, "a", "sglang"), "")
        self.assertEqual(fleet.engine_version(nodes, "b", "vllm"), "")
        self.assertEqual(fleet.engine_version("cannot reach control", "a", "vllm"), "")

    def test_a_node_that_has_not_registered_has_none(self):
        nodes = json.dumps([{"name": "a", "inventory": None}])
        self.assertEqual(fleet.engine_version(nodes, "a", "vllm"), "")


class Inventory(unittest.TestCase):
    def problems(self, **changes):
        return fleet.inventory_problems(*inventory(**changes))

    def test_a_good_one_has_no_problem(self):
        self.assertEqual(self.problems(), [])

    def test_keys_are_of_a_file_or_of_control(self):
        self.assertEqual(self.problems(gpu_1={"heddle_router_key_policy": "control"}), [])
        [found] = self.problems(gpu_1={"heddle_router_key_policy": "open"})
        self.assertIn("want key_file or control", found)

    def test_every_type_is_demanded(self):
        for name, (kind, _words) in fleet.TYPES.items():
            wrong = [] if kind is str else "x"
            found = self.problems(gpu_1={name: wrong})
            self.assertEqual(len(found), 1, (name, found))
            self.assertIn(f"gpu-1: {name} is", found[0])

    def test_every_value_of_group_vars_has_a_type(self):
        text = (ANSIBLE / "group_vars/all.yml").read_text()
        values = set(re.findall(r"^(heddle_\w+):", text, re.M))
        # These two come out of what is on the controller.
        self.assertEqual(values - {"heddle_trust", "heddle_ctl"}, set(fleet.TYPES))

    def test_a_launcher_is_one_of_two(self):
        self.assertEqual(
            self.problems(gpu_1={"heddle_launcher": "docker"}),
            ['gpu-1: heddle_launcher is "docker": want systemd or process'],
        )

    def test_a_node_is_called_as_in_the_inventory(self):
        self.assertEqual(self.problems(gpu_1={"heddle_agent_extra": {"node": "gpu-1"}}), [])
        [found] = self.problems(gpu_1={"heddle_agent_extra": {"node": "gpu-2"}})
        self.assertIn('gpu-1: heddle_agent_extra.node is "gpu-2": a node is called as in the inventory', found)

    def test_an_address_is_the_same_however_it_is_written(self):
        [found] = self.problems(gpu_1={"heddle_address": "fd00::1"}, gpu_2={"heddle_address": "FD00:0:0::1"})
        self.assertIn("gpu-1 and gpu-2 have one address, fd00::1", found)

    def test_true_is_no_number_and_no_text_is_true(self):
        self.assertIn("want a number", self.problems(gpu_1={"heddle_gpus_min": True})[0])
        self.assertIn("want true or false", self.problems(gpu_1={"heddle_firewall": "yes"})[0])

    def test_an_adapter_is_on_one_fabric(self):
        both = {"group_names": ["fabric_ib_a", "fabric_ib_b", "heddle_agents"]}
        self.assertEqual(
            self.problems(gpu_1=both),
            ["gpu-1: mlx5_0 is on fabric ib-b and, as mlx5_0, on ib-a: an adapter is on one"],
        )
        ports = {**both, "heddle_fabric_hcas": {"fabric_ib_a": ["mlx5_0:1"], "fabric_ib_b": ["mlx5_0:2"]}}
        self.assertEqual(self.problems(gpu_1=ports), [])
        part = {**both, "heddle_fabric_hcas": {"fabric_ib_a": ["mlx5_0:1"]}}
        self.assertEqual(len(self.problems(gpu_1=part)), 1)

    def test_a_fabric_group_must_be_told(self):
        found = self.problems(gpu_1={"group_names": ["fabric_x", "heddle_agents"]})
        self.assertEqual(found, ["gpu-1: group fabric_x is not in heddle_fabric_defs: say its name and adapters there"])

    def test_a_firewall_wants_addresses(self):
        found = self.problems(gpu_1={"heddle_firewall": True, "heddle_address": "gpu-1.example"})
        self.assertIn("want an address", found[0])

    def test_names_and_addresses_are_of_one_machine(self):
        found = self.problems(gpu_2={"heddle_address": "10.0.0.3"}, GPU_1={"heddle_address": "10.0.0.9"})
        self.assertEqual(len(found), 2, found)
        self.assertIn("have one name", found[0])
        self.assertIn("gpu-1 and gpu-2 have one address, 10.0.0.3", found[1])

    def test_a_name_must_fit_into_a_certificate(self):
        hostvars, groups = inventory()
        hostvars["gpu 1/x"] = hostvars["router-1"] | {"heddle_address": "10.0.0.7"}
        groups["heddle"].append("gpu 1/x")
        self.assertIn("cannot stand in a certificate", fleet.inventory_problems(hostvars, groups)[0])

    def test_fabrics_come_from_groups_and_own_adapters_win(self):
        hostvars, _groups = inventory(gpu_1={"heddle_fabric_hcas": {"fabric_ib_a": ["mlx5_7"]}})
        self.assertEqual(
            fleet.fabrics_of(hostvars["gpu-1"]),
            [{"name": "ib-a", "link_layer": "infiniband", "hcas": ["mlx5_7"]}],
        )
        self.assertEqual(fleet.fabrics_of(hostvars["router-1"]), [])


class Hardware(unittest.TestCase):
    FABRICS = [{"name": "ib-a", "hcas": ["mlx5_0"]}]

    def both(self, inventory, fabrics=(), gpus_min=0, accepted=()):
        text = json.dumps(inventory)
        return (
            fleet.hardware_problems(text, list(fabrics), gpus_min, list(accepted)),
            fleet.hardware_warnings(text, list(fabrics), gpus_min, list(accepted)),
        )

    def test_what_keeps_nothing_from_working_is_a_word_only(self):
        told = {"problems": [{"reason": "gpu_throttled", "detail": "hot"}]}
        self.assertEqual(self.both(told), ([], ["hot"]))

    def test_a_port_of_a_fabric_must_work_and_another_may_be_down(self):
        down = {"reason": "port_down", "detail": "it is down", "remedy": "check the cable"}
        for name, expected in (("mlx5_0", (["it is down check the cable"], [])), ("mlx5_9", ([], ["it is down check the cable"]))):
            self.assertEqual(self.both({"hcas": [{"name": name, "problems": [down]}]}, self.FABRICS), expected)

    def test_no_gpu_is_a_problem_only_where_there_should_be_some(self):
        told = {"problems": [{"reason": "nvidia_smi_missing", "detail": "no GPUs"}]}
        self.assertEqual(self.both(told)[0], [])
        self.assertEqual(self.both(told, gpus_min=1)[0], ["no GPUs", "there are 0 GPUs, 0 of them without a problem: want 1"])

    def test_what_is_accepted_is_not_told(self):
        told = {"problems": [{"reason": "fabric_degraded", "detail": "half"}]}
        self.assertEqual(self.both(told, self.FABRICS)[0], ["half"])
        self.assertEqual(self.both(told, self.FABRICS, accepted=["fabric_degraded"])[0], [])

    def test_a_gpu_is_named(self):
        told = {"gpus": [{}, {"index": 1, "problems": [{"reason": "gpu_lost", "detail": "gone"}]}]}
        self.assertEqual(self.both(told)[0], ["GPU 1: gone"])

    def test_gpus_with_one_problem_are_one_sentence(self):
        down = {"reason": "fabric_not_ready", "detail": "not up"}
        gpus = [{"index": at, "problems": [down]} for at in range(3)]
        gpus[1]["problems"].append({"reason": "mig_enabled", "detail": "cut"})
        self.assertEqual(self.both({"gpus": gpus})[0], ["GPU 0, 1, 2: not up", "GPU 1: cut"])

    def test_what_is_no_inventory_is_shown(self):
        for text in ("Error: x", "", None):
            self.assertIn("cannot be told", fleet.hardware_problems(text, [], 0, [])[0])


class Control(unittest.TestCase):
    def node(self, **changes):
        return {"name": "a", "state": "ready", "agent_version": "1.0.0", **changes}

    def test_missing_nodes_say_why(self):
        for node, why in (
            (self.node(), []),
            (self.node(state="cordoned"), []),
            (self.node(state="lost"), ["a is lost"]),
            (self.node(agent_version="0.9.0"), ["a runs 0.9.0, not 1.0.0"]),
            (self.node(name="b"), ["a has not registered"]),
        ):
            self.assertEqual(fleet.missing_nodes(json.dumps([node]), ["a"], "1.0.0"), why)
        self.assertEqual(fleet.missing_nodes("cannot reach control", ["a"], "1.0.0"), ["a has not registered"])

    def replicas(self, *shards):
        return json.dumps([{"shards": [{"shard_id": s, "node": n, "state": t, "pid": p} for s, n, t, p in shards]}])

    def test_the_gate_wants_every_shard_with_its_process(self):
        before = fleet.shards_on(self.replicas(("s", "a", "ready", 7), ("old", "a", "stopped", 8), ("t", "b", "ready", 9)), "a")
        self.assertEqual(before, {"s": 7})
        nodes = json.dumps([self.node()])
        for now, found in (
            (("s", "a", "ready", 7), []),
            (("s", "a", "ready", 70), ["shard s has pid 70, it was 7"]),
            (("x", "a", "ready", 7), ["shard s is gone"]),
            (("s", "a", "failed", 7), ["shard s is gone"]),
        ):
            self.assertEqual(fleet.upgrade_gate(nodes, self.replicas(now), "a", "1.0.0", before), found)
        self.assertIn("control does not tell its replicas", fleet.upgrade_gate(nodes, "", "a", "1.0.0", before))

    def test_lost_shards_are_those_with_another_process(self):
        before = self.replicas(("s", "a", "ready", 7), ("t", "b", "ready", 9), ("u", "b", "failed", 3))
        self.assertEqual(fleet.lost_shards(before, self.replicas(("s", "a", "ready", 7), ("t", "b", "ready", 10))), ["t"])

    def test_routers_are_demanded_by_instance(self):
        routers = [{"name": "r/1", "leased": True, "version": "1.0.0"}, {"name": "r/2", "leased": False, "version": "1.0.0"}]
        instances = [{"id": 1}, {"id": 2}]
        self.assertEqual(
            fleet.missing_routers(json.dumps(routers), ["r"], instances, "1.0.0"), ["router r/2 does not report"]
        )

    def test_a_version_is_read_from_metrics(self):
        text = '# HELP heddle_build_info x\nheddle_build_info{program="a",version="1.2.3"} 1\n'
        self.assertEqual(fleet.build_version(text), "1.2.3")
        self.assertEqual(fleet.build_version(""), "")


class Versions(unittest.TestCase):
    def result(self, current, version, upgrading=False, downgrade=False):
        looked = {"problems": [], "faults": [], "cautions": [], "guids": {}, "machine_id": "m", "arch": "x86_64", "current": current}
        return fleet.host_result(looked, version, upgrading, downgrade, [])["problems"]

    def test_skew(self):
        self.assertEqual(self.result("", "1.2.0"), [])
        self.assertEqual(self.result("1.2.0", "1.2.0"), [])
        self.assertIn("run upgrade.yml", self.result("1.1.0", "1.2.0")[0])
        self.assertEqual(self.result("1.1.0", "1.2.0", upgrading=True), [])
        self.assertIn("go by steps", self.result("1.0.9", "1.2.0", upgrading=True)[0])
        self.assertIn("go by steps", self.result("0.9.0", "1.0.0", upgrading=True)[0])
        self.assertIn("newer than", self.result("1.10.0", "1.9.0", upgrading=True)[0])
        self.assertEqual(self.result("1.10.0", "1.9.0", upgrading=True, downgrade=True), [])

    def test_nothing_is_newer_than_control(self):
        def problems(has, version, upgrading):
            return fleet.control_problems(json.dumps({"version": has}), "c", version, upgrading)

        self.assertEqual(fleet.control_problems("", "c", "1.2.0", False), [])
        self.assertEqual(problems("1.2.0", "1.2.0", False), [])
        for upgrading in (True, False):
            self.assertIn("nothing is ever newer than control", problems("1.1.9", "1.2.0", upgrading)[0])
        self.assertIn("name the release of the fleet", problems("1.2.0", "1.1.9", False)[0])
        self.assertEqual(problems("1.2.0", "1.1.9", True), [])

    def test_what_cannot_be_reached_says_why(self):
        found = fleet.host_result({"unreachable": True, "msg": "no route"}, "1.0.0", False, False, [])
        self.assertEqual(found["problems"], ["cannot be reached: no route"])

    def test_what_cannot_be_looked_at_says_why(self):
        for said, words in (
            ({"msg": "Missing sudo password"}, "cannot be looked at: Missing sudo password"),
            (
                {"msg": "MODULE FAILURE", "module_stderr": "/bin/sh: 1: /usr/bin/python3: not found"},
                "has no Python 3 that runs: apt-get install python3, or name one in ansible_python_interpreter",
            ),
            (
                {"msg": "MODULE FAILURE", "module_stderr": "ImportError: No module named json"},
                "cannot be looked at: MODULE FAILURE: ImportError: No module named json",
            ),
        ):
            self.assertEqual(fleet.host_result(said, "1.0.0", False, False, [])["problems"], [words])

    def test_a_fault_that_is_accepted_is_not_told(self):
        looked = {
            "problems": ["full"],
            "faults": [{"reason": "fabric_manager_missing", "detail": "no manager"}],
            "cautions": [], "guids": {}, "machine_id": "m", "arch": "x86_64", "current": "",
        }
        self.assertEqual(fleet.host_result(looked, "1.0.0", False, False, [])["problems"], ["full", "no manager"])
        accepted = ["fabric_manager_missing"]
        self.assertEqual(fleet.host_result(looked, "1.0.0", False, False, accepted)["problems"], ["full"])


class Roles(unittest.TestCase):
    def test_each_says_what_it_takes(self):
        roles = sorted((ANSIBLE / "roles").iterdir())
        self.assertGreater(len(roles), 10)
        for role in roles:
            self.assertTrue((role / "meta/argument_specs.yml").is_file(), role.name)


class Report(unittest.TestCase):
    def test_one_machine_under_two_names(self):
        hostvars = {name: {"preflight_result": {"problems": [], "machine_id": "m"}} for name in ("a", "b")}
        hostvars["a"]["preflight_result"]["problems"] = ["it is broken"]
        report = fleet.preflight_report(hostvars, ["a", "b"])
        self.assertEqual(report[0], "a: it is broken")
        self.assertIn("a and b have one /etc/machine-id", report[1])

    def test_one_guid_on_two_nodes(self):
        def seen(*guids):
            return {"preflight_result": {"problems": [], "guids": dict(guids)}}

        hostvars = {
            # Two ports of one card, as two devices.
            "a": seen(("mlx5_0", "0c42:a103:0065:f1c2"), ("mlx5_1", "0c42:a103:0065:f1c2")),
            "b": seen(("mlx5_4", "0c42:a103:0065:f1c2"), ("mlx5_5", "0c42:a103:0065:f1c3")),
            "c": {},
        }
        [found] = fleet.preflight_report(hostvars, ["a", "b", "c"])
        self.assertIn("mlx5_0 of a and mlx5_4 of b have one GUID, 0c42:a103:0065:f1c2", found)


class Firewall(unittest.TestCase):
    def test_addresses_by_family(self):
        self.assertEqual(
            fleet.by_family(["10.0.0.2", "fd00::1", "10.0.0.2", "10.1.0.0/16"]),
            {"v4": ["10.0.0.2", "10.1.0.0/16"], "v6": ["fd00::1"]},
        )


class HostCheck(unittest.TestCase):
    def test_disks_count_by_the_nearest_folder_there_is(self):
        self.assertEqual(host_check.disk_problems({"/nowhere/at/all": 0}), [])
        self.assertIn("/nowhere has", host_check.disk_problems({"/nowhere": 1e9})[0])

    def test_names_that_do_not_resolve(self):
        self.assertEqual(host_check.name_problems(["localhost"]), [])
        self.assertIn("cannot resolve nowhere.invalid", host_check.name_problems(["nowhere.invalid"])[0])

    def test_a_clock_that_is_off(self):
        self.assertEqual(host_check.clock_problems(0, 30), [])
        self.assertIn("ahead", host_check.clock_problems(1e9, 30)[0])
        self.assertIn("behind", host_check.clock_problems(9e12, 30)[0])

    def test_an_architecture_without_a_release(self):
        self.assertIn("build one", " ".join(host_check.base_problems(["vax"])))

    def test_a_port_that_somebody_has(self):
        import socket

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            found = [line for line in host_check.port_problems([port], []) if f"port {port} " in line]
            self.assertEqual(len(found), 1, found)
            self.assertIn("is taken by", found[0])
        self.assertEqual(host_check.port_problems([port], []), [])


class Rdma(unittest.TestCase):
    """Two adapters: one with a device file, one without."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sys, self.dev = folder.name, folder.name + "/dev"
        # Others have to get there.
        os.chmod(folder.name, 0o755)
        for name, guid in (("mlx5_0", "0c42:a103:0065:f1c2"), ("mlx5_1", "0000:0000:0000:0000")):
            device = pathlib.Path(folder.name, "class/infiniband", name)
            device.mkdir(parents=True)
            (device / "node_guid").write_text(guid + "\n")
        verbs = pathlib.Path(folder.name, "class/infiniband_verbs/uverbs0")
        verbs.mkdir(parents=True)
        (verbs / "ibdev").write_text("mlx5_0\n")
        os.mkdir(self.dev)
        for name in ("uverbs0", "rdma_cm"):
            pathlib.Path(self.dev, name).touch()
            os.chmod(f"{self.dev}/{name}", 0o666)

    def reasons(self, *hcas, user="nobody"):
        return [each["reason"] for each in host_check.rdma_faults(hcas, user, self.sys, self.dev)]

    def test_an_adapter_without_a_device_file_is_told(self):
        self.assertEqual(self.reasons("mlx5_0"), [])
        self.assertEqual(self.reasons("mlx5_0", "mlx5_1"), ["rdma_device_missing"])
        # That it is not there at all, the agent says.
        self.assertEqual(self.reasons("mlx5_9"), [])
        self.assertEqual(self.reasons(), [])
        os.remove(self.dev + "/uverbs0")
        self.assertEqual(self.reasons("mlx5_0"), ["rdma_device_missing"])

    @unittest.skipIf(os.geteuid() != 0, "only root can look as somebody else")
    def test_one_that_the_engines_user_cannot_open_is_told(self):
        os.chmod(self.dev + "/uverbs0", 0o600)
        for user in ("nobody", "there-is-no-such-user"):
            [found] = host_check.rdma_faults(["mlx5_0"], user, self.sys, self.dev)
            self.assertEqual(found["reason"], "rdma_device_denied")
            self.assertIn(f"{user} cannot read and write {self.dev}/uverbs0 (root:root, mode 0600)", found["detail"])
        self.assertEqual(self.reasons("mlx5_0", user=""), [])
        os.chmod(self.dev + "/uverbs0", 0o444)
        self.assertEqual(self.reasons("mlx5_0"), ["rdma_device_denied"])

    @unittest.skipIf(os.geteuid() != 0, "only root can look as somebody else")
    def test_of_many_each_is_told(self):
        paths = []
        for at in range(20):
            paths.append(f"{self.dev}/uverbs{at}")
            pathlib.Path(paths[-1]).touch()
            os.chmod(paths[-1], 0o600 if at % 3 == 0 else 0o666)
        self.assertEqual(host_check.closed_to("nobody", paths), paths[::3])

    def test_the_connection_manager_is_a_word_only(self):
        self.assertEqual(host_check.rdma_cautions(["mlx5_0"], "nobody", self.sys, self.dev), [])
        os.remove(self.dev + "/rdma_cm")
        [said] = host_check.rdma_cautions(["mlx5_0"], "nobody", self.sys, self.dev)
        self.assertIn("modprobe rdma_ucm", said)
        self.assertEqual(host_check.rdma_cautions([], "nobody", self.sys, self.dev), [])

    def test_a_guid_of_zeros_is_none(self):
        self.assertEqual(host_check.hca_guids(self.sys), {"mlx5_0": "0c42:a103:0065:f1c2"})
        self.assertEqual(host_check.hca_guids("/nowhere"), {})


class FabricManager(unittest.TestCase):
    def reasons(self, *devices, runs=()):
        with tempfile.TemporaryDirectory() as root:
            for at, (vendor, kind) in enumerate(devices):
                folder = pathlib.Path(root, "bus/pci/devices", f"0000:{at:02x}:00.0")
                folder.mkdir(parents=True)
                (folder / "vendor").write_text(vendor + "\n")
                (folder / "class").write_text(kind + "\n")
            for pid, name in enumerate(runs, 10):
                folder = pathlib.Path(root, "proc", str(pid))
                folder.mkdir(parents=True)
                (folder / "comm").write_text(name[:15] + "\n")
            return [each["reason"] for each in host_check.fabric_manager_faults(root, root + "/proc")]

    def test_only_switches_want_one(self):
        gpu, switch, other = ("0x10de", "0x030200"), ("0x10de", "0x068000"), ("0x8086", "0x068000")
        self.assertEqual(self.reasons(), [])
        self.assertEqual(self.reasons(gpu, other), [])
        self.assertEqual(self.reasons(gpu, switch, runs=["systemd"]), ["fabric_manager_missing"])
        self.assertEqual(self.reasons(gpu, switch, runs=["systemd", "nv-fabricmanager"]), [])


class Memlock(unittest.TestCase):
    def cautions(self, limits, status):
        with tempfile.TemporaryDirectory() as proc:
            one = pathlib.Path(proc, "1")
            one.mkdir()
            (one / "limits").write_text(limits)
            (one / "status").write_text(status)
            return host_check.memlock_cautions(proc)

    def test_only_a_bound_that_systemd_may_not_lift_is_told(self):
        bound = "Max locked memory         8388608              8388608              bytes\n"
        free = "Max locked memory         8388608              unlimited            bytes\n"
        every, none = "CapBnd:\t000001ffffffffff\n", "CapBnd:\t00000000a80425fb\n"
        self.assertEqual(self.cautions(free, none), [])
        self.assertEqual(self.cautions(bound, every), [])
        self.assertIn("may lock 8192 KiB", self.cautions(bound, none)[0])
        self.assertEqual(self.cautions("", ""), [])


class Acs(unittest.TestCase):
    """A GPU and a disk, each below a bridge of its own."""

    def cautions(self, config):
        with tempfile.TemporaryDirectory() as root:
            for bridge, device, vendor, kind in (
                ("0000:00:01.0", "0000:01:00.0", "0x10de", "0x030200"),
                ("0000:00:02.0", "0000:02:00.0", "0x144d", "0x010802"),
            ):
                folder = pathlib.Path(root, "devices/pci0000:00", bridge, device)
                folder.mkdir(parents=True)
                (folder / "vendor").write_text(vendor + "\n")
                (folder / "class").write_text(kind + "\n")
                (folder.parent / "vendor").write_text("0x8086\n")
                (folder.parent / "class").write_text("0x060400\n")
                (folder.parent / "config").write_bytes(config)
                bus = pathlib.Path(root, "bus")
                bus.mkdir(exist_ok=True)
                (bus / device).symlink_to(folder)
                (bus / bridge).symlink_to(folder.parent)
            return host_check.acs_cautions(str(bus))

    @staticmethod
    def config(control):
        aer = struct.pack("<I", 0x0001 | 1 << 16 | 0x148 << 20)
        acs = struct.pack("<IHH", 0x000D | 1 << 16, 0x005F, control)
        return bytes(0x100) + aer + bytes(0x44) + acs + bytes(64)

    def test_a_bridge_above_a_gpu_that_redirects_is_told(self):
        said = self.cautions(self.config(0x001D))
        self.assertEqual(len(said), 1)
        self.assertIn("0000:00:01.0", said[0])
        self.assertNotIn("0000:00:02.0", said[0])

    def test_what_does_not_redirect_or_cannot_be_seen_is_not(self):
        for config in (self.config(0x0001), bytes(64), b"", b"\xff" * 4096, bytes(4096)):
            self.assertEqual(self.cautions(config), [])
        self.assertEqual(host_check.acs_cautions("/nowhere"), [])


class ModelFolders(unittest.TestCase):
    MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
/dev/md0 /data xfs rw 0 0
filer:/export /data/share nfs4 rw,vers=4.2 0 0
filer:/export /data/my\\040share nfs rw 0 0
1:2 /pool fuse.mergerfs rw 0 0
systemd-1 /auto autofs rw 0 0
10.0.0.1@o2ib:/fs /auto lustre rw 0 0
"""

    def test_only_what_is_missing_on_disks_of_the_node_is_made(self):
        def looked(path, exists):
            return {"item": path, "stat": {"exists": exists}}

        stats = [
            looked("/data/models", False),
            looked("/data/old", True),
            looked("/data/share/models", False),
            looked("/data/shared-no", False),
            looked("/srv/models/", False),
            looked("/pool/models", False),
            looked("/auto/models", False),
        ]
        self.assertEqual(
            fleet.folders_to_make(stats, self.MOUNTS),
            ["/data/models", "/data/shared-no", "/srv/models/", "/pool/models"],
        )
        self.assertEqual(fleet.folders_to_make(stats[:1], ""), ["/data/models"])

    def test_the_mount_itself_is_shared_too(self):
        self.assertTrue(fleet.on_shared_mount("/data/share", self.MOUNTS))
        self.assertTrue(fleet.on_shared_mount("/data/my share/models", self.MOUNTS))
        self.assertFalse(fleet.on_shared_mount("/data", self.MOUNTS))
        self.assertTrue(fleet.on_shared_mount("/m", "filer:/root / nfs ro 0 0"))


if __name__ == "__main__":
    unittest.main()
