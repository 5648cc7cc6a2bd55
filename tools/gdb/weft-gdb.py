"""Goroutines in gdb, of a live process or of a core file:

    info goroutines          number, state or what it waits for, and name of each
    goroutine N bt           the stack of goroutine N (any command that shows frames will do in place of bt)
    goroutine all bt         of all

gdb loads this by itself: every program that weft is linked to, and libweft.so, have it in them. If gdb says that it declines
to (it does unless the file is below a folder that it trusts): add-auto-load-safe-path <folder>, once, in ~/.config/gdb/gdbinit;
or: source <prefix>/share/weft/weft-gdb.py. libweft must have its debugging information.
"""

import re

import gdb
import gdb.unwinder

COLOURS = 16
REGISTERS = {"i386:x86-64": ("rip", "rsp", "rbp"), "aarch64": ("pc", "sp", "x29")}  # pc, sp, fp


def value(expression):
    return gdb.parse_and_eval(expression)


def word(v):
    return int(v.cast(gdb.lookup_type("unsigned long")))


def atomic(v):
    """What a std::atomic, or one of base/peekable.h, holds."""
    kind = v.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return v
    fields = kind.fields()
    for field in fields:
        if field.name in ("value_", "_M_i", "_M_b", "_M_p") or field.is_base_class:
            return atomic(v[field])
    return v


def registers():
    name = gdb.selected_frame().architecture().name()
    if name not in REGISTERS:
        raise gdb.GdbError("weft does not know the registers of " + name)
    return REGISTERS[name]


class Goroutine:
    STATES = ["dead", "runnable", "running", "waiting", "syscall", "detached", "preempted", "runnable"]
    REASONS = ["", "chan receive", "chan receive (nil chan)", "chan send", "chan send (nil chan)", "select",
               "select (no cases)", "sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock", "sync.Cond.Wait",
               "semacquire", "sync.WaitGroup.Wait", "latch wait", "barrier wait", "sync.Once.Do", "future wait", "sleep",
               "IO wait"]

    SHOWN = {"detached": "running"}  # a difference that matters to the scheduler only

    def __init__(self, g, thread):
        self.thread = thread
        self.id = int(atomic(g["id"]))
        self.state = int(atomic(g["state"]))
        self.reason = int(atomic(g["reason"]))
        self.pc, self.sp, self.fp = (word(g["context"][x]) for x in ("pc", "sp", "fp"))
        self.name = self.read_name(g)

    @classmethod
    def lender(cls, l):
        """One that waits for another, which runs on its stack meanwhile (sched/join.h)."""
        self = cls.__new__(cls)
        self.thread = None
        self.id = int(l["id"])
        self.state = cls.STATES.index("waiting")
        self.reason = int(l["reason"])
        self.pc, self.sp, self.fp = (word(l["context"][x]) for x in ("pc", "sp", "fp"))
        self.name = cls.read_name(l)
        return self

    @staticmethod
    def read_name(g):
        try:
            body = g["body"]
            if not body or not body["ops"] or not body["ops"]["extras"]:
                return ""
            # A goroutine with options has a block of its own, which begins with them.
            block = body["payload"].address.cast(gdb.lookup_type("unsigned long").pointer()).dereference()
            extras = gdb.Value(int(block)).cast(gdb.lookup_type("weft::detail::spawn_extras").pointer())
            return extras["name"]["_M_dataplus"]["_M_p"].string()
        except (gdb.error, UnicodeDecodeError):
            return ""

    def label(self):
        state = self.STATES[self.state] if self.state < len(self.STATES) else "?"
        if state == "waiting" and 0 < self.reason < len(self.REASONS):
            state = self.REASONS[self.reason]
        return self.SHOWN.get(state, state) + (', thread %d' % self.thread.num if self.thread else "")


def arenas():
    table = value("'weft::sched::(anonymous namespace)::arenas'")
    for i in range(int(atomic(table["count"]))):
        yield table["entries"][i]


def running_threads():
    """Which thread runs the goroutine at which address."""
    by_tid = {t.ptid[1]: t for t in gdb.selected_inferior().threads()}
    result = {}
    m = atomic(value("'weft::sched::sched'")["all_ms"])
    while word(m) != 0:
        g = word(atomic(m["curg"]))
        if g != 0:
            result[g] = by_tid.get(int(atomic(m["tid"])))
        m = m["all_link"]
    return result


def goroutines():
    """All that are alive, by number."""
    kind = gdb.lookup_type("weft::gmp::goroutine")
    size = (kind.sizeof + 63) & ~63
    threads = running_threads()
    found = []
    for arena in arenas():
        base, stride, carved = word(arena["base"]), int(arena["stride"]), int(atomic(arena["carved"]))
        for k in range(carved):
            low = base + k * stride
            at = low + stride - (low // stride) % COLOURS * 64 - size
            try:
                g = gdb.Value(at).cast(kind.pointer()).dereference()
                if int(atomic(g["state"])) == 0:
                    continue
                found.append(Goroutine(g, threads.get(at)))
                lender = g["lender"]
                while word(lender) != 0:
                    found.append(Goroutine.lender(lender))
                    lender = lender["outer"]
            except gdb.MemoryError:
                continue  # a core file leaves out pages that were never touched
    return sorted(found, key=lambda g: g.id)


class Detour(gdb.unwinder.Unwinder):
    """Makes the selected thread's innermost frame look as if a parked goroutine had called it: so everything that walks
    frames walks the goroutine's, in a core file too, where no register can be changed."""

    def __init__(self):
        super().__init__("weft goroutine")
        self.goroutine = None
        self.from_sp = None
        self.registers = None

    def __call__(self, pending):
        if self.goroutine is None:
            return None
        pc, sp, fp = (pending.read_register(r) for r in self.registers)
        if word(sp) != self.from_sp:
            return None
        info = pending.create_unwind_info(FrameId(sp, pc))
        g = self.goroutine
        for register, old, new in zip(self.registers, (pc, sp, fp), (g.pc, g.sp, g.fp)):
            info.add_saved_register(register, gdb.Value(new).cast(old.type))
        return info


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


detour = Detour()
gdb.unwinder.register_unwinder(None, detour, replace=True)


# gdb's frame 0 is always the thread's own: that of a goroutine which does not run is gdb's frame 1.
def execute_behind_detour(command):
    """With frame 1 selected. Where the command counts frames, that of the detour is added."""
    verb, _, rest = command.strip().partition(" ")
    rest = rest.strip()
    if verb in ("up", "down"):
        gdb.execute(verb + "-silently " + rest, to_string=True)
        if gdb.selected_frame().level() == 0:
            raise gdb.GdbError("Initial frame selected; you can't go down.")
        command = "frame"  # gdb shows a new frame behind the back of who wants to have its output
    elif abbreviates(verb, "frame", "f") and re.fullmatch(r"(level +)?\d+", rest):
        select_level(int(rest.split()[-1]) + 1)
        command = "frame"
    elif abbreviates(verb, "backtrace", "bt") or verb == "where" or re.match(r"f\w* +apply ", command):
        command = verb + " " + re.sub(r"(?<!\S)\d+(?!\S)", lambda n: str(int(n[0]) + 1), rest, count=1)
    return without_detour(gdb.execute(command, to_string=True))


def abbreviates(verb, command, alias):
    return verb == alias or (len(verb) > 1 and command.startswith(verb))


def select_level(level):
    frame = gdb.newest_frame()
    while frame is not None and frame.level() < level:
        frame = frame.older()
    if frame is None:
        raise gdb.GdbError("No frame at level %d." % (level - 1))
    frame.select()


def without_detour(text):
    if text.startswith("#0"):
        frame_1 = re.search(r"^#1 ", text, re.MULTILINE)
        text = text[frame_1.start():] if frame_1 else ""
    return re.sub(r"^(#|Stack level )(\d+)(,| *)", renumbered, text, flags=re.MULTILINE)


def renumbered(label):
    return (label[1] + str(int(label[2]) - 1)).ljust(len(label[1] + label[2])) + label[3]


def on_stack_of(g, command):
    """Runs a command with frames as the goroutine's; returns what it printed, without the frame of the detour."""
    if g.thread is not None and g.thread.is_valid():
        before = gdb.selected_thread()
        g.thread.switch()
        try:
            return gdb.execute(command, to_string=True)
        finally:
            before.switch()
    frame = gdb.newest_frame()
    frame.select()
    detour.registers = registers()
    detour.from_sp = word(frame.read_register(detour.registers[1]))
    detour.goroutine = g
    gdb.invalidate_cached_frames()
    try:
        first = gdb.newest_frame().older()
        if first is not None:
            first.select()
        return execute_behind_detour(command)
    finally:
        detour.goroutine = None
        gdb.invalidate_cached_frames()


class InfoGoroutines(gdb.Command):
    """Lists all goroutines: number, state or what it waits for, name."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for g in goroutines():
            name = ' "%s"' % g.name if g.name else ""
            print("%-8d [%s]%s" % (g.id, g.label(), name))


class GoroutineCommand(gdb.Command):
    """goroutine N|all COMMAND: runs COMMAND, say bt, on the stack of goroutine N, or of each."""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        which, _, command = argument.partition(" ")
        if not which or not command:
            raise gdb.GdbError("usage: goroutine N|all COMMAND")
        if which != "all" and not which.isdigit():
            raise gdb.GdbError("%s is not the number of a goroutine" % which)
        chosen = [g for g in goroutines() if which == "all" or g.id == int(which)]
        if not chosen:
            raise gdb.GdbError("there is no goroutine %s" % which)
        for g in chosen:
            name = ' "%s"' % g.name if g.name else ""
            if which == "all":
                print("goroutine %d [%s]%s:" % (g.id, g.label(), name))
            print(on_stack_of(g, command), end="\n" if which == "all" else "")


InfoGoroutines()
GoroutineCommand()
