// Included in front of every file of a sweep's build (sweep.py): the switch of each mutant.
// Both asm statements are there so that the compiler, under -fsanitize=thread, adds no access
// of ours to those that the CPU device counts.
#pragma once

/// True while mutant N is switched on. Constant evaluation takes the original. With -1 in the
/// place of a mutant, notes that this point was reached.
template <int N>
[[gnu::always_inline]] constexpr bool ladder_mutant() {
  if (__builtin_is_constant_evaluated()) return false;
  int on = 0;
  asm("movl ladder_sweep_mutant(%%rip), %0" : "=r"(on));
  if (__builtin_expect(on == -1, 0)) {
    asm volatile("movb $1, ladder_sweep_reached+%c0(%%rip)" : : "i"(N));
  }
  return on == N;
}
