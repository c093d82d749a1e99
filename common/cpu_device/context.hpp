// Leaving one stack for another. On x86-64 a dozen instructions of our own: Boost's also carry over the floating-point
// control words, which no kernel changes, and that takes longer than all the rest. Elsewhere, and under
// AddressSanitizer, Boost's.
#pragma once

#include <cstddef>

#include "common/cpu_device/sanitizers.hpp"

#if defined(__x86_64__) && !defined(LADDER_ADDRESS_SANITIZER)
#define LADDER_OWN_CONTEXT 1
#else
#include <boost/context/detail/fcontext.hpp>
#endif

namespace ladder::cpu_device {

// A stack that waits: its pointer, where the registers lie that it goes on with.
using Context = void*;

#ifdef LADDER_OWN_CONTEXT
// Registers that a callee saves are named as overwritten, so that the compiler saves those that it needs, and no
// others. The file that includes this is compiled without a red zone: the pushes would write into it.
[[gnu::always_inline]] inline void switch_context(Context& save, Context to) {
  asm volatile(
      "pushq %%rbp\n\t"  // may not be named as overwritten
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rsi, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"  // not ret: the processor would guess the wrong caller
      "1:\tpopq %%rbp"
      : "+S"(to)
      : "D"(&save)
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "memory", "cc");
}
// A context that begins with a call of `entry`, which must not return.
template <void (*entry)()>
Context make_context(char* stack_end, std::size_t) {
  // As a call leaves it: a return address on a stack that was a multiple of 16 before.
  auto* top = reinterpret_cast<void (**)()>(reinterpret_cast<std::size_t>(stack_end) / 16 * 16);
  top[-1] = nullptr;  // the return address, where a debugger's backtrace ends
  top[-2] = entry;
  return top - 2;
}
#else
// The stack that is left learns its context from the one that goes on.
[[gnu::always_inline]] inline void switch_context(Context& save, Context to) {
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(to, &save);
  *static_cast<Context*>(back.data) = back.fctx;
}
template <void (*entry)()>
Context make_context(char* stack_end, std::size_t bytes) {
  return boost::context::detail::make_fcontext(stack_end, bytes, [](boost::context::detail::transfer_t from) {
    *static_cast<Context*>(from.data) = from.fctx;
    entry();
  });
}
#endif

}  // namespace ladder::cpu_device
