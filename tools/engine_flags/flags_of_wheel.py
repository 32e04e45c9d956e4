"""Writes down what an engine of some version understands, from the source in its wheel: the flags of
its server's argument parser, its environment variables, and the names of its metrics.

    pip download vllm --no-deps && python3 flags_of_wheel.py vllm-*.whl > vllm.txt

The parsers themselves import CUDA's libraries; their source says as much, and needs no GPU, no torch
and no installation. The output's first line names the package and its version; each other one is a
flag, a variable or a metric. Run it for a new version, and see in the diff what went away.
"""

import ast
import re
import sys
import zipfile

# Where each engine's server registers its flags, as patterns of paths in its wheel.
SOURCES = {
    "vllm": r"vllm/(engine/arg_utils|entrypoints/(common/cli_args|cli/serve|openai/cli_args))\.py",
    "sglang": r"sglang/srt/(server_args|arg_groups/fields/\w+)\.py",
}

# Where variables and metrics are, which are found by how they are spelt.
VARIABLES = {
    "vllm": r"vllm/envs\.py",
    "sglang": r"sglang/srt/(environ|utils/network)\.py",
}
METRICS = {
    "vllm": r"vllm/v1/metrics/\w+\.py",
    "sglang": r"sglang/srt/observability/\w+\.py",
}


def literal_flags(tree):
    """Flags that are spelt out in a call of add_argument."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and str(argument.value).startswith("-"):
                yield argument.value


def flag_of(name):
    return "--" + name.replace("_", "-")


def field_flags(tree):
    """Flags that are made from the fields of a class."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        if re.search(r"FrontendArgs$", node.name):
            for field in fields:
                yield flag_of(field.target.id)
        if any(is_namespace(each) for each in node.body):
            for field in fields:
                yield from annotated_flags(field)


def is_namespace(statement):
    return isinstance(statement, ast.Assign) and statement.targets[0].id == "_NS_PATH"


def annotated_flags(field):
    """Those of `name: A[type, Arg(aliases=[...])]`; fields without Arg or help are no flags."""
    annotation = field.annotation
    if not isinstance(annotation, ast.Subscript) or getattr(annotation.value, "id", "") != "A":
        return
    names = [flag_of(field.target.id)]
    for part in ast.walk(annotation):
        if not isinstance(part, ast.Call):
            continue
        if getattr(part.func, "id", "") == "Derived":
            return
        said = {each.arg: each.value for each in part.keywords}
        if "no_cli" in said and ast.literal_eval(said["no_cli"]):
            return
        if "cli_name" in said:
            names = [ast.literal_eval(said["cli_name"])]
        if "aliases" in said:
            names += ast.literal_eval(said["aliases"]) or []
    yield from names


def main(path):
    match = re.match(r"(?:.*/)?(\w+)-([^-]+)-", path)
    if match is None or match.group(1) not in SOURCES:
        sys.exit(f"{path} is no wheel of {' or '.join(SOURCES)}")
    package, version = match.groups()
    flags, words = set(), set()
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if re.fullmatch(SOURCES[package], name):
                tree = ast.parse(wheel.read(name))
                flags.update(literal_flags(tree), field_flags(tree))
            for places, spelling in (
                (VARIABLES, rf"\b{package.upper()}_[A-Z0-9_]+\b"),
                (METRICS, rf"\b{package}:[a-z0-9_]+\b"),
            ):
                if re.fullmatch(places[package], name):
                    words.update(re.findall(spelling, wheel.read(name).decode()))
    if len(flags) < 100:
        sys.exit(f"Only {len(flags)} flags were found: the source has moved, correct SOURCES")
    print(f"# {package} {version}: {len(flags)} flags, then variables and metrics")
    print("\n".join([*sorted(flags), *sorted(words)]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
