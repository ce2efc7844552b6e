"""Mutation testing of the time mathematics: which mistakes in a module would its tests notice?

    python scripts/mutation.py [--each NUMBER] [module ...]

mutmut writes the mutants; this runs them. Every test first tells, in a process of its own, which
functions it calls; then every mutant takes the place of its function in a fork of one process that
has collected all tests, and meets those that call it. No cache is warm in either, so a zone that
was read before hides no mutant; forking spares the collection, which is most of the time mutmut
itself takes. `mutmut show NAME` prints a survivor, `mutmut results` names them.

A module has hundreds of mutants. `--each` tries so many of every module, in an order by digest, so
that a part is a fair sample of the whole.

What was learned is kept under `mutants/`: a mutant meets a test again when the module or the file
of the test has changed. Remove the directory to begin afresh.
"""

import ast
import gc
import json
import os
import resource
import signal
import sys
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Callable
from cProfile import Profile
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from time import process_time
from types import CodeType
from typing import Any, TextIO

import pytest
from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.utils.file_utils import copy_src_dir
from mutmut.utils.format_utils import mangled_name_from_mutant_name

ROOM = Path("src/betimes/schedule")
KNOWN = Path("mutants/known.json")
KILLED, SURVIVED, UNTESTED, TIMED_OUT = 1, 0, 33, 36
SECONDS_TO_SPARE = 5
BYTES_MAX = 2 << 30

Tell = Callable[[dict[str, Any]], None]


def main(arguments: list[str]) -> int:
    """Write the mutants, run those of the modules, print a row for each module."""
    parser = ArgumentParser()
    parser.add_argument("--each", type=int, default=1 << 30)
    parser.add_argument("modules", nargs="*")
    wanted = parser.parse_args(arguments)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # pytest and mutmut have nothing to tell
    Path("mutants").mkdir(exist_ok=True)
    copy_src_dir()
    mutmut.create_mutants(1)
    sieve = Sieve(wanted.modules, wanted.each, report)
    chosen = [*config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection]
    pytest.main(["--rootdir=.", "-q", *chosen], plugins=[sieve])
    return sieve.code


class Sieve:
    """A pytest plugin whose loop runs mutants instead of tests."""

    def __init__(self, modules: list[str], each: int, report: TextIO) -> None:
        self.code = 1
        self._each = each
        self._modules = modules
        self._report = report
        self._items: dict[str, Any] = {}
        self._prints: dict[str, str] = {}
        self._known: dict[str, dict[str, Any]] = {"calls": {}, "killed": {}, "survived": {}}
        self._took: dict[str, float] = {}
        self._tests: dict[str, set[str]] = defaultdict(set)
        self._killers: dict[str, list[str]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Ask every test what it calls, then run every mutant."""
        gc.freeze()
        if KNOWN.exists():
            self._known |= json.loads(KNOWN.read_text())
        self._items = {item.nodeid: item for item in session.items}
        self._prints = {name: print_of(Path(name.split("::")[0])) for name in self._items}
        if self._learn_calls():
            self._save()
            self.code = 0
            for path in sorted(ROOM.glob("*.py")):
                if not self._modules or path.stem in self._modules:
                    self._module(path)
        return True

    def _save(self) -> None:
        KNOWN.write_text(json.dumps(self._known))

    def _learn_calls(self) -> bool:
        room = print_of(*sorted(ROOM.glob("*.py")))
        kept = self._known["calls"]
        self._known["calls"] = {}
        for name, test_print in self._prints.items():
            key = f"{room} {test_print} {name}"
            said = kept.get(key) or in_fork(partial(self._watch, name), SECONDS_TO_SPARE * 12)
            if not said or said["mistake"]:
                print(f"fails without any mutation: {name}: {said}", file=self._report)
                return False
            self._known["calls"][key] = said
            self._took[name] = said["took"]
            for function in said["calls"]:
                self._tests[function].add(name)
        return True

    def _module(self, path: Path) -> None:
        data = SourceFileMutationData(path=path)
        data.load()
        module_print = print_of(path)
        functions(f"betimes.schedule.{path.stem}")  # read here once, not in every fork
        names = sorted(data.exit_code_by_key, key=lambda name: sha256(name.encode()).digest())
        for name in names[: self._each]:
            data.exit_code_by_key[name] = self._mutant(name, module_print)
        data.save()
        self._save()
        counts = Counter(data.exit_code_by_key[name] for name in names[: self._each])
        if total := sum(counts.values()):
            caught = counts[KILLED] + counts[TIMED_OUT]
            print(
                f"{path.stem:14} mutants {total:4} of {len(names):4}  killed {counts[KILLED]:4}"
                f"  timed out {counts[TIMED_OUT]:2}  survived {counts[SURVIVED]:3}"
                f"  untested {counts[UNTESTED]:2}  {caught / total:6.1%}",
                file=self._report,
                flush=True,
            )

    def _mutant(self, name: str, module_print: str) -> int:
        function = mangled_name_from_mutant_name(name)
        if not self._tests.get(function):
            return UNTESTED
        key = f"{module_print} {name}"
        killer, killer_print = self._known["killed"].get(key, ("", None))
        if self._prints.get(killer, "") == killer_print:
            return KILLED
        survived = self._known["survived"].get(key, [])
        tests = [test for test in self._tests[function] if self._prints[test] not in survived]
        killers = self._killers[function]
        tests.sort(key=lambda test: (test not in killers, self._took[test], test))
        seconds = SECONDS_TO_SPARE + int(10 * sum(self._took[test] for test in tests))
        said = in_fork(partial(self._attack, name, tests), seconds)
        if said is None:
            return TIMED_OUT
        if said["killer"] is None:
            prints = {self._prints[test] for test in self._items}
            self._known["survived"][key] = sorted(prints)
            return SURVIVED
        killers.append(said["killer"])
        self._known["killed"][key] = [said["killer"], self._prints[said["killer"]]]
        return KILLED

    def _watch(self, name: str, tell: Tell) -> None:
        profile = Profile()
        before = process_time()
        profile.enable()
        mistake = self._mistake(name)
        profile.disable()
        took = process_time() - before
        called = [entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)]
        names = {mangled(code) for code in called if str(ROOM) in code.co_filename}
        tell({"calls": sorted(names), "took": took, "mistake": mistake})

    def _attack(self, mutant: str, tests: list[str], tell: Tell) -> None:
        put_in_place(mutant)
        tell({"killer": next((name for name in tests if self._mistake(name)), None)})

    def _mistake(self, name: str) -> str:
        """What went wrong in a test; called directly, for pytest's own protocol takes longer."""
        item = self._items[name]
        given = item.callspec.params if hasattr(item, "callspec") else {}
        try:
            item.obj(**given)
        except BaseException as error:  # noqa: BLE001 -- pytest.fail raises no Exception
            return repr(error)
        return ""


def mangled(code: CodeType) -> str:
    """The name mutmut gives to a function of the room."""
    owner, _, name = code.co_qualname.rpartition(".")
    module = f"betimes.schedule.{Path(code.co_filename).stem}"
    return f"{module}.xǁ{owner}ǁ{name}" if owner else f"{module}.x_{name}"


@cache
def functions(module: str) -> dict[str, ast.FunctionDef]:
    """What mutmut wrote for a module, by name."""
    source = Path("mutants/src", *module.split(".")).with_suffix(".py").read_text()
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in nodes:
        node.decorator_list = []
    return {node.name: node for node in nodes}


def put_in_place(mutant: str) -> None:
    """Let a function of the room behave as its mutant from now on."""
    module_name, _, name = mutant.rpartition(".")
    module = sys.modules[module_name]
    written = functions(module_name)[name]
    found: dict[str, Any] = {}
    text = compile(ast.Module([written], []), str(module.__file__), "exec")
    exec(text, vars(module), found)  # noqa: S102 -- the very purpose
    *owner, plain = name.partition("__mutmut_")[0].removeprefix("x").split("ǁ")
    place = vars(getattr(module, owner[-1])) if owner else vars(module)
    original = place[plain if owner else plain.removeprefix("_")]
    for wrapper in ("fget", "func", "__func__", "__wrapped__"):
        original = getattr(original, wrapper, original)
    original.__code__ = found[name].__code__
    original.__defaults__ = found[name].__defaults__
    original.__kwdefaults__ = found[name].__kwdefaults__


def in_fork(work: Callable[[Tell], None], seconds: int) -> dict[str, Any] | None:
    """What the work told, from a process of its own; nothing if it ran out of time or memory."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_AS, (BYTES_MAX, BYTES_MAX))
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            with os.fdopen(writer, "w") as pipe:
                work(lambda said: json.dump(said, pipe))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(told) if told else None


def print_of(*paths: Path) -> str:
    """A fingerprint of the contents of files."""
    return sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:12]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
