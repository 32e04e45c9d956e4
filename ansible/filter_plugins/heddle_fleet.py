"""What can be told of a fleet from its inventory, its nodes' hardware, and control's view of it.

Pure functions: values in, values out. Problems are sentences for operators; an empty list is good.
"""

import hashlib
import ipaddress
import json
import os
import re

NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$")
# Of fuse only what comes over a network: fuse.mergerfs and its like join the node's own disks.
SHARED = re.compile(
    r"^(nfs\d?|cifs|smb\d?|smbfs|lustre|ceph|beegfs|gpfs|glusterfs|ocfs2|gfs2|afs|9p|virtiofs|weka\w*|orangefs|"
    r"fuse\.(ceph\w*|glusterfs|sshfs|s3fs|rclone|juicefs|gcsfuse|goofys|geesefs|mountpoint-s3|weka\w*|lizardfs|moosefs|mfs\w*|alluxio\w*|blobfuse2?))$"
)
# What shells, and Ansible's own search, say of an interpreter that is not there.
NO_PYTHON = re.compile(r"python[\d.]*[^\n]{0,20}: (?:not found|no such file|command not found)|(?:no|any) python interpreter", re.I)
HCA = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*(:[1-9]\d?)?$")

# What every machine's variables must be, whatever plays it is in. An -e x=1 makes text of a number.
TYPES = {
    "heddle_cluster": (str, "text"),
    "heddle_catalog_file": (str, "the path of a catalog"),
    "heddle_ca_folder": (str, "a folder"),
    "heddle_cache_folder": (str, "a folder"),
    "heddle_certificate_valid": (str, "a time as in 90d"),
    "heddle_certificate_renew_before": (str, "a time as in 30d"),
    "heddle_address": (str, "text"),
    "heddle_listen": (str, "text"),
    "heddle_metrics_listen": (str, "text"),
    "heddle_dists": (dict, "a map from architecture to folder"),
    "heddle_certificate_hosts": (list, "a list"),
    "heddle_control_port": (int, "a number"),
    "heddle_control_extra": (dict, "a map"),
    "heddle_admin_listen": (str, "text"),
    "heddle_operator_tokens": (list, "a list"),
    "heddle_metrics_tls_listen": (str, "text"),
    "heddle_router_port": (int, "a number"),
    "heddle_router_instances": (list, "a list"),
    "heddle_router_key_policy": (str, "key_file or control"),
    "heddle_router_keys": (list, "a list"),
    "heddle_router_extra": (dict, "a map"),
    "heddle_fabric_defs": (dict, "a map"),
    "heddle_fabric_hcas": (dict, "a map"),
    "heddle_engines": (list, "a list"),
    "heddle_engine_env": (dict, "a map"),
    "heddle_engine_ports": (dict, "a map"),
    "heddle_model_dirs": (list, "a list"),
    "heddle_nvidia_smi": (str, "the path of nvidia-smi, or nothing"),
    "heddle_gpus_min": (int, "a number"),
    "heddle_launcher": (str, "systemd or process"),
    "heddle_agent_extra": (dict, "a map"),
    "heddle_disk_min_gib": (dict, "a map from folder to GiB"),
    "heddle_shm_min_mib": (int, "a number"),
    "heddle_clock_skew_max_s": (int, "a number"),
    "heddle_accepted_problems": (list, "a list"),
    "heddle_downgrade": (bool, "true or false"),
    "heddle_upgrade_soak_s": (int, "a number of seconds"),
    "heddle_upgrade_gate_s": (int, "a number of seconds"),
    "heddle_firewall": (bool, "true or false"),
    "heddle_firewall_trusted": (list, "a list"),
    "heddle_prometheus_folder": (str, "a folder"),
    "heddle_prometheus_group": (str, "a group"),
    "heddle_prometheus_unit": (str, "a unit, or nothing"),
    "heddle_prometheus_config": (str, "the path of a prometheus.yml, or nothing"),
    "heddle_grafana_provisioning": (str, "a folder"),
    "heddle_grafana_dashboards": (str, "a folder"),
    "heddle_grafana_group": (str, "a group"),
    "heddle_grafana_unit": (str, "a unit, or nothing"),
    "heddle_backup_folder": (str, "a folder"),
    "heddle_engine_tasks": (str, "the path of a file of tasks"),
    "heddle_restore": (str, "the path of a control.db"),
}

# What an agent tells that is worth knowing and keeps nothing from working.
HARMLESS = {
    "gpu_pcie_narrow",
    "gpu_persistence_off",
    "gpu_throttled",
    "gpu_xid",
    "mig_change_pending",
    "nvlink_inactive",
    "cpu_without_avx2",
    "hca_link_unstable",
    "model_dir_missing",
    "model_dir_unreadable",
    "model_dir_truncated",
    "host_facts_denied",
    "management_address_not_local",
}

# Without adapters, or without GPUs, these only say that there are none.
WITHOUT_FABRICS = {"rdma_driver_missing"}
WITHOUT_GPUS = {"nvidia_smi_missing"}


def inventory_problems(hostvars, groups):
    """Everything wrong with the inventory and its values, before any machine is asked."""
    found = []
    controls = list(groups.get("heddle_control", []))
    if not controls:
        found.append("group heddle_control has no machine: want at least one")
    alone = [host for host in controls if not _shares_store(hostvars[host])]
    if len(controls) > 1 and alone:
        found.append(
            f"group heddle_control has {len(controls)} machines ({', '.join(controls)}): want one, or "
            "store.postgres in heddle_control_extra, which several controls share"
        )
    for group in ("heddle_routers", "heddle_agents"):
        if not groups.get(group):
            found.append(f"group {group} has no machine: want at least one")
    for host in groups.get("heddle_canary", []):
        if host not in groups.get("heddle_agents", []):
            found.append(f"{host} is in heddle_canary and not in heddle_agents: want a node")
    names, addresses = {}, {}
    for host in groups.get("heddle", []):
        found.extend(f"{host}: {problem}" for problem in _host_problems(hostvars[host], host))
        names.setdefault(host.lower(), []).append(host)
        addresses.setdefault(_address_of(hostvars[host]), []).append(host)
    for hosts in names.values():
        if len(hosts) > 1:
            found.append(f"{' and '.join(hosts)} have one name: names differ by more than case")
    for address, hosts in addresses.items():
        if len(hosts) > 1:
            found.append(f"{' and '.join(hosts)} have one address, {address}: want one machine, one name")
    return found


def _address_of(variables):
    """As text that is the same however the address was written."""
    text = str(variables.get("heddle_address"))
    return str(ipaddress.ip_address(text)) if _is_address(text) else text.lower()


def _shares_store(variables):
    extra = variables.get("heddle_control_extra") or {}
    return isinstance(extra, dict) and "postgres" in (extra.get("store") or {})


def control_urls(hostvars, hosts):
    """Where agents and routers reach each control, in the inventory's order."""

    def url(variables):
        address = str(variables["heddle_address"])
        shown = f"[{address}]" if ":" in address else address
        return f"https://{shown}:{variables['heddle_control_port']}"

    return [url(hostvars[host]) for host in hosts]


def admin_urls(hostvars, hosts):
    """Where `heddle` reaches each control: one on its own machine, several at their addresses."""

    def url(variables):
        listen = str(variables["heddle_admin_listen"])
        port = listen.rsplit(":", 1)[1]
        address = str(variables["heddle_address"])
        shown = f"[{address}]" if ":" in address else address
        if len(hosts) == 1:
            shown = "127.0.0.1" if listen.startswith(("0.0.0.0:", "[::]:")) else listen.rsplit(":", 1)[0]
        return f"https://{shown}:{port}"

    found = [url(hostvars[host]) for host in hosts]
    return found[0] if len(found) == 1 else found


def _host_problems(variables, host):
    found = []
    if not NAME.match(host):
        found.append('the name cannot stand in a certificate: want letters, digits, ".", "_" and "-"')
    for name, (kind, words) in TYPES.items():
        value = variables.get(name)
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right:
            found.append(f"{name} is {_shown(value)}: want {words}")
    if found:
        return found
    if variables["heddle_router_key_policy"] not in ("key_file", "control"):
        found.append(f'heddle_router_key_policy is "{variables["heddle_router_key_policy"]}": want key_file or control')
    if variables["heddle_launcher"] not in ("systemd", "process"):
        found.append(f'heddle_launcher is "{variables["heddle_launcher"]}": want systemd or process')
    if "heddle_agents" in variables["group_names"]:
        found.extend(_fabric_problems(variables))
        node = variables["heddle_agent_extra"].get("node", host)
        if node != host:
            found.append(
                f"heddle_agent_extra.node is {_shown(node)}: a node is called as in the inventory, and so is its certificate"
            )
    if variables["heddle_firewall"] and not _is_address(variables["heddle_address"]):
        found.append(
            f"heddle_address is {variables['heddle_address']}: with heddle_firewall want an address, not a name"
        )
    return found


def _fabric_problems(variables):
    found = []
    holders = {}
    fabrics = {}
    for group in _fabric_groups(variables):
        definition = variables["heddle_fabric_defs"].get(group)
        if not isinstance(definition, dict):
            found.append(f"group {group} is not in heddle_fabric_defs: say its name and adapters there")
            continue
        name = definition.get("name")
        if not isinstance(name, str) or not NAME.match(name):
            found.append(f"heddle_fabric_defs.{group}.name is {_shown(name)}: want a name as in ib-a")
            continue
        if name in fabrics:
            found.append(f"groups {fabrics[name]} and {group} are both fabric {name}: want one group for each")
        fabrics[name] = group
        if definition.get("link_layer") not in (None, "infiniband", "ethernet"):
            found.append(
                f"heddle_fabric_defs.{group}.link_layer is {_shown(definition['link_layer'])}: "
                "want infiniband or ethernet"
            )
        hcas = _hcas(variables, group)
        if not isinstance(hcas, list) or not hcas:
            found.append(f"fabric {name} has no adapters: want hcas as in [mlx5_0]")
            continue
        for hca in hcas:
            if not isinstance(hca, str) or not HCA.match(hca):
                found.append(f"fabric {name} has adapter {_shown(hca)}: want mlx5_0, or mlx5_0:1")
                continue
            device = hca.split(":")[0]
            for other, holder in holders.items():
                whole = ":" not in hca or ":" not in other
                if other == hca or (whole and other.split(":")[0] == device):
                    found.append(f"{hca} is on fabric {name} and, as {other}, on {holder}: an adapter is on one")
            holders[hca] = name
    return found


def fabrics_of(variables):
    """The `fabrics` section of a node's agent.yaml."""
    return [
        {
            **{key: value for key, value in variables["heddle_fabric_defs"][group].items() if value is not None},
            "hcas": _hcas(variables, group),
        }
        for group in _fabric_groups(variables)
    ]


def _fabric_groups(variables):
    return sorted(group for group in variables["group_names"] if group.startswith("fabric_"))


def _hcas(variables, group):
    own = variables["heddle_fabric_hcas"].get(group)
    return variables["heddle_fabric_defs"][group].get("hcas") if own is None else own


def hardware_problems(inventory, fabrics, gpus_min, accepted):
    """What keeps a node from being used, out of what `heddle-agent --inventory json` printed."""
    return _told(inventory, fabrics, gpus_min, accepted, harmless=False)


def hardware_warnings(inventory, fabrics, gpus_min, accepted):
    """What else is worth knowing."""
    return _told(inventory, fabrics, gpus_min, accepted, harmless=True)


def _told(text, fabrics, gpus_min, accepted, harmless):
    try:
        inventory = _parsed(text)
    except (TypeError, ValueError):
        return [] if harmless else [f"its hardware cannot be told: the agent printed {_shown(text)}"]
    ignored = set(accepted)
    if not fabrics:
        ignored |= WITHOUT_FABRICS
    gpus = inventory.get("gpus", [])
    if gpus_min == 0:
        ignored |= WITHOUT_GPUS
    of_fabrics = {hca.split(":")[0] for fabric in fabrics for hca in fabric["hcas"]}
    told = [(problem, "") for problem in inventory.get("problems", [])]
    told.extend(_of_gpus(gpus))
    for hca in inventory.get("hcas", []):
        # A port that no fabric uses may be down; that it is, is worth a word.
        for problem in hca.get("problems", []):
            if harmless != (hca["name"] in of_fabrics):
                found = _sentence(problem, "")
                if problem.get("reason") not in ignored:
                    told.append(({"reason": "", "detail": found}, ""))
    sentences = [
        _sentence(problem, where)
        for problem, where in told
        if problem.get("reason") not in ignored
        and (problem.get("reason") == "" or harmless == (problem.get("reason") in HARMLESS))
    ]
    usable = sum(1 for gpu in gpus if not gpu.get("problems"))
    if not harmless and len(gpus) < gpus_min:
        sentences.append(f"there are {len(gpus)} GPUs, {usable} of them without a problem: want {gpus_min}")
    return sentences


def _of_gpus(gpus):
    """What is told of GPUs, each with where: eight that have one problem are one sentence."""
    found = {}
    for gpu in gpus:
        for problem in gpu.get("problems", []):
            alike = tuple(str(problem.get(key, "")) for key in ("reason", "detail", "remedy"))
            found.setdefault(alike, (problem, []))[1].append(str(gpu.get("index", 0)))
    return [(problem, f"GPU {', '.join(indices)}: ") for problem, indices in found.values()]


def _sentence(problem, where):
    remedy = problem.get("remedy", "")
    return f"{where}{problem.get('detail') or problem.get('reason')}{' ' + remedy if remedy else ''}"


def host_result(result, version, upgrading, downgrade, accepted):
    """What heddle_host_check told, or why it told nothing."""
    if result.get("problems") is None:
        return {"problems": [_why_unseen(result)], "cautions": [], "arch": "", "current": ""}
    problems = result["problems"] + [
        each["detail"] for each in result["faults"] if each["reason"] not in accepted
    ]
    current = result["current"]
    if current and older(version, current) and not (upgrading and downgrade):
        problems.append(
            f"{current} is installed, newer than {version}: upgrade.yml goes back only with heddle_downgrade"
        )
    elif current and current != version and not upgrading:
        problems.append(f"{current} is installed and the release is {version}: run upgrade.yml")
    elif current and minors_apart(version, current) > 1:
        problems.append(f"{current} is installed, {version} is more than a minor release away: go by steps")
    return {
        "problems": problems,
        "cautions": result["cautions"],
        "machine_id": result["machine_id"],
        "guids": result["guids"],
        "arch": result["arch"],
        "current": current,
    }


def control_problems(release_json, host, version, upgrading):
    """Why machines cannot have a release before control has it; release_json is control's, or nothing."""
    if not release_json:
        return []
    has = str(_parsed(release_json).get("version", ""))
    remedy = "upgrade control first, with upgrade.yml and without --limit"
    if older(has, version):
        return [f"{host} has {has} and the release is {version}: nothing is ever newer than control; {remedy}"]
    if has != version and not upgrading:
        return [f"{host} has {has} and the release is {version}: name the release of the fleet in heddle_dists"]
    return []


def _why_unseen(result):
    """Why heddle_host_check told nothing of a machine."""
    said = str(result.get("msg") or "no reason given").strip()
    if result.get("unreachable"):
        return f"cannot be reached: {said}"
    output = " ".join(str(result.get(key) or "") for key in ("msg", "module_stderr", "module_stdout"))
    if NO_PYTHON.search(output):
        return "has no Python 3 that runs: apt-get install python3, or name one in ansible_python_interpreter"
    words = str(result.get("module_stderr") or result.get("module_stdout") or "").strip()
    return f"cannot be looked at: {said}{': ' + words[-400:] if words else ''}"


def archive_name(folder, version):
    """Name of a release's archive: two builds of one version have two."""
    with open(os.path.join(folder, "SHA256SUMS"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    return f"heddle-{version}-{digest}.tar.gz"


def preflight_report(hostvars, hosts):
    """All problems as text, machine by machine; empty when there are none."""
    lines = []
    ids, guids = {}, {}
    for host in hosts:
        checked = hostvars[host].get("preflight_result") or {}
        for hca, guid in sorted((checked.get("guids") or {}).items()):
            guids.setdefault(guid, {}).setdefault(host, hca)
        for problem in checked.get("problems", []):
            lines.append(f"{host}: {problem}")
        if checked.get("machine_id"):
            ids.setdefault(checked["machine_id"], []).append(host)
    for same in ids.values():
        if len(same) > 1:
            lines.append(
                f"{' and '.join(same)} have one /etc/machine-id: one machine under two names, or a copied image"
            )
    for guid, holders in guids.items():
        if len(holders) > 1:
            named = " and ".join(f"{hca} of {host}" for host, hca in holders.items())
            lines.append(f"{named} have one GUID, {guid}: one machine under two names, or virtual functions given the same one")
    return lines


def shards_on(replicas_json, node):
    """What runs on a node: {shard: pid}, out of `heddle replicas --json`."""
    return {
        shard["shard_id"]: shard.get("pid")
        for replica in _parsed(replicas_json)
        for shard in replica.get("shards", [])
        if shard["node"] == node and shard["state"] not in ("stopped", "failed")
    }


def upgrade_gate(nodes_json, replicas_json, node, version, before):
    """What control does not see of an upgraded node as it should be; before is heddle_shards of then."""
    found = missing_nodes(nodes_json, [node], version)
    try:
        now = shards_on(replicas_json, node)
    except (TypeError, ValueError, KeyError):
        return found + ["control does not tell its replicas"]
    for shard, pid in before.items():
        if shard not in now:
            found.append(f"shard {shard} is gone")
        elif now[shard] != pid:
            found.append(f"shard {shard} has pid {now[shard]}, it was {pid}")
    return found


def lost_shards(before_json, now_json):
    """Shards that had a process before and now have none, or another."""
    before, now = (
        {
            shard["shard_id"]: shard.get("pid")
            for replica in _parsed(text)
            for shard in replica.get("shards", [])
            if shard["state"] not in ("stopped", "failed")
        }
        for text in (before_json, now_json)
    )
    return sorted(shard for shard, pid in before.items() if pid and now.get(shard) != pid)


def node_in(nodes_json, name):
    """Control's view of a node out of `heddle nodes --json`; empty when it knows none of that name."""
    try:
        nodes = _parsed(nodes_json)
    except (TypeError, ValueError):
        nodes = []
    return next((node for node in nodes if node["name"] == name), {})


def engine_version(nodes_json, name, engine):
    """The version of an engine that control sees on a node; empty when it sees none that runs."""
    # None for a node that has not registered since control started.
    engines = (node_in(nodes_json, name).get("inventory") or {}).get("engines") or []
    return next((str(each.get("version", "")) for each in engines if each.get("name") == engine), "")


def missing_nodes(nodes_json, wanted, version):
    """Nodes that control does not see alive with that version, each with why."""
    found = []
    for name in wanted:
        node = node_in(nodes_json, name)
        if not node:
            found.append(f"{name} has not registered")
        elif node["state"] in ("unreachable", "lost"):
            found.append(f"{name} is {node['state']}")
        elif node["agent_version"] != version:
            found.append(f"{name} runs {node['agent_version'] or 'an unknown version'}, not {version}")
    return found


def missing_routers(routers_json, hosts, instances, version):
    """Routers that do not report to control with that version, each with why."""
    try:
        routers = {router["name"]: router for router in _parsed(routers_json)}
    except (TypeError, ValueError):
        return ["control does not tell its routers"]
    found = []
    for name in [f"{host}/{instance['id']}" for host in hosts for instance in instances]:
        router = routers.get(name)
        if router is None or not router["leased"]:
            found.append(f"router {name} does not report")
        elif router["version"] != version:
            found.append(f"router {name} runs {router['version']}, not {version}")
    return found


def build_version(metrics):
    """The version in a program's /metrics; empty when it cannot be told."""
    match = re.search(r'^heddle_build_info\{[^}]*version="([^"]*)"', metrics or "", re.MULTILINE)
    return match.group(1) if match else ""


def by_family(addresses):
    """Addresses and networks, sorted, as {v4: […], v6: […]}."""
    result = {"v4": [], "v6": []}
    for address in sorted(set(addresses)):
        network = ipaddress.ip_network(address, strict=False)
        result[f"v{network.version}"].append(address)
    return result


# Beside the ports of plain HTTP, those with mutual TLS.
TLS_PORT_SHIFT = 100


def scrape_jobs(hostvars, groups, folder):
    """Prometheus' scrape_configs for every program of the fleet, as data."""

    def targets(group, ports_of):
        found = []
        for host in groups.get(group, []):
            variables = hostvars[host]
            shift = TLS_PORT_SHIFT if variables["heddle_metrics_tls_listen"] else 0
            address = str(variables["heddle_address"])
            shown = f"[{address}]" if ":" in address else address
            for port in ports_of(variables):
                found.append({"targets": [f"{shown}:{port + shift}"], "labels": {"machine": host}})
        return found

    jobs = [
        ("control", targets("heddle_control", lambda _: [9093])),
        (
            "router",
            targets(
                "heddle_routers",
                lambda variables: [int(each["admin_port"]) for each in variables["heddle_router_instances"]],
            ),
        ),
        ("agent", targets("heddle_agents", lambda _: [9092])),
    ]
    secure = any(hostvars[host]["heddle_metrics_tls_listen"] for host in groups.get("heddle_control", []))
    tls = {
        "scheme": "https",
        "tls_config": {
            "cert_file": f"{folder}/cert.pem",
            "key_file": f"{folder}/key.pem",
            "ca_file": f"{folder}/ca.pem",
            "min_version": "TLS13",
        },
    }
    return [
        {"job_name": f"heddle-{name}", **(tls if secure else {}), "static_configs": found}
        for name, found in jobs
    ]


def folders_to_make(stats, mounts):
    """Of the folders that were looked at, those that are not there and would lie on a disk of the node.

    What is mounted from elsewhere belongs to somebody else, who says what lies there and whose it is.
    """
    return [
        each["stat"].get("path") or each["item"]
        for each in stats
        if not each["stat"].get("exists") and not on_shared_mount(each["item"], mounts)
    ]


def on_shared_mount(path, mounts):
    """Whether what a path lies on, of a node's /proc/mounts, is a file system that several machines use."""
    path, found, kind = os.path.normpath(path) + "/", "", ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        at = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), fields[1])
        # Of two at one place the later one is seen.
        if path.startswith(at.rstrip("/") + "/") and len(at) >= len(found):
            found, kind = at, fields[2]
    return bool(SHARED.match(kind))


def older(version, than):
    """Whether a version comes before another, by its numbers."""
    return _numbers(version) < _numbers(than)


def minors_apart(version, other):
    """How many minor releases lie between two versions; 99 when their major numbers differ."""
    one, two = _numbers(version), _numbers(other)
    return abs(one[1] - two[1]) if one[0] == two[0] else 99


def _numbers(version):
    parts = re.match(r"^(\d+)\.(\d+)\.(\d+)", str(version))
    return tuple(int(part) for part in parts.groups()) if parts else (0, 0, 0)


def _is_address(text):
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        return False


def _parsed(text):
    """JSON, which ansible-core before 2.19 may have parsed already on its way through a variable."""
    return text if isinstance(text, (dict, list)) else json.loads(text)


def _shown(value):
    text = "not set" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 120 else text[:117] + "..."


class FilterModule:
    """Names under which playbooks know them."""

    def filters(self):
        return {
            "heddle_admin_urls": admin_urls,
            "heddle_archive_name": archive_name,
            "heddle_build_version": build_version,
            "heddle_by_family": by_family,
            "heddle_control_problems": control_problems,
            "heddle_control_urls": control_urls,
            "heddle_engine_version": engine_version,
            "heddle_fabrics": fabrics_of,
            "heddle_hardware_problems": hardware_problems,
            "heddle_hardware_warnings": hardware_warnings,
            "heddle_host_result": host_result,
            "heddle_inventory_problems": inventory_problems,
            "heddle_minors_apart": minors_apart,
            "heddle_lost_shards": lost_shards,
            "heddle_missing_nodes": missing_nodes,
            "heddle_missing_routers": missing_routers,
            "heddle_node": node_in,
            "heddle_folders_to_make": folders_to_make,
            "heddle_on_shared_mount": on_shared_mount,
            "heddle_older": older,
            "heddle_preflight_report": preflight_report,
            "heddle_scrape_jobs": scrape_jobs,
            "heddle_shards": shards_on,
            "heddle_upgrade_gate": upgrade_gate,
        }

