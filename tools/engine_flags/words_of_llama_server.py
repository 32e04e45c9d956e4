"""Writes down what a llama.cpp server understands: the flags and variables of its --help, and the names
of the metrics that it gives while it serves MODEL. In the form that flags_of_wheel.py has.

    python3 words_of_llama_server.py PATH/llama-server VERSION MODEL.gguf > llamacpp-VERSION.txt
"""

import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

LOAD_SECONDS_MAX = 60


def words_of_help(path):
    text = subprocess.run([path, "--help"], capture_output=True, check=True, timeout=60).stdout.decode()
    flags, variables = set(), set()
    for line in text.splitlines():
        variables.update(re.findall(r"\(env: ([A-Z0-9_]+)\)", line))
        # What it is called stands at the line's start; what it does may name others.
        match = re.match(r"--?[A-Za-z][\w-]*(?:[ ,]+--?[A-Za-z][\w-]*)*", line)
        if match:
            flags.update(re.findall(r"--?[A-Za-z][\w-]*", match.group(0)))
    return flags, variables


def metrics_of(path, model):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [path, "-m", model, "--host", "127.0.0.1", "--port", str(port), "--metrics", "-c", "256"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LOAD_SECONDS_MAX
        while time.monotonic() < deadline and server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    return set(re.findall(r"^(llamacpp:\w+)", answer.read().decode(), re.MULTILINE))
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        sys.exit(f"{path} gave no metrics within {LOAD_SECONDS_MAX} s")
    finally:
        server.kill()
        server.wait()


def main(path, version, model):
    flags, variables = words_of_help(path)
    metrics = metrics_of(path, model)
    if len(flags) < 100 or not metrics:
        sys.exit(f"Only {len(flags)} flags and {len(metrics)} metrics were found in {path}")
    print(f"# llamacpp {version}: {len(flags)} flags, then variables and metrics")
    print("\n".join([*sorted(flags), *sorted(variables), *sorted(metrics)]))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
