#!/usr/bin/env python3
"""gdb_test.py GDB ROOT SUBJECT...: the gdb extension, as gdb finds it in each subject or its library by itself, on a live
process and on a core file."""

import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

GDB, ROOT, *SUBJECTS = sys.argv[1:]
COMMANDS = ["info goroutines", "goroutine all bt", "goroutine 1 bt 2", "goroutine 424242 bt", "bt 1",
            "echo \\n--three--\\n", "goroutine all bt 3", "echo \\n--first--\\n", "goroutine all frame 0",
            "echo \\n--second--\\n", "goroutine all frame 1", "echo \\n--up--\\n", "goroutine all up", "echo \\n--end--\\n"]


def run_gdb(*arguments):
    command = [GDB, "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set pagination off",
               "-iex", "set auto-load safe-path /"]
    return subprocess.run(command + list(arguments), capture_output=True, text=True, timeout=200)


def as_options(commands):
    return [x for c in commands for x in ("-ex", c)]


def check(what, done, running):
    text = done.stdout + done.stderr
    wanted = [
        (r"^1 +\[" + running, "the main goroutine"),
        (r"^\d+ +\[chan receive\]$", "a goroutine that waits"),
        (r'^\d+ +\[sleep\] "sleepy"$', "one with a name"),
        (r"^\d+ +\[future wait\]$", "one whose stack is lent"),
        (r'^goroutine \d+ \[sleep\] "sleepy":$', "its backtrace"),
        (r"everybody_waits", "the frame of the running one"),
        (r"there is no goroutine 424242", "a number that nobody has"),
    ]
    missing = [name for pattern, name in wanted if not re.search(pattern, text, re.MULTILINE)]
    if len(re.findall(r"^#\d+ .*wait_in_a_function", text.partition("--three--")[0], re.MULTILINE)) != 3:
        missing.append("three stacks with wait_in_a_function")
    if missing:
        sys.exit(f"{text}\nFAILED: {what}: {', '.join(missing)}")
    print(f"ok: {what}")
    check_numbers(what, done.stdout)


def check_numbers(what, text):
    """Frames are counted, and numbered, from the goroutine's innermost one."""
    parts = dict(re.findall(r"^--(\w+)--\n(.*?)(?=^--)", text, re.MULTILINE | re.DOTALL))
    frames = {name: [re.findall(r"^#(\d+) +(.*)$", one, re.MULTILINE)
                     for one in re.split(r"^goroutine .*:\n", shown, flags=re.MULTILINE)[1:]] for name, shown in parts.items()}
    for name, numbers in (("three", ["0", "1", "2"]), ("first", ["0"]), ("second", ["1"]), ("up", ["1"])):
        if len(frames[name]) != 6 or any([n for n, _ in one] != numbers for one in frames[name]):
            sys.exit(f"{text}\nFAILED: {what}: the numbers of frames after --{name}--: {frames[name]}")
    functions = {name: [[re.sub(r"^0x\w+ in ", "", f) for _, f in one] for one in shown] for name, shown in frames.items()}
    for name, level in (("first", 0), ("second", 1), ("up", 1)):
        if [one[0] for one in functions[name]] != [one[level] for one in functions["three"]]:
            sys.exit(f"{text}\nFAILED: {what}: frame {level} after --{name}-- is another one than in the backtrace")
    print(f"ok: {what}, numbers of frames")


def live(subject):
    check("live process", run_gdb("-ex", "break everybody_waits", "-ex", "run", *as_options(COMMANDS), subject), "running")


def core(subject):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if not re.fullmatch(r"core(\.%p)?", pattern):
        print(f"skipped: core file ({pattern} goes elsewhere)")
        return
    with tempfile.TemporaryDirectory() as folder:
        def unlimited():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            subprocess.run([subject], cwd=folder, env=dict(os.environ, WEFT_DUMP_CORE="1"), preexec_fn=unlimited,
                           capture_output=True, timeout=100)
        except subprocess.SubprocessError as e:
            print(f"skipped: core file ({e})")
            return
        cores = list(pathlib.Path(folder).glob("core*"))
        if not cores:
            print("skipped: core file (none was written)")
            return
        check("core file", run_gdb(*as_options(COMMANDS), subject, str(cores[0])), "running")


def strings(file, pattern):
    found = re.search(pattern, (pathlib.Path(ROOT) / file).read_text(), re.DOTALL)
    return re.findall(r'"([^"]*)"', found[1])


def same_words():
    for what, header, script in [
        ("states", ("src/gmp/goroutine.cpp", r"names\[\] = \{(.*?)\}"), r"STATES = \[(.*?)\]"),
        ("wait reasons", ("include/weft/detail/wait_reason.h", r"names\[\] = \{(.*?)\};"), r"REASONS = \[(.*?)\]"),
    ]:
        ours, theirs = strings(*header), strings("tools/gdb/weft-gdb.py", script)
        if ours != theirs:
            sys.exit(f"FAILED: the {what} of {header[0]} and of weft-gdb.py differ: {ours} {theirs}")


same_words()
for path in SUBJECTS:
    live(path)
    core(path)
