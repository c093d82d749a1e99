// What -fsanitize=signed-integer-overflow calls; the compilers fix the names.
#include "tests/signed_overflow.hpp"

extern "C" {
void __ubsan_handle_add_overflow(void*, std::uintptr_t, std::uintptr_t) { ++signed_overflows; }
void __ubsan_handle_sub_overflow(void*, std::uintptr_t, std::uintptr_t) { ++signed_overflows; }
void __ubsan_handle_mul_overflow(void*, std::uintptr_t, std::uintptr_t) { ++signed_overflows; }
void __ubsan_handle_negate_overflow(void*, std::uintptr_t) { ++signed_overflows; }
void __ubsan_handle_divrem_overflow(void*, std::uintptr_t, std::uintptr_t) { ++signed_overflows; }
}
