#include "common/cpu_device/symbols.hpp"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>

namespace ladder::cpu_device {
namespace {

std::string demangle(std::string name) {
  name = name.substr(0, name.find('.'));  // a compiler marks its own copies: "sum.0", "kernel.constprop.0"
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

// Without the parameters, and without the return type that the mangled name of a template carries.
std::string short_function(std::string name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth == 0 && name[i] == ' ') begin = i + 1;
    if (depth == 0 && name[i] == '(') {
      if (name.compare(i, 21, "(anonymous namespace)") == 0) {
        i += 20;
        continue;
      }
      return name.substr(begin, i - begin);
    }
  }
  return name.substr(begin);
}

// The program as libdw sees it. One for the process, used under a lock: libdw is not thread-safe.
class Program {
 public:
  Program() {
    static const Dwfl_Callbacks callbacks = {
        dwfl_linux_proc_find_elf,
        // Debug information stands in the program itself or nowhere: no search, no download.
        [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) { return -1; },
        dwfl_offline_section_address, nullptr};
    dwfl_.reset(dwfl_begin(&callbacks));
    if (!dwfl_ || dwfl_linux_proc_report(dwfl_.get(), getpid()) != 0) return;
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    module_ = dwfl_addrmodule(dwfl_.get(), reinterpret_cast<Dwarf_Addr>(&source_line));
    if (module_) dwfl_module_info(module_, nullptr, &begin_, &end_, nullptr, nullptr, nullptr, nullptr);
    read_thread_locals();
  }

  std::string line(std::uintptr_t address, bool with_column = false) const {
    Dwfl_Line* line = module_ ? dwfl_module_getsrc(module_, address) : nullptr;
    int number = 0, column = 0;
    // A file that was compiled without debug information has no unit; the line found then is a neighbour's.
    Dwarf_Addr bias = 0;
    const bool known = line && dwfl_module_addrdie(module_, address, &bias) != nullptr;
    const char* file = known ? dwfl_lineinfo(line, nullptr, &number, &column, nullptr, nullptr) : nullptr;
    if (!file) {
      std::ostringstream text;
      text << "address 0x" << std::hex << address << " (compiled without debug information)";
      return text.str();
    }
    std::string_view name = file;
    while (name.starts_with("./")) name.remove_prefix(2);
    return std::string(name) + ":" + std::to_string(number) + (with_column ? ":" + std::to_string(column) : "");
  }
  std::string function(std::uintptr_t address) const {
    const char* name = module_ ? dwfl_module_addrname(module_, address) : nullptr;
    return name ? short_function(demangle(name)) : "kernel";
  }
  std::uintptr_t begin() const { return begin_; }
  bool contains(std::uintptr_t address) const { return address >= begin_ && address < end_; }

  std::vector<SharedArray> shared;
  std::vector<OtherThreadLocal> others;
  std::mutex mutex;

 private:
  void read_thread_locals() {
    const int symbols = module_ ? dwfl_module_getsymtab(module_) : 0;
    for (int i = 0; i < symbols; ++i) {
      GElf_Sym symbol;
      GElf_Addr value = 0;
      const char* name = dwfl_module_getsym_info(module_, i, &symbol, &value, nullptr, nullptr, nullptr);
      if (!name || GELF_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_size == 0) continue;
      // _ZZ begins the mangled name of a local of a function: the only place where kernels declare __shared__.
      if (!std::string_view(name).starts_with("_ZZ")) {
        others.push_back({symbol.st_value, symbol.st_size});
        continue;
      }
      const std::string full = demangle(name);
      const std::size_t split = full.rfind("::");
      if (split == std::string::npos) continue;
      shared.push_back(
          {symbol.st_value, symbol.st_size, full.substr(split + 2), short_function(full.substr(0, split))});
    }
    std::ranges::sort(shared, {}, &SharedArray::offset);
  }

  struct End {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };
  std::unique_ptr<Dwfl, End> dwfl_;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr begin_ = 0, end_ = 0;
};

Program& program() {
  static Program instance;
  return instance;
}

}  // namespace

std::string source_line(const void* return_address) {
  const std::lock_guard lock(program().mutex);
  return program().line(reinterpret_cast<std::uintptr_t>(return_address) - 1);  // the call, not what follows it
}
std::string source_place(const void* return_address) {
  const std::lock_guard lock(program().mutex);
  return program().line(reinterpret_cast<std::uintptr_t>(return_address) - 1, true);
}
std::string function_name(const void* function) {
  const std::lock_guard lock(program().mutex);
  return program().function(reinterpret_cast<std::uintptr_t>(function));
}
const std::vector<SharedArray>& shared_arrays() { return program().shared; }
const std::vector<OtherThreadLocal>& other_thread_locals() { return program().others; }
bool in_program_image(std::uintptr_t address) { return program().contains(address); }
std::uintptr_t program_begin() { return program().begin(); }

Segment thread_local_segment() {
  Segment segment{};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        // The program itself is reported first; its thread-locals have a fixed place in each OS thread.
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_TLS && object->dlpi_tls_data)
            *static_cast<Segment*>(result) = {reinterpret_cast<std::uintptr_t>(object->dlpi_tls_data),
                                              object->dlpi_phdr[i].p_memsz};
        return 1;
      },
      &segment);
  return segment;
}

}  // namespace ladder::cpu_device
