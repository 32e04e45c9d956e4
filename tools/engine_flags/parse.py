"""Has an engine's own argument parser read argument lists: a JSON list a line comes in, and for each
one a JSON object a line goes out: {"accepted": {name: value}} or {"refused": why}.

    /opt/venv/bin/python3 parse.py vllm < lists

Run it with a Python that has the engine installed; neither a GPU nor a driver is needed.
"""

import contextlib
import io
import json
import sys


def vllm_parser():
    import vllm.platforms
    from vllm.platforms.cpu import CpuPlatform

    # The wheel is CUDA's, whose platform cannot be imported without a driver; the flags are the same.
    vllm.platforms._current_platform = CpuPlatform()
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    root = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(root.add_subparsers(dest="subparser"))
    return root


def sglang_parser():
    import argparse

    from sglang.srt.server_args import ServerArgs

    root = argparse.ArgumentParser(prog="sglang.launch_server")
    ServerArgs.add_cli_args(root)
    return root


def answer(parser, argv):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = vars(parser.parse_args(argv))
    except SystemExit:
        return {"refused": said.getvalue().strip().splitlines()[-1:]}
    plain = (str, int, float, bool, list)
    return {"accepted": {name: each for name, each in parsed.items() if isinstance(each, plain)}}


def main():
    # What libraries print on import must not be taken for an answer.
    out = sys.stdout
    sys.stdout = sys.stderr
    parser = {"vllm": vllm_parser, "sglang": sglang_parser}[sys.argv[1]]()
    for line in sys.stdin:
        print(json.dumps(answer(parser, json.loads(line)), default=str), file=out)


if __name__ == "__main__":
    main()
