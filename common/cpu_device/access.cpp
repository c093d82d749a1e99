// How the device sees every load and store. Kernel files are compiled with -fsanitize=thread, which makes the compiler
// call a function of ThreadSanitizer's before each access, and with -fsanitize=bounds and alignment, which make it
// check each index of an array whose size it knows and each address against its type. The functions they call are
// these: no sanitizer's library is linked.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "common/cpu_device/worker.hpp"

namespace ladder::cpu_device {
namespace {

constexpr int POISON = 0xff;

std::vector<uint16_t> map_segment() {
  std::vector<uint16_t> places(thread_local_segment().bytes / 4 + 1, NOTHING);
  const auto mark = [&](std::size_t offset, std::size_t bytes, std::size_t place) {
    for (std::size_t word = offset / 4; word < std::min((offset + bytes + 3) / 4, places.size()); ++word)
      places[word] = static_cast<uint16_t>(place);
  };
  for (const OtherThreadLocal& other : other_thread_locals()) mark(other.offset, other.bytes, OTHER);
  for (std::size_t i = 0; i < shared_arrays().size(); ++i)
    mark(shared_arrays()[i].offset, shared_arrays()[i].bytes, FIRST_ARRAY + i);
  return places;
}

// Of a shared array only its bytes are known, and an access says what it takes for an element; one of memset or memcpy
// does not, and counts in bytes.
std::size_t element_of(std::size_t access_bytes) {
  return std::has_single_bit(access_bytes) && access_bytes <= 16 ? access_bytes : 1;
}
std::string elements_of(std::size_t bytes) {
  return " (elements of " + std::to_string(bytes) + (bytes == 1 ? " byte)" : " bytes)");
}

}  // namespace

std::span<const uint16_t> segment_places() {
  static const std::vector<uint16_t> places = map_segment();
  return places;
}

void Worker::out_of_bounds(const std::string& what, std::ptrdiff_t offset, std::size_t bytes, std::size_t element_bytes,
                           bool write, const void* return_address) {
  // An access that begins inside and ends outside: the first element outside is the one to name.
  if (offset >= 0 && static_cast<std::size_t>(offset) < bytes) offset = static_cast<std::ptrdiff_t>(bytes);
  const auto element = static_cast<std::ptrdiff_t>(element_bytes);
  // Rounded down, so that the byte before the first element belongs to element -1.
  const std::ptrdiff_t index = (offset - (offset < 0 ? element - 1 : 0)) / element;
  fault(std::string("out-of-bounds ") + (write ? "write to " : "read of ") + what + ": index " + std::to_string(index) +
            ", size " + std::to_string(bytes / element_bytes) + elements_of(element_bytes),
        return_address);
}

void Worker::out_of_bounds(const Allocation& allocation, std::uintptr_t address, std::size_t bytes, bool write,
                           const void* return_address) {
  running.in_kernel = false;
  const auto offset = static_cast<std::ptrdiff_t>(address - allocation.begin);
  const std::size_t size = allocation.end - allocation.begin;
  if (allocation.shared)
    out_of_bounds(allocation.name, offset, size, element_of(bytes), write, return_address);
  else
    out_of_bounds("buffer '" + allocation.name + "'", offset, size, allocation.element_bytes, write, return_address);
}

void Worker::access(std::uintptr_t address, std::size_t bytes, bool read, bool write, const void* return_address) {
  if (const Allocation* allocation = memory_.find(address)) [[likely]] {
    const std::size_t offset = address - allocation->begin, size = allocation->end - allocation->begin;
    if (offset > size || bytes > size - offset) [[unlikely]] {  // a sum could overflow, as of memset's size
      out_of_bounds(*allocation, address, bytes, write, return_address);
      abandon();
    }
    Bytes& traffic = traffic_[allocation->counter];
    if (read) traffic.read += bytes;
    if (write) traffic.written += bytes;
    return touch(allocation->initialised.get(), offset, address, bytes, read, write, return_address);
  }
  if (address - segment_.begin < segment_.bytes) {
    const std::size_t offset = address - segment_.begin;
    if (places_[offset / 4] == OTHER && !write) return;  // threadIdx and its kind
    find_shared(offset, bytes, write, return_address);
    return touch(segment_initialised_.data(), offset, address, bytes, read, write, return_address);
  }
  const auto bottom = reinterpret_cast<std::uintptr_t>(current_->bottom);
  if (address - bottom < current_->bytes) return;                       // a local variable
  if (!memory_.in_arena(address) && in_program_image(address)) return;  // a constant
  const auto arguments = reinterpret_cast<std::uintptr_t>(job_->grid.call);
  if (!write && address - arguments < job_->grid.call_bytes) return;  // a copy constructor makes a thread's parameters
  running.in_kernel = false;
  fault(std::string("out-of-bounds ") + (write ? "write to" : "read of") +
            " an address that belongs to no buffer, shared array or local variable " +
            (address < 4096 ? "(a null pointer)" : "(a host pointer, or a buffer that was freed?)"),
        return_address);
  abandon();
}

// The access is in bounds. `initialised` speaks of the memory that begins `offset` bytes before it.
[[gnu::always_inline]] inline void Worker::touch(uint8_t* initialised, std::size_t offset, std::uintptr_t address,
                                                 std::size_t bytes, bool read, bool write, const void* return_address) {
  if (bytes == 4 && offset % 4 == 0 && (!read || initialised[offset / 4] == WORD_INITIALISED)) [[likely]] {
    if (write) std::atomic_ref(initialised[offset / 4]).store(WORD_INITIALISED, std::memory_order_relaxed);
  } else {
    const bool in_kernel = std::exchange(running.in_kernel, false);  // the library's functions may be a kernel file's
    if (read && watch_uninitialised_) {
      const auto memory = reinterpret_cast<const uint8_t*>(address);
      if (const std::size_t first = first_uninitialised(initialised, offset, bytes, memory); first < offset + bytes)
        uninitialised_read(address + (first - offset), bytes, return_address);
    }
    if (write) set_initialised(initialised, offset, bytes, true);
    running.in_kernel = in_kernel;
  }
  if (watch_races_) watch_race(address, bytes, write, return_address);
  if (recording_) [[unlikely]]
    record(address, bytes, read, write, return_address);
}

// "buffer 'x', index 3 (elements of 4 bytes)"
std::string Worker::element_at(std::uintptr_t address, std::size_t access_bytes) const {
  std::string name;
  std::size_t offset = 0, element_bytes = element_of(access_bytes);
  if (const Allocation* allocation = memory_.find(address)) {
    name = allocation->shared ? allocation->name : "buffer '" + allocation->name + "'";
    offset = address - allocation->begin;
    if (!allocation->shared) element_bytes = allocation->element_bytes;
  } else {
    const SharedArray& array = shared_arrays()[places_[(address - segment_.begin) / 4] - FIRST_ARRAY];
    name = "shared array '" + array.name + "'";
    offset = address - segment_.begin - array.offset;
  }
  return name + ", index " + std::to_string(offset / element_bytes) + elements_of(element_bytes);
}

void Worker::uninitialised_read(std::uintptr_t address, std::size_t bytes, const void* return_address) {
  running.in_kernel = false;
  if (watch_races_) watch_race(address, 1, false, return_address);
  if (!uninitialised_read_.what.empty()) stop_here();
  const Allocation* allocation = memory_.find(address);
  fault("uninitialised read of " + element_at(address, bytes) + ": " +
            (allocation && !allocation->shared ? "neither the host nor a kernel has written it"
                                               : "no thread of this block has written it"),
        return_address);
  uninitialised_read_ = std::exchange(fault_record_, {});
  stop_here();
}

constexpr uint32_t ATOMIC_SITE = 0x80000000u;  // the rest is an index into atomic_sites_, else an offset in the program

uint32_t Worker::site_of(const void* return_address) {
  if (return_address) return static_cast<uint32_t>(reinterpret_cast<std::uintptr_t>(return_address) - program_begin_);
  const auto same = [this](const CallSite& other) {
    return other.line == atomic_site_.line && std::strcmp(other.file, atomic_site_.file) == 0;
  };
  const auto known = std::ranges::find_if(atomic_sites_, same);
  const uint32_t site = ATOMIC_SITE | static_cast<uint32_t>(known - atomic_sites_.begin());
  if (known == atomic_sites_.end()) atomic_sites_.push_back(atomic_site_);
  return site;
}
std::string Worker::name_of_site(uint32_t site) const {
  if (site & ATOMIC_SITE) {
    const CallSite& atomic = atomic_sites_[site & ~ATOMIC_SITE];
    return std::string(atomic.file) + ":" + std::to_string(atomic.line) + ":atomic";
  }
  return source_place(reinterpret_cast<const void*>(program_begin_ + site));
}

void Worker::record(std::uintptr_t address, std::size_t bytes, bool read, bool write, const void* return_address) {
  const bool in_kernel = std::exchange(running.in_kernel, false);
  const uint32_t site = site_of(return_address);
  if (read) recorder_.access(running.thread, address, bytes, false, site);
  if (write) recorder_.access(running.thread, address, bytes, true, site);
  running.in_kernel = in_kernel;
}

void Worker::watch_race(std::uintptr_t address, std::size_t bytes, bool write, const void* return_address) {
  const bool in_kernel = std::exchange(running.in_kernel, false);
  const bool atomic = return_address == nullptr;  // an atomic function: it calls with in_kernel off already
  const uint32_t site = site_of(return_address);
  Races::Conflict conflict;
  if (races_.access(running.thread, {address, static_cast<uint32_t>(bytes), write, atomic, site}, conflict))
      [[unlikely]]
    report_race(conflict, bytes, write, return_address);
  running.in_kernel = in_kernel;
}

void Worker::report_race(const Races::Conflict& conflict, std::size_t bytes, bool write, const void* return_address) {
  const std::string other = "thread " + index_text(indices_[conflict.thread], shape_);
  const Place place = conflict.site & ATOMIC_SITE
                          ? Place{atomic_sites_[conflict.site & ~ATOMIC_SITE], nullptr}
                          : Place{{}, reinterpret_cast<const void*>(program_begin_ + conflict.site)};
  uninitialised_read_ = {};
  fault("race on " + element_at(conflict.address, bytes) + ": this thread " + (write ? "writes" : "reads") +
            " it, and no barrier orders that with " + other,
        return_address, std::string(", which ") + (conflict.write ? "writes" : "reads") + " it at ", place);
  abandon();
}

[[gnu::always_inline]] inline void Worker::find_shared(std::size_t offset, std::size_t bytes, bool write,
                                                       const void* return_address) {
  const uint16_t place = places_[offset / 4];
  const std::vector<SharedArray>& arrays = *arrays_;
  const auto outside = [&](const SharedArray& array) {
    running.in_kernel = false;
    out_of_bounds("shared array '" + array.name + "'",
                  static_cast<std::ptrdiff_t>(offset) - static_cast<std::ptrdiff_t>(array.offset), array.bytes,
                  element_of(bytes), write, return_address);
    abandon();
  };
  if (place == NOTHING || place == OTHER) {
    // Between the arrays: past the end of the one before, most likely.
    auto near = std::upper_bound(arrays.begin(), arrays.end(), offset,
                                 [](std::size_t value, const SharedArray& array) { return value < array.offset; });
    if (near != arrays.begin()) --near;
    if (near == arrays.end()) {
      running.in_kernel = false;
      fault("out-of-bounds access of the memory of shared arrays, in a program that has none", return_address);
      abandon();
    }
    outside(*near);
  }
  const std::size_t index = place - FIRST_ARRAY;
  const SharedArray& array = arrays[index];
  if (array_serial_[index] != block_serial_) {
    // The first touch in this block. The array holds whatever the last block left; a GPU promises nothing about it.
    array_serial_[index] = block_serial_;
    const bool in_kernel = std::exchange(running.in_kernel, false);
    std::memset(reinterpret_cast<void*>(segment_.begin + array.offset), POISON, array.bytes);
    set_initialised(segment_initialised_.data(), array.offset, array.bytes, false);
    static_bytes_ += array.bytes;
    const bool too_many = static_bytes_ > STATIC_SHARED_BYTES;
    if (too_many)
      fault("shared memory: the kernel's __shared__ arrays take " + std::to_string(static_bytes_) +
                " bytes, must be at most " + std::to_string(STATIC_SHARED_BYTES) + "; more needs dynamic shared memory",
            return_address);
    else if (static_bytes_ + dynamic_bytes_ > job_->shared_limit)
      fault("shared memory: __shared__ arrays and dynamic shared memory take " +
                std::to_string(static_bytes_ + dynamic_bytes_) + " bytes, must be at most " +
                std::to_string(job_->shared_limit) + " on " + std::string(job_->model),
            return_address);
    if (!fault_record_.what.empty()) abandon();
    running.in_kernel = in_kernel;
  }
  if (bytes > array.offset + array.bytes - offset) outside(array);
}

void Worker::atomic_access(const void* address, std::size_t bytes, CallSite site) {
  atomic_site_ = site;
  access(reinterpret_cast<std::uintptr_t>(address), bytes, true, true, nullptr);
}

namespace {

inline void seen(const volatile void* address, std::size_t bytes, bool read, bool write, const void* return_address) {
  if (running.in_kernel) worker->access(reinterpret_cast<std::uintptr_t>(address), bytes, read, write, return_address);
}

// ---- -fsanitize=bounds and alignment: what the compiler hands over (its layout is fixed by the compilers' run-time
// interface)
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];  // "'float [3]'", longer than declared
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor* array;
  const TypeDescriptor* index;
};

struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment;
  unsigned char kind;  // 0: a load, 1: a store, 2 and more: a reference, a member, a call
};

[[noreturn]] void misaligned(const TypeMismatch& data, std::uintptr_t address, const void* return_address) {
  const std::size_t alignment = std::size_t{1} << data.log_alignment;
  if (std::exchange(running.in_kernel, false))
    worker->misaligned(data.type->name, alignment, address, data.kind == 1, return_address);
  const SourceLocation& place = data.location;
  std::fprintf(stderr, "%s:%u: address %#zx is not a multiple of %zu, which %s needs\n", place.file, place.line,
               address, alignment, data.type->name);
  std::abort();
}

// An index comes as the bits of its own type, of which `info` holds the sign and the width: -1 may be 0xffffffff.
std::ptrdiff_t signed_index(const TypeDescriptor& type, std::uintptr_t bits) {
  const int unused = 64 - (1 << (type.info >> 1));
  if ((type.info & 1) == 0 || unused <= 0) return static_cast<std::ptrdiff_t>(bits);
  return static_cast<std::ptrdiff_t>(bits << unused) >> unused;
}

[[noreturn]] void index_out_of_bounds(const OutOfBounds& data, std::uintptr_t index, const void* return_address) {
  const SourceLocation& place = data.location;  // not in reports: g++ gives the full path of the machine that compiled
  if (std::exchange(running.in_kernel, false))
    worker->index_out_of_bounds(data.array->name, signed_index(*data.index, index), return_address);
  std::fprintf(stderr, "%s:%u: index %zu is outside %s\n", place.file, place.line, static_cast<std::size_t>(index),
               data.array->name);
  std::abort();
}

}  // namespace

void Worker::misaligned(const char* type, std::size_t alignment, std::uintptr_t address, bool write,
                        const void* return_address) {
  std::string name = type;
  for (const char* word : {"const ", "struct "})  // g++ writes 'const struct float4', clang 'const float4'
    if (const std::size_t at = name.find(word); at != std::string::npos) name.erase(at, std::strlen(word));
  std::string where;
  if (const Allocation* allocation = memory_.find(address))
    where = (allocation->shared ? " in " + allocation->name : " in buffer '" + allocation->name + "'") + ", at byte " +
            std::to_string(static_cast<std::ptrdiff_t>(address - allocation->begin));
  fault("misaligned " + std::string(write ? "write" : "access") + where + ": the address must be a multiple of " +
            std::to_string(alignment) + " bytes for a " + name,
        return_address);
  abandon();
}

void atomic_access(const void* address, std::size_t bytes, CallSite site) {
  if (checks_accesses()) worker->atomic_access(address, bytes, site);
}

bool checks_accesses() {
#ifdef LADDER_CHECKED
  return true;
#else
  return false;
#endif
}

}  // namespace ladder::cpu_device

using ladder::cpu_device::seen;

namespace ladder::cpu_device {
namespace {

// The compiler takes the address for a multiple of the size, or of 8, which is all that 16 bytes of doubles need; where
// it does not, it calls the unaligned functions.
template <std::size_t SIZE>
void seen_aligned(const void* address, bool read, bool write, const void* return_address) {
  constexpr std::size_t ALIGNMENT = std::min<std::size_t>(SIZE, 8);
  if (running.in_kernel && reinterpret_cast<std::uintptr_t>(address) % ALIGNMENT != 0) [[unlikely]] {
    running.in_kernel = false;
    worker->misaligned((std::to_string(SIZE) + "-byte access").c_str(), ALIGNMENT,
                       reinterpret_cast<std::uintptr_t>(address), write, return_address);
  }
  seen(address, SIZE, read, write, return_address);
}

}  // namespace
}  // namespace ladder::cpu_device
using ladder::cpu_device::seen_aligned;

// The callbacks' names are fixed, and one is needed for each size: the one place where a macro writes functions.
#define LADDER_ACCESS(SIZE)                                                                                         \
  extern "C" void __tsan_read##SIZE(void* p) { seen_aligned<SIZE>(p, true, false, __builtin_return_address(0)); }   \
  extern "C" void __tsan_write##SIZE(void* p) { seen_aligned<SIZE>(p, false, true, __builtin_return_address(0)); }  \
  extern "C" void __tsan_unaligned_read##SIZE(void* p) { seen(p, SIZE, true, false, __builtin_return_address(0)); } \
  extern "C" void __tsan_unaligned_write##SIZE(void* p) { seen(p, SIZE, false, true, __builtin_return_address(0)); }
LADDER_ACCESS(1)
LADDER_ACCESS(2)
LADDER_ACCESS(4)
LADDER_ACCESS(8)
LADDER_ACCESS(16)
#undef LADDER_ACCESS

extern "C" {
void __tsan_read_range(void* p, std::size_t n) { seen(p, n, true, false, __builtin_return_address(0)); }
void __tsan_write_range(void* p, std::size_t n) { seen(p, n, false, true, __builtin_return_address(0)); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __ubsan_handle_out_of_bounds(void* data, std::uintptr_t index) {
  ladder::cpu_device::index_out_of_bounds(*static_cast<ladder::cpu_device::OutOfBounds*>(data), index,
                                          __builtin_return_address(0));
}
void __ubsan_handle_type_mismatch_v1(void* data, std::uintptr_t address) {
  ladder::cpu_device::misaligned(*static_cast<ladder::cpu_device::TypeMismatch*>(data), address,
                                 __builtin_return_address(0));
}
}

// Atomic operations are replaced by calls as well, those of host code in the same files too. CUDA's own atomic
// functions are watched in atomics.hpp; of what else a kernel may call, each reads and writes its cell.
#define LADDER_ATOMIC_UPDATE(BITS, NAME, BUILTIN)                                                                 \
  extern "C" uint##BITS##_t __tsan_atomic##BITS##_##NAME(volatile uint##BITS##_t* p, uint##BITS##_t value, int) { \
    seen(p, BITS / 8, true, true, __builtin_return_address(0));                                                   \
    return BUILTIN(p, value, __ATOMIC_SEQ_CST);                                                                   \
  }
#define LADDER_ATOMIC_COMPARE(BITS, NAME)                                                              \
  extern "C" int __tsan_atomic##BITS##_##NAME(volatile uint##BITS##_t* p, uint##BITS##_t* expected,    \
                                              uint##BITS##_t value, int, int) {                        \
    seen(p, BITS / 8, true, true, __builtin_return_address(0));                                        \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define LADDER_ATOMIC(BITS)                                                                            \
  extern "C" uint##BITS##_t __tsan_atomic##BITS##_load(const volatile uint##BITS##_t* p, int) {        \
    seen(p, BITS / 8, true, false, __builtin_return_address(0));                                       \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                    \
  extern "C" void __tsan_atomic##BITS##_store(volatile uint##BITS##_t* p, uint##BITS##_t value, int) { \
    seen(p, BITS / 8, false, true, __builtin_return_address(0));                                       \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                    \
  extern "C" uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(                                \
      volatile uint##BITS##_t* p, uint##BITS##_t expected, uint##BITS##_t value, int, int) {           \
    seen(p, BITS / 8, true, true, __builtin_return_address(0));                                        \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return expected;                                                                                   \
  }                                                                                                    \
  LADDER_ATOMIC_COMPARE(BITS, compare_exchange_strong)                                                 \
  LADDER_ATOMIC_COMPARE(BITS, compare_exchange_weak)                                                   \
  LADDER_ATOMIC_UPDATE(BITS, exchange, __atomic_exchange_n)                                            \
  LADDER_ATOMIC_UPDATE(BITS, fetch_add, __atomic_fetch_add)                                            \
  LADDER_ATOMIC_UPDATE(BITS, fetch_sub, __atomic_fetch_sub)                                            \
  LADDER_ATOMIC_UPDATE(BITS, fetch_and, __atomic_fetch_and)                                            \
  LADDER_ATOMIC_UPDATE(BITS, fetch_or, __atomic_fetch_or)                                              \
  LADDER_ATOMIC_UPDATE(BITS, fetch_xor, __atomic_fetch_xor)                                            \
  LADDER_ATOMIC_UPDATE(BITS, fetch_nand, __atomic_fetch_nand)
LADDER_ATOMIC(8)
LADDER_ATOMIC(16)
LADDER_ATOMIC(32)
LADDER_ATOMIC(64)
#undef LADDER_ATOMIC
#undef LADDER_ATOMIC_COMPARE
#undef LADDER_ATOMIC_UPDATE

extern "C" void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
extern "C" void __tsan_atomic_signal_fence(int) {}

// Copies and fills of whole structs: newer versions of clang turn them into calls of __tsan_memcpy and its kind, older
// ones and g++ into the C library's, which the linker (--wrap) leads here.
#define LADDER_COPY(PREFIX, NAME)                                            \
  extern "C" void* PREFIX##NAME(void* to, const void* from, std::size_t n) { \
    seen(from, n, true, false, __builtin_return_address(0));                 \
    seen(to, n, false, true, __builtin_return_address(0));                   \
    return __real_##NAME(to, from, n);                                       \
  }
#define LADDER_FILL(PREFIX)                                             \
  extern "C" void* PREFIX##memset(void* to, int value, std::size_t n) { \
    seen(to, n, false, true, __builtin_return_address(0));              \
    return __real_memset(to, value, n);                                 \
  }
#ifdef LADDER_CHECKED
extern "C" {
void* __real_memcpy(void* to, const void* from, std::size_t n);
void* __real_memmove(void* to, const void* from, std::size_t n);
void* __real_memset(void* to, int value, std::size_t n);
}
LADDER_COPY(__tsan_, memcpy)
LADDER_COPY(__tsan_, memmove)
LADDER_FILL(__tsan_)
LADDER_COPY(__wrap_, memcpy)
LADDER_COPY(__wrap_, memmove)
LADDER_FILL(__wrap_)
#endif
#undef LADDER_COPY
#undef LADDER_FILL
