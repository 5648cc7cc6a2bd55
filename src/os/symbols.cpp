#include "os/symbols.h"

#include <cstdlib>

#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include "os/module.h"

namespace weft::os {
namespace {

std::string demangled(const char* name) {
  if (name == nullptr) return {};
  int failed = -1;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &failed);
  std::string result = failed == 0 ? text : name;
  std::free(text);
  return result;
}

// ---- libdw, as its documentation describes it; there are no headers of it at build time ----

struct dwarf_die {
  void* address;
  void* unit;
  void* abbreviation;
  long padding;
};
struct dwarf_attribute {
  unsigned int code, form;
  unsigned char* value;
  void* unit;
};
struct dwfl_callbacks {
  void* find_elf;
  void* find_debuginfo;
  void* section_address;
  char** debuginfo_path;
};
using address = std::uint64_t;

enum : int { tag_class = 0x02, tag_block = 0x0b, tag_structure = 0x13, tag_inlined = 0x1d, tag_subprogram = 0x2e, tag_namespace = 0x39 };
enum : unsigned {
  attribute_abstract_origin = 0x31,
  attribute_specification = 0x47,
  attribute_call_file = 0x58,
  attribute_call_line = 0x59,
  attribute_linkage_name = 0x6e,
  attribute_old_linkage_name = 0x2007,
};

template <class F>
bool load(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  return function != nullptr;
}

struct libdw {
  void* (*begin)(const dwfl_callbacks*);
  void (*end)(void* dwfl);
  int (*proc_report)(void* dwfl, pid_t);
  int (*report_end)(void* dwfl, void* removed, void* argument);
  void* (*address_module)(void* dwfl, address);
  const char* (*address_info)(void* module, address, address* offset, void* symbol, unsigned* section, void** elf, address* bias);
  void* (*source_line)(void* module, address);
  const char* (*line_info)(void* line, address*, int* number, int* column, address*, address*);
  dwarf_die* (*address_unit)(void* module, address, address* bias);
  int (*scopes_of)(dwarf_die*, dwarf_die** result);
  int (*child)(dwarf_die*, dwarf_die* result);
  int (*sibling)(dwarf_die*, dwarf_die* result);
  int (*has_pc)(dwarf_die*, address);
  std::ptrdiff_t (*ranges)(dwarf_die*, std::ptrdiff_t, address* base, address* begin, address* end);
  int (*tag)(dwarf_die*);
  const char* (*name)(dwarf_die*);
  dwarf_attribute* (*attribute)(dwarf_die*, unsigned, dwarf_attribute*);
  dwarf_die* (*as_reference)(dwarf_attribute*, dwarf_die*);
  const char* (*as_string)(dwarf_attribute*);
  int (*as_number)(dwarf_attribute*, address*);
  int (*source_files)(dwarf_die* unit, void** files, std::size_t* count);
  const char* (*source_file)(void* files, std::size_t, address*, address*);
  dwfl_callbacks callbacks;

  bool open() {
    if (is_statically_linked()) return false;
    void* l = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (l == nullptr) return false;
    static char* no_path = nullptr;
    callbacks = {::dlsym(l, "dwfl_linux_proc_find_elf"), ::dlsym(l, "dwfl_standard_find_debuginfo"), nullptr, &no_path};
    return callbacks.find_elf != nullptr && callbacks.find_debuginfo != nullptr && load(l, "dwfl_begin", begin) &&
           load(l, "dwfl_end", end) && load(l, "dwfl_linux_proc_report", proc_report) &&
           load(l, "dwfl_report_end", report_end) && load(l, "dwfl_addrmodule", address_module) &&
           load(l, "dwfl_module_addrinfo", address_info) && load(l, "dwfl_module_getsrc", source_line) &&
           load(l, "dwfl_lineinfo", line_info) && load(l, "dwfl_module_addrdie", address_unit) &&
           load(l, "dwarf_getscopes_die", scopes_of) && load(l, "dwarf_child", child) &&
           load(l, "dwarf_siblingof", sibling) && load(l, "dwarf_haspc", has_pc) && load(l, "dwarf_ranges", ranges) &&
           load(l, "dwarf_formref_die", as_reference) &&
           load(l, "dwarf_tag", tag) && load(l, "dwarf_diename", name) && load(l, "dwarf_attr_integrate", attribute) &&
           load(l, "dwarf_formstring", as_string) && load(l, "dwarf_formudata", as_number) &&
           load(l, "dwarf_getsrcfiles", source_files) && load(l, "dwarf_filesrc", source_file);
  }
};

// Opened once and never closed.
const libdw* library() {
  static libdw functions;
  static const bool opened = functions.open();
  return opened ? &functions : nullptr;
}

}  // namespace

class symbolizer::debug_information {
 public:
  explicit debug_information(const libdw& l) : l_(l), dwfl_(l.begin(&l.callbacks)) {
    if (dwfl_ == nullptr) return;
    l_.proc_report(dwfl_, ::getpid());
    l_.report_end(dwfl_, nullptr, nullptr);
  }
  ~debug_information() {
    if (dwfl_ != nullptr) l_.end(dwfl_);
  }
  debug_information(const debug_information&) = delete;
  debug_information& operator=(const debug_information&) = delete;

  std::vector<symbol> at(std::uintptr_t pc) {
    void* module = dwfl_ != nullptr ? l_.address_module(dwfl_, pc) : nullptr;
    if (module == nullptr) return {};
    std::vector<symbol> found = with_inlined(module, pc);
    if (found.empty()) found.emplace_back();
    // The symbol table has the whole name, with parameters, and where the function begins.
    address offset = 0, bias = 0;
    elf_symbol unused;
    unsigned section = 0;
    void* elf = nullptr;
    if (const char* name = l_.address_info(module, pc, &offset, &unused, &section, &elf, &bias)) {
      found.back().function = demangled(name);
      found.back().in_function = offset;
    }
    if (void* line = l_.source_line(module, pc)) {
      if (const char* file = l_.line_info(line, nullptr, &found.front().line, nullptr, nullptr, nullptr)) found.front().file = file;
    }
    return found;
  }

 private:
  struct elf_symbol {
    std::uint64_t words[3];
  };
  struct function {
    address begin, end;
    dwarf_die die;
  };

  // Innermost first. Where each but the first was called is a property of the one before.
  std::vector<symbol> with_inlined(void* module, std::uintptr_t pc) {
    std::vector<symbol> result;
    address bias = 0;
    dwarf_die* unit = l_.address_unit(module, pc, &bias);
    if (unit == nullptr) return result;
    std::vector<dwarf_die> chain = inlined_at(*unit, pc - bias);
    std::string file;
    int line = 0;
    for (auto die = chain.rbegin(); die != chain.rend(); ++die) {
      result.push_back({name_of(*die), file, line, 0});
      file = call_file(unit, *die);
      line = static_cast<int>(number(*die, attribute_call_line));
    }
    return result;
  }

  // The function around the address, then what is inlined there, from the outside in.
  std::vector<dwarf_die> inlined_at(dwarf_die& unit, address pc) {
    std::vector<dwarf_die> chain;
    for (const function& f : functions_of(unit)) {
      if (pc < f.begin || pc >= f.end) continue;
      chain.push_back(f.die);
      break;
    }
    for (dwarf_die at = chain.empty() ? dwarf_die{} : chain.back(), inner; !chain.empty() && child_at(at, pc, inner); at = inner) {
      if (l_.tag(&inner) == tag_inlined) chain.push_back(inner);
    }
    return chain;
  }

  bool child_at(dwarf_die& die, address pc, dwarf_die& out) const {
    dwarf_die c;
    for (int more = l_.child(&die, &c); more == 0; more = l_.sibling(&c, &c)) {
      const int tag = l_.tag(&c);
      if ((tag != tag_inlined && tag != tag_block) || l_.has_pc(&c, pc) <= 0) continue;
      out = c;
      return true;
    }
    return false;
  }

  // libdw's own search does not find a function that is described inside of one that has no code itself, as the lambdas of
  // templates are.
  const std::vector<function>& functions_of(dwarf_die& unit) {
    auto [at, is_new] = units_.try_emplace(unit.address);
    if (is_new) collect_functions(unit, at->second);
    return at->second;
  }

  void collect_functions(dwarf_die& parent, std::vector<function>& out) const {
    dwarf_die c;
    for (int more = l_.child(&parent, &c); more == 0; more = l_.sibling(&c, &c)) {
      const int tag = l_.tag(&c);
      if (tag == tag_inlined) continue;
      if (tag == tag_subprogram) {
        address base = 0, begin = 0, end = 0;
        for (std::ptrdiff_t i = 0; (i = l_.ranges(&c, i, &base, &begin, &end)) > 0;) out.push_back({begin, end, c});
      }
      collect_functions(c, out);
    }
  }

  std::string name_of(dwarf_die die) const {
    dwarf_attribute a;
    for (const unsigned code : {attribute_linkage_name, attribute_old_linkage_name}) {
      if (l_.attribute(&die, code, &a) != nullptr) return demangled(l_.as_string(&a));
    }
    return qualified_name(die);
  }

  // A function that others cannot link to has no other name than that of its place in the source.
  std::string qualified_name(dwarf_die die) const {
    dwarf_attribute a;
    for (const unsigned code : {attribute_abstract_origin, attribute_specification}) {
      if (l_.attribute(&die, code, &a) != nullptr) l_.as_reference(&a, &die);
    }
    dwarf_die* scopes = nullptr;
    const int count = l_.scopes_of(&die, &scopes);
    std::string result;
    for (int i = 0; i < count; ++i) {
      const int tag = l_.tag(&scopes[i]);
      if (tag != tag_subprogram && tag != tag_class && tag != tag_structure && tag != tag_namespace) continue;
      const char* name = l_.name(&scopes[i]);
      const std::string part = name != nullptr ? name : tag == tag_namespace ? "(anonymous namespace)" : "{lambda}";
      result = result.empty() ? part : part + "::" + result;
    }
    std::free(scopes);
    return result;
  }

  address number(dwarf_die& die, unsigned code) const {
    dwarf_attribute a;
    address n = 0;
    if (l_.attribute(&die, code, &a) == nullptr || l_.as_number(&a, &n) != 0) return 0;
    return n;
  }

  std::string call_file(dwarf_die* unit, dwarf_die& die) const {
    void* files = nullptr;
    std::size_t count = 0;
    const address n = number(die, attribute_call_file);
    if (l_.source_files(unit, &files, &count) != 0 || n >= count) return {};
    const char* name = l_.source_file(files, n, nullptr, nullptr);
    return name != nullptr ? name : "";
  }

  const libdw& l_;
  void* const dwfl_;
  std::unordered_map<void*, std::vector<function>> units_;
};

symbolizer::symbolizer() {
  if (const libdw* l = library()) debug_ = std::make_unique<debug_information>(*l);
}

symbolizer::~symbolizer() = default;

const location& symbolizer::at(std::uintptr_t pc) {
  const auto found = known_.find(pc);
  return found != known_.end() ? found->second : known_.emplace(pc, look_up(pc)).first->second;
}

location symbolizer::look_up(std::uintptr_t pc) {
  location result;
  if (debug_ != nullptr) result.symbols = debug_->at(pc);
  const module_place place = find_module(pc);
  if (place.file != nullptr) result.module = place.file;
  result.in_module = place.address;
  if (result.symbols.empty()) result.symbols.emplace_back();
  symbol& function = result.symbols.back();
  Dl_info info{};
  if (function.function.empty() && ::dladdr(reinterpret_cast<void*>(pc), &info) != 0 && info.dli_sname != nullptr) {
    function.function = demangled(info.dli_sname);
    function.in_function = pc - reinterpret_cast<std::uintptr_t>(info.dli_saddr);
  }
  return result;
}

}  // namespace weft::os
