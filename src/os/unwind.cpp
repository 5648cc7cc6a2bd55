// The format is DWARF's call frame information with the changes that the System V ABI (.eh_frame) makes to it.
#include "os/unwind.h"

#include <cstring>

#include <link.h>

namespace weft::os {
namespace {

// ---- reading -------------------------------------------------------------------------------------------------------

// A stack under sanitizers has forbidden zones, and may belong to somebody else.
__attribute__((no_sanitize_address, no_sanitize_thread, noinline)) std::uintptr_t peek(std::uintptr_t at) noexcept {
  return *reinterpret_cast<const volatile std::uintptr_t*>(at);
}

bool read_stack(stack_bounds bounds, std::uintptr_t at, std::uintptr_t& out) noexcept {
  if (at < bounds.low || at > bounds.high - sizeof(std::uintptr_t) || at % sizeof(std::uintptr_t) != 0) return false;
  out = peek(at);
  return true;
}

class reader {
 public:
  reader(const std::uint8_t* at, const std::uint8_t* end) noexcept : at_(at), end_(end) {}

  const std::uint8_t* at() const noexcept { return at_; }
  bool done() const noexcept { return at_ >= end_; }
  void skip(std::size_t n) noexcept { at_ += n; }

  template <class T>
  T fixed() noexcept {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = *at_++;
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::int64_t signed_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const std::uint8_t byte = *at_++;
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  // A pointer in one of the encodings of .eh_frame; indirect ones are not followed, since nobody here needs their value.
  std::uintptr_t encoded(std::uint8_t how) noexcept {
    if (how == 0xff) return 0;
    const auto base = (how & 0x70) == 0x10 ? reinterpret_cast<std::uintptr_t>(at_) : 0;
    switch (how & 0x0f) {
      case 0x00: case 0x04: case 0x0c: return base + fixed<std::uint64_t>();
      case 0x01: return base + unsigned_leb();
      case 0x02: return base + fixed<std::uint16_t>();
      case 0x03: return base + fixed<std::uint32_t>();
      case 0x09: return base + static_cast<std::uintptr_t>(signed_leb());
      case 0x0a: return base + static_cast<std::uintptr_t>(std::intptr_t{fixed<std::int16_t>()});
      case 0x0b: return base + static_cast<std::uintptr_t>(std::intptr_t{fixed<std::int32_t>()});
      default: return 0;
    }
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// ---- what a table says about one program counter -------------------------------------------------------------------

#if defined(__x86_64__)
constexpr std::size_t register_count = 17, fp_register = 6, sp_register = 7, pc_register = 16;
#else
constexpr std::size_t register_count = 33, fp_register = 29, link_register = 30, sp_register = 31, pc_register = 32;
#endif

struct rule {
  enum kind : std::uint8_t { same, undefined, at_offset, is_offset, other_register, at_expression, is_expression } what = same;
  std::int64_t offset = 0;  // or the number of the other register
  const std::uint8_t* expression = nullptr;
};

struct row {
  rule registers[register_count];
  std::size_t cfa_register = sp_register;
  std::int64_t cfa_offset = 0;
  const std::uint8_t* cfa_expression = nullptr;
};

struct cie {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::size_t return_register = pc_register;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
  bool is_signal_frame = false;
  reader program{nullptr, nullptr};
};

struct fde {
  cie common;
  std::uintptr_t begin = 0, length = 0;
  reader program{nullptr, nullptr};
};

// The length field, and where the entry ends. False: the terminator, or the 64-bit format, which nobody emits.
bool enter_entry(const std::uint8_t* entry, reader& r) noexcept {
  std::uint32_t length;
  std::memcpy(&length, entry, 4);
  if (length == 0 || length == 0xffffffff) return false;
  r = reader(entry + 4, entry + 4 + length);
  return true;
}

bool parse_cie(const std::uint8_t* entry, cie& out) noexcept {
  reader r(nullptr, nullptr);
  if (!enter_entry(entry, r) || r.fixed<std::uint32_t>() != 0) return false;
  const auto version = r.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* augmentation = reinterpret_cast<const char*>(r.at());
  r.skip(std::strlen(augmentation) + 1);
  out.code_factor = r.unsigned_leb();
  out.data_factor = r.signed_leb();
  out.return_register = version == 1 ? r.fixed<std::uint8_t>() : r.unsigned_leb();
  if (*augmentation == 'z') {
    out.has_augmentation = true;
    const std::uint64_t bytes = r.unsigned_leb();
    reader a = r;
    for (const char* c = augmentation + 1; *c != '\0'; ++c) {
      if (*c == 'L') a.skip(1);
      if (*c == 'R') out.pointer_encoding = a.fixed<std::uint8_t>();
      if (*c == 'S') out.is_signal_frame = true;
      if (*c == 'P') {
        const auto how = a.fixed<std::uint8_t>();
        a.encoded(how & 0x7f);
      }
    }
    r.skip(bytes);
  } else if (*augmentation != '\0') {
    return false;
  }
  out.program = r;
  return true;
}

bool parse_fde(const std::uint8_t* entry, std::uintptr_t pc, fde& out) noexcept {
  reader r(nullptr, nullptr);
  if (!enter_entry(entry, r)) return false;
  const std::uint8_t* const here = r.at();
  const auto back = r.fixed<std::uint32_t>();
  if (back == 0 || !parse_cie(here - back, out.common)) return false;
  out.begin = r.encoded(out.common.pointer_encoding);
  out.length = r.encoded(out.common.pointer_encoding & 0x0f);
  if (pc < out.begin || pc >= out.begin + out.length) return false;
  if (out.common.has_augmentation) r.skip(r.unsigned_leb());
  out.program = r;
  return true;
}

// The index is a sorted table of (where the code begins, its entry), both relative to the index.
bool find_fde(const code_map::module& m, std::uintptr_t pc, fde& out) noexcept {
  const std::uint8_t* index = m.index;
  constexpr std::uint8_t table_encoding = 0x3b;
  if (index == nullptr || index[0] != 1 || index[3] != table_encoding) return false;
  reader r(index + 4, nullptr);
  r.encoded(index[1]);
  const std::uintptr_t count = r.encoded(index[2]);
  struct pair {
    std::int32_t code, entry;
  };
  const std::uint8_t* table = r.at();
  const auto at = [&](std::uintptr_t i) {
    pair p;
    std::memcpy(&p, table + i * sizeof p, sizeof p);
    return p;
  };
  const auto wanted = static_cast<std::intptr_t>(pc - reinterpret_cast<std::uintptr_t>(index));
  std::uintptr_t low = 0, high = count;
  while (low < high) {
    const std::uintptr_t middle = low + (high - low) / 2;
    if (at(middle).code <= wanted) low = middle + 1; else high = middle;
  }
  return low != 0 && parse_fde(index + at(low - 1).entry, pc, out);
}

// Runs the table's program up to the row for `pc`. `initial` is what DW_CFA_restore goes back to.
class row_machine {
 public:
  row_machine(const cie& common, std::uintptr_t location, std::uintptr_t pc) noexcept
      : common_(common), location_(location), pc_(pc) {}

  bool run(reader r, row& now, const row& initial) noexcept {
    row saved[4];
    std::size_t depth = 0;
    while (!r.done()) {
      const auto op = r.fixed<std::uint8_t>();
      const std::uint8_t low = op & 0x3f;
      switch (op & 0xc0) {
        case 0x40: if (advance(low)) return true; continue;
        case 0x80: set(now, low, {rule::at_offset, scaled(r.unsigned_leb()), nullptr}); continue;
        case 0xc0: restore(now, low, initial); continue;
      }
      switch (op) {
        case 0x00: break;  // nop
        case 0x01: location_ = r.encoded(common_.pointer_encoding); if (location_ > pc_) return true; break;
        case 0x02: if (advance(r.fixed<std::uint8_t>())) return true; break;
        case 0x03: if (advance(r.fixed<std::uint16_t>())) return true; break;
        case 0x04: if (advance(r.fixed<std::uint32_t>())) return true; break;
        case 0x05: { const auto n = r.unsigned_leb(); set(now, n, {rule::at_offset, scaled(r.unsigned_leb()), nullptr}); break; }
        case 0x06: restore(now, r.unsigned_leb(), initial); break;
        case 0x07: set(now, r.unsigned_leb(), {rule::undefined, 0, nullptr}); break;
        case 0x08: set(now, r.unsigned_leb(), {rule::same, 0, nullptr}); break;
        case 0x09: { const auto n = r.unsigned_leb(); set(now, n, {rule::other_register, static_cast<std::int64_t>(r.unsigned_leb()), nullptr}); break; }
        case 0x0a: if (depth == 4) return false; saved[depth++] = now; break;
        case 0x0b: if (depth == 0) return false; now = saved[--depth]; break;
        case 0x0c: now.cfa_register = r.unsigned_leb(); now.cfa_offset = static_cast<std::int64_t>(r.unsigned_leb()); now.cfa_expression = nullptr; break;
        case 0x0d: now.cfa_register = r.unsigned_leb(); now.cfa_expression = nullptr; break;
        case 0x0e: now.cfa_offset = static_cast<std::int64_t>(r.unsigned_leb()); break;
        case 0x0f: now.cfa_expression = r.at(); r.skip(r.unsigned_leb()); break;
        case 0x10: { const auto n = r.unsigned_leb(); set(now, n, {rule::at_expression, 0, r.at()}); r.skip(r.unsigned_leb()); break; }
        case 0x11: { const auto n = r.unsigned_leb(); set(now, n, {rule::at_offset, r.signed_leb() * common_.data_factor, nullptr}); break; }
        case 0x12: now.cfa_register = r.unsigned_leb(); now.cfa_offset = r.signed_leb() * common_.data_factor; now.cfa_expression = nullptr; break;
        case 0x13: now.cfa_offset = r.signed_leb() * common_.data_factor; break;
        case 0x14: { const auto n = r.unsigned_leb(); set(now, n, {rule::is_offset, scaled(r.unsigned_leb()), nullptr}); break; }
        case 0x15: { const auto n = r.unsigned_leb(); set(now, n, {rule::is_offset, r.signed_leb() * common_.data_factor, nullptr}); break; }
        case 0x16: { const auto n = r.unsigned_leb(); set(now, n, {rule::is_expression, 0, r.at()}); r.skip(r.unsigned_leb()); break; }
        case 0x2d: break;                       // aarch64: the return address is signed; see strip_signature()
        case 0x2e: r.unsigned_leb(); break;     // size of the arguments
        default: return false;
      }
    }
    return true;
  }

 private:
  std::int64_t scaled(std::uint64_t n) const noexcept { return static_cast<std::int64_t>(n) * common_.data_factor; }
  // True: the row for pc_ is complete.
  bool advance(std::uint64_t n) noexcept { return (location_ += n * common_.code_factor) > pc_; }
  void set(row& now, std::uint64_t n, const rule& how) noexcept {
    if (std::size_t at; index_of(n, at)) now.registers[at] = how;
  }
  void restore(row& now, std::uint64_t n, const row& initial) noexcept {
    if (std::size_t at; index_of(n, at)) now.registers[at] = initial.registers[at];
  }
  // Vector registers have numbers too, and are of no interest.
  bool index_of(std::uint64_t n, std::size_t& at) const noexcept {
    at = n;
    return n < register_count;
  }

  const cie& common_;
  std::uintptr_t location_;
  const std::uintptr_t pc_;
};

// ---- from a row to the registers of the caller ---------------------------------------------------------------------

struct registers {
  std::uintptr_t value[register_count] = {};
  bool known[register_count] = {};

  void set(std::size_t n, std::uintptr_t v) noexcept { value[n] = v, known[n] = true; }
};

// The part of DWARF's stack machine that compilers and signal frames use. `push`: what is on the stack at the beginning.
bool evaluate(const std::uint8_t* expression, const registers& regs, stack_bounds bounds, const std::uintptr_t* push,
              std::uintptr_t& out) noexcept {
  reader sized(expression, nullptr);
  const std::uint64_t length = sized.unsigned_leb();
  reader r(sized.at(), sized.at() + length);
  std::uintptr_t stack[16];
  std::size_t n = 0;
  if (push != nullptr) stack[n++] = *push;
  while (!r.done()) {
    if (n == 16) return false;
    const auto op = r.fixed<std::uint8_t>();
    if (op >= 0x30 && op <= 0x4f) { stack[n++] = op - 0x30u; continue; }
    if (op >= 0x70 && op <= 0x8f) {
      const std::size_t reg = op - 0x70u;
      const auto offset = static_cast<std::uintptr_t>(r.signed_leb());
      if (reg >= register_count || !regs.known[reg]) return false;
      stack[n++] = regs.value[reg] + offset;
      continue;
    }
    if (op >= 0x1a && op <= 0x2e && op != 0x23 && n < 2) return false;
    switch (op) {
      case 0x06: if (n == 0 || !read_stack(bounds, stack[n - 1], stack[n - 1])) return false; break;
      case 0x08: stack[n++] = r.fixed<std::uint8_t>(); break;
      case 0x09: stack[n++] = static_cast<std::uintptr_t>(std::intptr_t{r.fixed<std::int8_t>()}); break;
      case 0x0a: stack[n++] = r.fixed<std::uint16_t>(); break;
      case 0x0b: stack[n++] = static_cast<std::uintptr_t>(std::intptr_t{r.fixed<std::int16_t>()}); break;
      case 0x0c: stack[n++] = r.fixed<std::uint32_t>(); break;
      case 0x0d: stack[n++] = static_cast<std::uintptr_t>(std::intptr_t{r.fixed<std::int32_t>()}); break;
      case 0x0e: case 0x0f: stack[n++] = r.fixed<std::uint64_t>(); break;
      case 0x10: stack[n++] = r.unsigned_leb(); break;
      case 0x11: stack[n++] = static_cast<std::uintptr_t>(r.signed_leb()); break;
      case 0x12: if (n == 0) return false; stack[n] = stack[n - 1]; ++n; break;
      case 0x1a: --n; stack[n - 1] &= stack[n]; break;
      case 0x1c: --n; stack[n - 1] -= stack[n]; break;
      case 0x21: --n; stack[n - 1] |= stack[n]; break;
      case 0x22: --n; stack[n - 1] += stack[n]; break;
      case 0x23: if (n == 0) return false; stack[n - 1] += r.unsigned_leb(); break;
      case 0x24: --n; stack[n - 1] <<= stack[n] & 63; break;
      case 0x2a: --n; stack[n - 1] = static_cast<std::intptr_t>(stack[n - 1]) >= static_cast<std::intptr_t>(stack[n]); break;
      default: return false;
    }
  }
  if (n == 0) return false;
  out = stack[n - 1];
  return true;
}

bool canonical_frame(const row& now, const registers& regs, stack_bounds bounds, std::uintptr_t& cfa) noexcept {
  if (now.cfa_expression != nullptr) return evaluate(now.cfa_expression, regs, bounds, nullptr, cfa);
  if (now.cfa_register >= register_count || !regs.known[now.cfa_register]) return false;
  cfa = regs.value[now.cfa_register] + static_cast<std::uintptr_t>(now.cfa_offset);
  return true;
}

// One register of the caller. False: it is not known.
bool recover(const rule& how, std::size_t n, const registers& regs, std::uintptr_t cfa, stack_bounds bounds,
             std::uintptr_t& out) noexcept {
  const std::uintptr_t at = cfa + static_cast<std::uintptr_t>(how.offset);
  switch (how.what) {
    case rule::same: out = regs.value[n]; return regs.known[n];
    case rule::undefined: return false;
    case rule::at_offset: return read_stack(bounds, at, out);
    case rule::is_offset: out = at; return true;
    case rule::other_register: {
      const auto other = static_cast<std::size_t>(how.offset);
      if (other >= register_count || !regs.known[other]) return false;
      out = regs.value[other];
      return true;
    }
    case rule::at_expression: return evaluate(how.expression, regs, bounds, &cfa, out) && read_stack(bounds, out, out);
    case rule::is_expression: return evaluate(how.expression, regs, bounds, &cfa, out);
  }
  return false;
}

std::uintptr_t strip_signature(std::uintptr_t pc) noexcept {
#if defined(__aarch64__)
  return pc & ((std::uintptr_t{1} << 48) - 1);
#else
  return pc;
#endif
}

// ---- a frame whose frame pointer is not known ----------------------------------------------------------------------

enum class stepped { on, end, lost };

stepped step(const code_map& code, registers& regs, stack_bounds bounds, bool& interrupted, bool may_search) noexcept;

#if defined(__x86_64__)
bool leads_to_end(const code_map& code, registers regs, stack_bounds bounds, bool interrupted) noexcept {
  stepped how = stepped::on;
  for (int frames = 0; how == stepped::on && frames < 256; ++frames) how = step(code, regs, bounds, interrupted, false);
  return how == stepped::end;
}

// A word of a module's own data, where the addresses are that the loader has filled in.
std::uintptr_t data_word(const code_map::module& m, std::uintptr_t at) noexcept {
  return at >= m.data_begin && at + sizeof at <= m.data_end && at % sizeof at == 0 ? peek(at) : 0;
}

std::uintptr_t relative(std::uintptr_t at) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(at);
  return at + 4 + static_cast<std::uintptr_t>(std::intptr_t{reader(bytes, bytes + 4).fixed<std::int32_t>()});
}

// Where a stub of the linker's jumps to: `jmp *offset(%rip)`, maybe after an endbr64 or with a prefix. Else the address itself.
std::uintptr_t behind_stub(const code_map& code, std::uintptr_t function) noexcept {
  const code_map::module* m = code.find(function);
  if (m == nullptr || function + 16 > m->end) return function;
  const auto* at = reinterpret_cast<const std::uint8_t*>(function);
  std::size_t i = at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e ? 4 : 0;
  if (at[i] == 0xf2) ++i;
  if (at[i] != 0xff || at[i + 1] != 0x25) return function;
  const std::uintptr_t target = data_word(*m, relative(function + i + 2));
  return target != 0 ? target : function;
}

// Whether a function ends in a jump to another, whose frame then takes the place of its own.
bool jumps_to(const code_map& code, std::uintptr_t from, std::uintptr_t to) noexcept {
  constexpr std::uintptr_t most = 4096;
  const code_map::module* m = code.find(from);
  fde f;
  if (m == nullptr || !find_fde(*m, from, f) || f.begin != from) return false;
  const std::uintptr_t end = f.begin + (f.length < most ? f.length : most);
  for (std::uintptr_t at = f.begin; at + 5 <= end; ++at) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(at);
    if ((bytes[0] == 0xe9 || (bytes[0] & 0xf0) == 0x80) && relative(at + 1) == to) return true;
  }
  return false;
}

// Whether a return address is one of a call of this function: it can be told of a call by name, also through a stub, but not of
// one through a pointer.
enum class call { none, maybe, certain };

call call_before(const code_map& code, std::uintptr_t return_address, std::uintptr_t function) noexcept {
  const code_map::module* m = code.find(return_address);
  if (m == nullptr || return_address < m->begin + 8) return call::none;
  const auto* at = reinterpret_cast<const std::uint8_t*>(return_address);
  const auto is_function = [&](std::uintptr_t target) {
    return target == function || (target != 0 && jumps_to(code, target, function));
  };
  if (at[-5] == 0xe8 && is_function(behind_stub(code, relative(return_address - 4)))) return call::certain;
  if (at[-6] == 0xff && at[-5] == 0x15) {
    return is_function(data_word(*m, relative(return_address - 4))) ? call::certain : call::none;
  }
  const auto indirect = [&](int length, unsigned form) { return at[-length] == 0xff && (at[1 - length] & 0xf8u) == form; };
  return indirect(2, 0xd0) || indirect(2, 0x10) || indirect(3, 0x50) || indirect(6, 0x90) ? call::maybe : call::none;
}

// Whether the function has made `push %rbp; mov %rsp, %rbp` and finds its frame by that. One that aligns its stack anew keeps its
// frame's address below that, and has pushed a copy of its return address before.
bool has_frame_pointer(const row& now) noexcept {
  constexpr std::uint8_t at_fp = 0x70 + fp_register;
  if (now.cfa_expression == nullptr) return now.cfa_register == fp_register && now.cfa_offset == 16;
  reader r(now.cfa_expression, nullptr);
  return r.unsigned_leb() != 0 && r.fixed<std::uint8_t>() == at_fp;
}

// Such a frame pointer points to a word that is followed by the return address of a call of this function; the remains of
// earlier calls that may lie below it are of calls of others. A call that can only be supposed to be one of this function
// must at least lead to the end of the stack.
void find_frame_pointer(const code_map& code, const fde& f, const row& now, registers& regs, stack_bounds bounds,
                        bool interrupted) noexcept {
  constexpr std::size_t farthest = 32 * 1024;
  if (regs.known[fp_register] || !has_frame_pointer(now)) return;
  const std::uintptr_t from = regs.value[sp_register];
  registers supposed = regs;
  for (std::uintptr_t at = from; at < from + farthest; at += sizeof at) {
    std::uintptr_t return_address;
    if (!read_stack(bounds, at + sizeof at, return_address)) break;
    const call before = call_before(code, return_address, f.begin);
    if (before == call::certain) return regs.set(fp_register, at);
    if (before == call::none || supposed.known[fp_register]) continue;
    supposed.set(fp_register, at);
    if (!leads_to_end(code, supposed, bounds, interrupted)) supposed = regs;
  }
  regs = supposed;
}
#else
void find_frame_pointer(const code_map&, const fde&, const row&, registers&, stack_bounds, bool) noexcept {}
#endif

// ---- one frame after the other -------------------------------------------------------------------------------------

// Goes from a frame to its caller. The end: this frame has none. Lost: this cannot be told.
stepped step(const code_map& code, registers& regs, stack_bounds bounds, bool& interrupted, bool may_search) noexcept {
  const std::uintptr_t pc = regs.value[pc_register] - (interrupted ? 0 : 1);
  const code_map::module* m = code.find(pc);
  fde f;
  if (m == nullptr || !find_fde(*m, pc, f)) return stepped::lost;
  row now, initial;
  if (!row_machine(f.common, 0, ~std::uintptr_t{0}).run(f.common.program, now, initial)) return stepped::lost;
  initial = now;
  if (!row_machine(f.common, f.begin, pc).run(f.program, now, initial)) return stepped::lost;
  if (may_search) find_frame_pointer(code, f, now, regs, bounds, interrupted);
  const std::size_t link = f.common.return_register;
  if (link >= register_count) return stepped::lost;
  if (now.registers[link].what == rule::undefined) return stepped::end;
  std::uintptr_t cfa;
  if (!canonical_frame(now, regs, bounds, cfa) || cfa < regs.value[sp_register]) return stepped::lost;
  registers caller;
  for (std::size_t n = 0; n < register_count; ++n) {
    std::uintptr_t value;
    if (recover(now.registers[n], n, regs, cfa, bounds, value)) caller.set(n, value);
  }
  if (!caller.known[link]) return stepped::lost;
  if (now.registers[sp_register].what == rule::same) caller.set(sp_register, cfa);
  const std::uintptr_t next = strip_signature(caller.value[link]);
  if (next == 0) return stepped::end;
  if (cfa == regs.value[sp_register] && next == regs.value[pc_register]) return stepped::lost;
  caller.set(pc_register, next);
  interrupted = f.common.is_signal_frame;
  regs = caller;
  return stepped::on;
}

}  // namespace

code_map code_map::read() {
  code_map map;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* modules) {
        module m{~std::uintptr_t{0}, 0, info->dlpi_addr, nullptr, 0, 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& p = info->dlpi_phdr[i];
          const std::uintptr_t at = info->dlpi_addr + p.p_vaddr;
          if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0) {
            if (at < m.begin) m.begin = at;
            if (at + p.p_memsz > m.end) m.end = at + p.p_memsz;
          } else if (p.p_type == PT_LOAD && (p.p_flags & PF_W) != 0) {
            m.data_begin = at;
            m.data_end = at + p.p_memsz;
          } else if (p.p_type == PT_GNU_EH_FRAME) {
            m.index = reinterpret_cast<const std::uint8_t*>(at);
          }
        }
        if (m.end != 0) static_cast<std::vector<module>*>(modules)->push_back(m);
        return 0;
      },
      &map.modules_);
  return map;
}

const code_map::module* code_map::find(std::uintptr_t pc) const noexcept {
  for (const module& m : modules_) {
    if (pc >= m.begin && pc < m.end) return &m;
  }
  return nullptr;
}

std::size_t unwind(const code_map& code, machine_state from, stack_bounds bounds, std::uintptr_t* pcs,
                   std::size_t max) noexcept {
  registers regs;
  regs.set(pc_register, from.pc);
  regs.set(sp_register, from.sp);
  if (from.fp != 0) regs.set(fp_register, from.fp);
#if defined(__aarch64__)
  if (from.link != 0) regs.set(link_register, from.link);
#endif
  bool interrupted = true;
  std::size_t n = 0;
  do {
    if (n == max) break;
    pcs[n++] = regs.value[pc_register] - (interrupted ? 0 : 1);
  } while (step(code, regs, bounds, interrupted, true) == stepped::on);
  return n;
}

}  // namespace weft::os
