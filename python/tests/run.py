"""Runs one kind of the package's tests against a build folder, for CTest: pytest, doctest or mypy.

    python3 python/tests/run.py KIND BUILD/python BUILD/vitrine

Where something is missing it prints "skipped: " with what, which CTest shows as a skipped test.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def signatures(stub: Path) -> set[str]:
    """The functions of a stub with their parameters' names, Class.function(a, b)."""
    found = set()

    def visit(node: ast.AST, place: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, f"{place}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                found.add(f"{place}{child.name}({', '.join(argument.arg for argument in child.args.args)})")

    visit(ast.parse(stub.read_text()), "")
    return found


def main() -> int:
    kind, folder, program = sys.argv[1], *(str(Path(path).resolve()) for path in sys.argv[2:4])
    needed = {"pytest": ["numpy", "PIL", "pytest"], "doctest": ["numpy", "PIL", "pytest"], "mypy": ["numpy", "mypy"]}[kind]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        print("skipped: found no", " and no ".join(missing), "in", sys.executable)
        return 0
    # Arrow and Ray, where scripts/setup.sh has fetched them.
    present = subprocess.run([HERE / "get_packages", "--present", sys.executable], capture_output=True, text=True)
    fetched = [present.stdout.strip()] if present.returncode == 0 else []
    sys.path += fetched
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([folder, *fetched]),
        "VITRINE_PROGRAM": program,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if kind == "mypy":
        written, seen = (signatures(Path(folder) / path) for path in ("vitrine/_vitrine.pyi", "seen.pyi"))
        if written != seen:
            print("python/vitrine/_vitrine.pyi has", sorted(written - seen), "and not", sorted(seen - written))
            return 1
        environment["MYPYPATH"] = folder
        command = ["mypy", "--config-file", str(HERE.parent.parent / "pyproject.toml"), "--cache-dir", str(Path(folder) / "mypy")]
        done = subprocess.run([sys.executable, "-m", *command, "-p", "vitrine"], cwd=folder, env=environment)
        examples = sorted(map(str, HERE.parent.glob("examples/*.py")))
        if done.returncode == 0 and examples:
            done = subprocess.run([sys.executable, "-m", *command, *examples], cwd=HERE, env=environment)
        return done.returncode
    probe = "import vitrine\ntry:\n    vitrine.devices()\nexcept vitrine.DeviceError as error:\n    print(error)"
    said = subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True, text=True)
    if said.returncode == 0 and said.stdout and not os.environ.get("VITRINE_REQUIRE_DEVICE"):
        print("skipped:", said.stdout.strip())
        return 0
    what = [str(HERE)]
    if kind == "doctest":
        what = ["--doctest-modules", "--confcutdir", str(HERE), "-p", "conftest", str(Path(folder) / "vitrine")]
        environment["PYTHONPATH"] += os.pathsep + str(HERE)
        lacking = [name for name in ("fsspec", "pyarrow") if importlib.util.find_spec(name) is None]
        if lacking:
            print("without vitrine.batch: found no", " and no ".join(lacking))
            what.append("--ignore=" + str(Path(folder) / "vitrine" / "batch"))
        if importlib.util.find_spec("torch") is None:
            what.append(f"--ignore={Path(folder) / 'vitrine' / 'torch.py'}")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *what]
    return subprocess.run(command, env=environment, cwd=HERE).returncode


if __name__ == "__main__":
    sys.exit(main())
