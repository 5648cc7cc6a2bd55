#!/usr/bin/env python3
"""The direction of includes between the rooms of the house, executed.

    include_direction.py ROOT         checks ROOT/src and ROOT/include/weft; prints each violation, exit code 1 if any
    include_direction.py --self-test  checks small trees, good and bad, to show that the check can fail

A folder of src/ may include itself and the folders to the left of it:

    base < arch, os < trace, timer < gmp < poll < sched < chan, sync, time < io < net, file

Folders of one rank do not know each other. `inspect` reads all below chan, and nobody reads inspect. Code in src/ may
also include public headers and the system's. A public header includes only the standard library, libc and other public
headers.
"""

import pathlib
import re
import sys
import tempfile

RANKS = [["base"], ["arch", "os"], ["trace", "timer"], ["gmp"], ["poll"], ["sched"], ["chan", "sync", "time"],
         ["io"], ["net", "file"]]

MAY_INCLUDE = {room: {lower for rank in RANKS[:i] for lower in rank} for i, rank in enumerate(RANKS) for room in rank}
MAY_INCLUDE["inspect"] = MAY_INCLUDE["chan"]

SOURCE_SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cpp", ".S"}

# Written by CMake into the build tree, so not found in include/.
GENERATED_PUBLIC_HEADERS = {"weft/version.h"}

STD_HEADERS = set("""
    algorithm any array atomic barrier bit bitset charconv chrono compare complex concepts condition_variable coroutine
    deque exception execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd
    iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional
    ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream
    stack stdexcept stop_token streambuf string string_view syncstream system_error thread tuple type_traits typeindex
    typeinfo unordered_map unordered_set utility valarray variant vector version
    cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint cstdio
    cstdlib cstring ctime cuchar cwchar cwctype cxxabi.h
""".split())

LIBC_HEADERS = set("""
    alloca.h assert.h byteswap.h ctype.h dirent.h dlfcn.h elf.h endian.h errno.h execinfo.h fcntl.h features.h float.h
    inttypes.h limits.h link.h locale.h math.h netdb.h poll.h pthread.h sched.h semaphore.h setjmp.h signal.h spawn.h
    stdarg.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h syscall.h time.h ucontext.h unistd.h wchar.h
""".split())
LIBC_FOLDERS = {"sys", "netinet", "arpa", "net"}

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(.*)$", re.MULTILINE)
OPERAND = re.compile(r'(?:"([^"\n]+)"|<([^>\n]+)>)')
# Comments, and the string literals that could contain the beginning of one; the literals are kept.
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\ \n]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def without_comments(text):
    """Blanks out comments and multi-line literals; line numbers stay the same."""

    def blank(match):
        token = match.group(0)
        return token if token[0] in "\"'" else "\n" * token.count("\n")

    return COMMENT_OR_LITERAL.sub(blank, text)


def includes(file):
    """Yields (line number, operand, included name or None, is quoted) for each include directive of a file."""
    text = without_comments(file.read_text(encoding="utf-8", errors="replace"))
    for directive in INCLUDE.finditer(text):
        line = text.count("\n", 0, directive.start()) + 1
        operand = directive.group(1).strip()
        name = OPERAND.match(operand)
        if name:
            yield line, operand, name.group(1) or name.group(2), name.group(1) is not None
        else:
            yield line, operand, None, False


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.src = self.root / "src"
        self.include = self.root / "include"
        self.violations = []

    def violation(self, file, line, text):
        self.violations.append(f"{file.relative_to(self.root)}:{line}: {text}")

    def find(self, including, name, quoted):
        """The file of this tree that an include names, found as the compiler would; None if it is not of this tree."""
        folders = ([including.parent] if quoted else []) + [self.src, self.include]
        for folder in folders:
            candidate = (folder / name).resolve()
            if candidate.is_file() and candidate.is_relative_to(self.root):
                return candidate
        return None

    def room(self, file):
        """The folder of src/ that a file is in; "" for a file that lies in src/ itself."""
        parts = file.relative_to(self.src).parts
        return parts[0] if len(parts) > 1 else ""

    def check(self):
        files = 0
        for base, check_file in [(self.src, self.check_private), (self.include, self.check_public)]:
            for file in sorted(base.rglob("*")):
                if file.is_file() and file.suffix in SOURCE_SUFFIXES:
                    files += 1
                    check_file(file)
        return files

    def check_private(self, file):
        room = self.room(file)
        if room not in MAY_INCLUDE:
            self.violation(file, 1, f"src/{room} is no room of the house: give it a rank in include_direction.py")
            return
        for line, operand, name, quoted in includes(file):
            if name is None:
                self.violation(file, line, f"an include that is computed cannot be judged: {operand}")
                continue
            target = self.find(file, name, quoted)
            if target is None:
                if quoted and name not in GENERATED_PUBLIC_HEADERS:
                    self.violation(file, line, f"{operand} is no file of this tree: system headers take <>")
            elif target.is_relative_to(self.src):
                other = self.room(target)
                if other != room and other not in MAY_INCLUDE[room]:
                    self.violation(file, line, f"{room} may not include {other or 'src'}: {operand}")
            elif not target.is_relative_to(self.include):
                self.violation(file, line, f"{operand} is neither in src/ nor in include/")

    def check_public(self, file):
        for line, operand, name, quoted in includes(file):
            if name is None:
                self.violation(file, line, f"an include that is computed cannot be judged: {operand}")
                continue
            target = self.find(file, name, quoted)
            if target is not None:
                if not target.is_relative_to(self.include / "weft"):
                    self.violation(file, line, f"a public header may not include a private one: {operand}")
            elif name not in GENERATED_PUBLIC_HEADERS and (quoted or not self.is_std_or_libc(name)):
                self.violation(file, line, f"a public header includes only std, libc and weft: {operand}")

    @staticmethod
    def is_std_or_libc(name):
        return name in STD_HEADERS or name in LIBC_HEADERS or name.split("/")[0] in LIBC_FOLDERS


# ---- the self-test ---------------------------------------------------------------------------------------------------

GOOD_TREE = {
    "include/weft/weft.h": "#include <weft/go.h>\n#include <weft/version.h>\n#include <map>\n#include <sys/types.h>\n",
    "include/weft/go.h": '#include "weft/detail/spawn.h"\n#include <time.h>\n',
    "include/weft/detail/spawn.h": "#include <cstddef>\n",
    "src/base/fatal.h": '#include <cstdio>\n#include <linux/futex.h>\n// #include "sched/loop.h"\n',
    "src/base/fatal.cpp": '#include "base/fatal.h"\n#include "fatal.h"\n/*\n#include "sched/loop.h"\n*/\n',
    "src/arch/context.S": '#include "base/fatal.h"\n',
    "src/os/futex.h": '#include "base/fatal.h"\n',
    "src/trace/event.h": '#include "os/futex.h"\n',
    "src/timer/heap.h": '#include "os/futex.h"\n',
    "src/gmp/processor.h": '#include "timer/heap.h"\n#include "trace/event.h"\n#include "weft/go.h"\n',
    "src/poll/poller.h": '#include "gmp/processor.h"\n',
    "src/sched/loop.h": '#include "poll/poller.h"\n',
    "src/chan/chan.cpp": '#include "sched/loop.h"\n#include <weft/weft.h>\n',
    "src/sync/mutex.h": '#include "sched/loop.h"\n',
    "src/time/ticker.h": '#include "sched/loop.h"\n#include <time.h>\n',
    "src/io/fd.h": '#include "sync/mutex.h"\n',
    "src/net/conn.cpp": '#include "sync/mutex.h"\n#include "io/fd.h"\n',
    "src/file/file.h": '#include "base/fatal.h"\n',
    "src/inspect/dump.h": '#include "sched/loop.h"\n',
}

# Each of these files, put into the good tree, must give exactly one violation, at the given line.
BAD_FILES = [
    ("src/base/bad.h", '#include "os/futex.h"\n', 1),
    ("src/arch/bad.h", '\n#include "os/futex.h"\n', 2),
    ("src/os/bad.h", '#include "gmp/processor.h"\n', 1),
    ("src/trace/bad.cpp", '#include "timer/heap.h"\n', 1),
    ("src/timer/bad.h", '#include "gmp/processor.h"\n', 1),
    ("src/gmp/bad.cpp", '#include <vector>\n\n#include "sched/loop.h"\n', 3),
    ("src/poll/bad.h", '  #  include "sched/loop.h"\n', 1),
    ("src/sched/bad.cpp", '#include "sync/mutex.h"\n', 1),
    ("src/sched/bad_relative.cpp", '#include "../sync/mutex.h"\n', 1),
    ("src/sched/bad_angle.cpp", '#include <sync/mutex.h>\n', 1),
    ("src/sched/bad_after_comment.cpp", '/* a\n b */ \n#include "sync/mutex.h"  // why not\n', 3),
    ("src/sched/bad_inspect.cpp", '#include "inspect/dump.h"\n', 1),
    ("src/chan/bad.h", '#include "sync/mutex.h"\n', 1),
    ("src/io/bad.h", '#include "file/file.h"\n', 1),
    ("src/net/bad.h", '#include "file/file.h"\n', 1),
    ("src/inspect/bad.h", '#include "sync/mutex.h"\n', 1),
    ("src/sched/bad_missing.h", '#include "sched/no_such_file.h"\n', 1),
    ("src/sched/bad_macro.h", "#define H <vector>\n#include H\n", 2),
    ("src/attic/bad.h", "int x;\n", 1),
    ("src/bad.h", "int x;\n", 1),
    ("include/weft/bad_private.h", '#include "sched/loop.h"\n', 1),
    ("include/weft/bad_private_relative.h", '#include "../../src/sched/loop.h"\n', 1),
    ("include/weft/detail/bad.h", "#include <boost/fiber/all.hpp>\n", 1),
    ("include/weft/bad_missing.h", "#include <weft/no_such_file.h>\n", 1),
]


def violations_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        tree = Tree(root)
        tree.check()
        return tree.violations


def self_test():
    failures = [f"the good tree has a violation: {v}" for v in violations_of(GOOD_TREE)]
    for path, text, line in BAD_FILES:
        found = violations_of({**GOOD_TREE, path: text})
        if len(found) != 1 or not found[0].startswith(f"{path}:{line}: "):
            failures.append(f"expected one violation at {path}:{line}, found {found}")
    for failure in failures:
        print(failure)
    print(f"{1 + len(BAD_FILES)} trees, {len(failures)} wrong verdicts")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    tree = Tree(arguments[0])
    files = tree.check()
    for violation in tree.violations:
        print(violation)
    print(f"{files} files, {len(tree.violations)} violations")
    if files == 0:
        print("nothing to check: wrong folder?")
        return 2
    return 1 if tree.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
