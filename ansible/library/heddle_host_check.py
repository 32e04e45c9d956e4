#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Looks at a machine before anything is changed on it. Reads only."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: heddle_host_check
short_description: Tells what of a machine is not as Heddle needs it
description:
  - Reads only. Every problem is a sentence, and all of them come at once.
options:
  ports:
    description: TCP ports that Heddle's own programs are going to listen on.
    type: list
    elements: int
    default: []
  engine_ports:
    description: First and last port of engines; empty on a machine without an agent.
    type: list
    elements: int
    default: []
  disks:
    description: Free GiB that folders need; a folder that is not there counts by its parent.
    type: dict
    default: {}
  names:
    description: Host names that must resolve.
    type: list
    elements: str
    default: []
  shm_min_mib:
    description: Least size of /dev/shm; 0 asks nothing.
    type: int
    default: 0
  engines:
    description: Whether engines are to run here, which lock memory and copy between PCI devices.
    type: bool
    default: false
  hcas:
    description: RDMA adapters of the node's fabrics, as sysfs names them.
    type: list
    elements: str
    default: []
  engine_user:
    description: Who is to open the adapters, whether or not there is such a user yet; empty for root.
    type: str
    default: ""
  architectures:
    description: Architectures there is a release for.
    type: list
    elements: str
    required: true
  clock:
    description: The controller's time in seconds since 1970; 0 asks nothing.
    type: float
    default: 0
  clock_skew_max_s:
    description: How far the machine's clock may be off.
    type: int
    default: 30
author: Heddle
"""

RETURN = r"""
problems: {type: list, returned: always, description: What is wrong, a sentence each.}
faults: {type: list, returned: always, description: "Problems that can be accepted, each with its reason and detail."}
cautions: {type: list, returned: always, description: What engines may stumble over, a sentence each.}
guids: {type: dict, returned: always, description: GUID of each RDMA adapter that has one.}
machine_id: {type: str, returned: always, description: Content of /etc/machine-id.}
arch: {type: str, returned: always, description: As uname tells it.}
current: {type: str, returned: always, description: Version that /opt/heddle/current holds, or nothing.}
"""

import grp
import json
import os
import platform
import pwd
import re
import socket
import struct
import subprocess
import sys
import time

from ansible.module_utils.basic import AnsibleModule

PYTHON_MIN = (3, 8)
# Credentials, bind mounts and socket hand-over behave as the units need from here on.
SYSTEMD_MIN = 247
LISTEN = "0A"
CAP_SYS_RESOURCE = 24
NVIDIA = "0x10de"
# "Bridge, other": what NVSwitches call themselves. Those of Blackwell are no PCI devices of the node.
NVSWITCH_CLASS = "0x0680"
# The kernel keeps 15 characters of "nv-fabricmanager".
FABRIC_MANAGER = "nv-fabricmanage"
# A user and group that owns nothing, where the engines' user is not there yet.
NOBODY = 65534
# Exit code of a look as somebody else that could not be had.
CANNOT_TELL = 255
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
# PCI Express Base Specification, "Access Control Services Extended Capability".
ACS_CAPABILITY = 0x000D
ACS_REQUEST_REDIRECT = 0x0004
PCI_CAPABILITIES_MAX = 64


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, IOError):
        return ""


def base_problems(architectures):
    found = []
    if sys.version_info[:2] < PYTHON_MIN:
        found.append(
            "Python is %s: want %d.%d or newer" % ((platform.python_version(),) + PYTHON_MIN)
        )
    if not os.path.isdir("/run/systemd/system"):
        found.append("systemd does not run it: Heddle's programs are systemd units")
    else:
        version = systemd_version()
        if version is not None and version < SYSTEMD_MIN:
            found.append("systemd is %d: want %d or newer" % (version, SYSTEMD_MIN))
    arch = os.uname()[4]
    if arch not in architectures:
        found.append(
            "it is %s, and heddle_dists has releases for %s only: build one with deno task build --arch %s"
            % (arch, ", ".join(sorted(architectures)) or "nothing", arch)
        )
    return found


def systemd_version():
    try:
        text = subprocess.check_output(["systemctl", "--version"]).decode()
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.match(r"systemd (\d+)", text)
    return int(match.group(1)) if match else None


def disk_problems(disks):
    found = []
    for folder, least in sorted(disks.items()):
        path = folder
        while not os.path.isdir(path):
            path = os.path.dirname(path)
        stat = os.statvfs(path)
        free = stat.f_bavail * stat.f_frsize / 2.0 ** 30
        if free < float(least):
            found.append("%s has %.1f GiB free: want %s GiB" % (folder, free, least))
    return found


def clock_problems(clock, most):
    off = time.time() - clock
    if clock == 0 or abs(off) <= most:
        return []
    return [
        "its clock is %d s %s: want %d s at most; certificates are judged by it"
        % (abs(off), "ahead" if off > 0 else "behind", most)
    ]


def name_problems(names):
    found = []
    for name in names:
        try:
            socket.getaddrinfo(name, None)
        except (socket.gaierror, UnicodeError) as error:
            found.append("it cannot resolve %s: %s" % (name, error))
    return found


def shm_problems(least):
    try:
        stat = os.statvfs("/dev/shm")
    except OSError:
        return ["/dev/shm is not there: engines pass tensors through it"]
    size = stat.f_blocks * stat.f_frsize // 2 ** 20
    if size >= least:
        return []
    return ["/dev/shm has %d MiB: want %d MiB; engines pass tensors through it" % (size, least)]


def memlock_cautions(proc="/proc"):
    """Engines are to lock all memory; only where systemd may not lift its own bound they cannot."""
    bound = re.search(r"^Max locked memory +\S+ +(\S+)", read("%s/1/limits" % proc), re.M)
    rights = re.search(r"^CapBnd:\s*([0-9a-f]+)", read("%s/1/status" % proc), re.M)
    if bound is None or bound.group(1) == "unlimited":
        return []
    if rights is None or int(rights.group(1), 16) >> CAP_SYS_RESOURCE & 1:
        return []
    return [
        "its systemd may lock %d KiB of memory and may not lift that (a container without "
        "CAP_SYS_RESOURCE): RDMA and pinned memory need it unlimited" % (int(bound.group(1)) // 1024)
    ]


def acs_redirects(config):
    """Whether a PCI bridge sends what devices say to each other up to the root; None: cannot be told."""
    at = 0x100
    for _ in range(PCI_CAPABILITIES_MAX):
        if at < 0x100 or at + 8 > len(config):
            return None
        header, = struct.unpack_from("<I", config, at)
        if header & 0xFFFF == ACS_CAPABILITY:
            control, = struct.unpack_from("<H", config, at + 6)
            return bool(control & ACS_REQUEST_REDIRECT)
        at = header >> 20
    return None


def acs_cautions(devices="/sys/bus/pci/devices"):
    """Bridges above GPUs and RDMA adapters that keep these from reaching each other directly."""
    above = {}
    try:
        names = sorted(os.listdir(devices))
    except OSError:
        return []
    for name in names:
        folder = os.path.realpath(os.path.join(devices, name))
        gpu = read(folder + "/vendor") == NVIDIA and read(folder + "/class").startswith("0x03")
        if not gpu and not os.path.isdir(folder + "/infiniband"):
            continue
        parent = os.path.dirname(folder)
        while PCI_ADDRESS.match(os.path.basename(parent)):
            above.setdefault(parent, []).append(name)
            parent = os.path.dirname(parent)
    redirecting = []
    for bridge in sorted(above):
        try:
            with open(bridge + "/config", "rb") as file:
                if acs_redirects(file.read()):
                    redirecting.append(os.path.basename(bridge))
        except (OSError, IOError):
            continue
    if not redirecting:
        return []
    return [
        "PCI ACS redirects requests at %s, above GPUs or RDMA adapters: copies between them are slow or "
        "hang. Without virtual machines switch ACS off in the firmware, or at each bridge with "
        "setpci -s ADDRESS ECAP_ACS+6.w=0" % ", ".join(redirecting)
    ]


def entries(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def fault(reason, detail):
    return {"reason": reason, "detail": detail}


def hca_guids(sys_root="/sys"):
    """{adapter: GUID}, without those that have none, as virtual functions before they are given one."""
    found = {}
    for name in entries(sys_root + "/class/infiniband"):
        guid = read("%s/class/infiniband/%s/node_guid" % (sys_root, name))
        if re.search("[1-9a-f]", guid):
            found[name] = guid
    return found


def rdma_devices(hcas, sys_root="/sys", dev="/dev/infiniband"):
    """{adapter: its device file, or nothing}, of those adapters that are on this machine."""
    names = {}
    for name in entries(sys_root + "/class/infiniband_verbs"):
        if name.startswith("uverbs"):
            names[read("%s/class/infiniband_verbs/%s/ibdev" % (sys_root, name))] = name
    found = {}
    for hca in hcas:
        if os.path.isdir("%s/class/infiniband/%s" % (sys_root, hca)):
            path = "%s/%s" % (dev, names.get(hca, "?"))
            found[hca] = path if os.path.exists(path) else ""
    return found


def become(user):
    """For good: call it in a process of its own."""
    try:
        entry = pwd.getpwnam(user)
        uid, gid = entry.pw_uid, entry.pw_gid
        groups = [gid] + [group.gr_gid for group in grp.getgrall() if user in group.gr_mem]
    except KeyError:
        uid, gid, groups = NOBODY, NOBODY, []
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)


def closed_to(user, paths):
    """Those of the paths that the user cannot read and write. Asked of the kernel, as that user."""
    if not user or not paths or os.geteuid() != 0:
        return [path for path in paths if not os.access(path, os.R_OK | os.W_OK)]
    child = os.fork()
    if child == 0:
        try:
            become(user)
            bits = [0 if os.access(path, os.R_OK | os.W_OK) else 1 << at for at, path in enumerate(paths[:7])]
            os._exit(sum(bits))
        finally:
            os._exit(CANNOT_TELL)
    status = os.waitpid(child, 0)[1]
    closed = os.WEXITSTATUS(status) if os.WIFEXITED(status) else CANNOT_TELL
    if closed == CANNOT_TELL:
        return []
    return [path for at, path in enumerate(paths[:7]) if closed & 1 << at] + (
        closed_to(user, paths[7:]) if len(paths) > 7 else []
    )


def described(path):
    stat = os.stat(path)
    try:
        owner = pwd.getpwuid(stat.st_uid).pw_name
    except KeyError:
        owner = stat.st_uid
    try:
        group = grp.getgrgid(stat.st_gid).gr_name
    except KeyError:
        group = stat.st_gid
    return "%s (%s:%s, mode %04o)" % (path, owner, group, stat.st_mode & 0o7777)


def rdma_faults(hcas, user, sys_root="/sys", dev="/dev/infiniband"):
    """What keeps engines from the adapters that sysfs shows: they open /dev/infiniband/uverbs*."""
    devices = rdma_devices(hcas, sys_root, dev)
    missing = sorted(hca for hca, path in devices.items() if not path)
    found = []
    if missing:
        found.append(
            fault(
                "rdma_device_missing",
                "%s cannot be opened by engines: %s has no uverbs device for it. Load ib_uverbs (modprobe "
                "ib_uverbs, and at every boot through /etc/modules-load.d; rdma-core does that)"
                % (", ".join(missing), dev),
            )
        )
    closed = closed_to(user, sorted(path for path in devices.values() if path))
    if closed:
        found.append(
            fault(
                "rdma_device_denied",
                "%s cannot read and write %s, so that engines have no RDMA. Install rdma-core, whose udev "
                "rules open it to all (mode 0666), or let that user in"
                % (user or "root", ", ".join(described(path) for path in closed)),
            )
        )
    return found


def rdma_cautions(hcas, user, sys_root="/sys", dev="/dev/infiniband"):
    """What only some libraries open."""
    path = dev + "/rdma_cm"
    if not any(rdma_devices(hcas, sys_root, dev).values()):
        return []
    if not os.path.exists(path):
        return ["%s is not there: NCCL does without, UCX and NVSHMEM may not. modprobe rdma_ucm" % path]
    if closed_to(user, [path]):
        return ["%s cannot read and write %s: NCCL does without, UCX and NVSHMEM may not" % (user or "root", described(path))]
    return []


def fabric_manager_faults(sys_root="/sys", proc="/proc"):
    """NVSwitches do nothing before the fabric manager has set them up; A100s do not tell that it has not."""
    devices = sys_root + "/bus/pci/devices"
    switches = [
        name
        for name in entries(devices)
        if read("%s/%s/vendor" % (devices, name)) == NVIDIA
        and read("%s/%s/class" % (devices, name)).startswith(NVSWITCH_CLASS)
    ]
    if not switches:
        return []
    if any(name.isdigit() and read("%s/%s/comm" % (proc, name)) == FABRIC_MANAGER for name in entries(proc)):
        return []
    return [
        fault(
            "fabric_manager_missing",
            "there are %d NVSwitches, and the fabric manager does not run: CUDA fails on the GPUs that they "
            "join. Install nvidia-fabricmanager in the driver's version, then systemctl enable --now "
            "nvidia-fabricmanager" % len(switches),
        )
    ]


def listeners():
    """{port: inode} of everything that listens on TCP."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read(table).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTEN:
                found[int(fields[1].rsplit(":", 1)[1], 16)] = fields[9]
    return found


def owners(inodes):
    """{inode: (pid, name, command line)} of those who hold the sockets."""
    wanted = dict(("socket:[%s]" % inode, inode) for inode in inodes)
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        folder = "/proc/%s/fd" % pid
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            try:
                target = os.readlink(os.path.join(folder, name))
            except OSError:
                continue
            inode = wanted.get(target)
            # systemd holds the sockets that it opens for others; whoever uses one is more telling.
            if inode is not None and (inode not in found or found[inode][0] == "1"):
                found[inode] = (pid, read("/proc/%s/comm" % pid), read("/proc/%s/cmdline" % pid))
    return found


def is_ours(owner):
    pid, _name, command = owner
    if "/opt/heddle/" in command:
        return True
    return pid == "1" and os.path.exists("/etc/systemd/system/heddle-router.socket")


def port_problems(ports, engine_ports):
    listening = listeners()
    last = engine_ports[1] if engine_ports else 0
    engine_range = range(engine_ports[0], last + 1) if engine_ports else []
    taken = [port for port in listening if port in ports or port in engine_range]
    held = owners([listening[port] for port in taken])
    found = []
    for port in sorted(taken):
        owner = held.get(listening[port])
        if owner is None:
            who = "somebody who cannot be seen from here"
        elif is_ours(owner):
            continue
        else:
            who = "%s, pid %s" % (owner[1], owner[0])
        # An engine that Heddle started holds a port of its range, and is not ours by its command.
        if port in ports:
            found.append("port %d is taken by %s: Heddle wants it" % (port, who))
    if engine_ports:
        low, high = (read("/proc/sys/net/ipv4/ip_local_port_range").split() + ["", ""])[:2]
        if low.isdigit() and int(low) <= last and int(high) >= engine_ports[0]:
            found.append(
                "the kernel gives out ports %s-%s for outgoing connections, engines use %d-%d: change "
                "heddle_engine_ports, or net.ipv4.ip_local_port_range" % (low, high, engine_ports[0], last)
            )
    return found


def current_version():
    try:
        return json.loads(read("/opt/heddle/current/release.json"))["version"]
    except (ValueError, KeyError, TypeError):
        return ""


def main():
    module = AnsibleModule(
        argument_spec=dict(
            ports=dict(type="list", elements="int", default=[]),
            engine_ports=dict(type="list", elements="int", default=[]),
            disks=dict(type="dict", default={}),
            names=dict(type="list", elements="str", default=[]),
            shm_min_mib=dict(type="int", default=0),
            engines=dict(type="bool", default=False),
            hcas=dict(type="list", elements="str", default=[]),
            engine_user=dict(type="str", default=""),
            architectures=dict(type="list", elements="str", required=True),
            clock=dict(type="float", default=0),
            clock_skew_max_s=dict(type="int", default=30),
        ),
        supports_check_mode=True,
    )
    given = module.params
    problems = (
        base_problems(given["architectures"])
        + disk_problems(given["disks"])
        + clock_problems(given["clock"], given["clock_skew_max_s"])
        + name_problems(given["names"])
        + port_problems(given["ports"], given["engine_ports"])
    )
    if given["shm_min_mib"] > 0:
        problems += shm_problems(given["shm_min_mib"])
    faults, cautions = [], []
    if given["engines"]:
        hcas, user = sorted(set(given["hcas"])), given["engine_user"]
        faults = rdma_faults(hcas, user) + fabric_manager_faults()
        cautions = memlock_cautions() + acs_cautions() + rdma_cautions(hcas, user)
    module.exit_json(
        changed=False,
        failed=False,
        problems=problems,
        faults=faults,
        cautions=cautions,
        guids=hca_guids() if given["engines"] else {},
        machine_id=read("/etc/machine-id"),
        arch=os.uname()[4],
        current=current_version(),
    )


if __name__ == "__main__":
    main()
