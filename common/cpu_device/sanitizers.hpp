// What AddressSanitizer must be told of fibers and of device memory. Without it, nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define LADDER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LADDER_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef LADDER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace ladder::cpu_device {

#ifdef LADDER_ADDRESS_SANITIZER
inline constexpr bool ADDRESS_SANITIZER = true;
inline void poison_for_sanitizer(void* begin, std::size_t bytes) { ASAN_POISON_MEMORY_REGION(begin, bytes); }
inline void unpoison_for_sanitizer(void* begin, std::size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(begin, bytes); }
inline void leave_stack(void** fake_stack, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
}
inline void enter_stack(void* fake_stack, const void** old_bottom, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, old_bottom, old_bytes);
}
#else
inline constexpr bool ADDRESS_SANITIZER = false;
inline void poison_for_sanitizer(void*, std::size_t) {}
inline void unpoison_for_sanitizer(void*, std::size_t) {}
inline void leave_stack(void**, const void*, std::size_t) {}
inline void enter_stack(void*, const void**, std::size_t*) {}
#endif

// Lets the device itself read what kernels must not touch.
class ReadableForSanitizer {
 public:
  ReadableForSanitizer(void* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {
    unpoison_for_sanitizer(begin_, bytes_);
  }
  ~ReadableForSanitizer() { poison_for_sanitizer(begin_, bytes_); }
  ReadableForSanitizer(const ReadableForSanitizer&) = delete;
  ReadableForSanitizer& operator=(const ReadableForSanitizer&) = delete;

 private:
  void* begin_;
  std::size_t bytes_;
};

}  // namespace ladder::cpu_device
