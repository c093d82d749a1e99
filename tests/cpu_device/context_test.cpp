// Two stacks, each with a number of its own at the far side of a switch: what a register held before belongs to the
// stack that goes on, and the compiler may not take it for its own. Compiled at each level of optimisation; exits with
// the number of switches after which a stack read the other one's number.
#include <cstdio>
#include <vector>

#include "common/cpu_device/context.hpp"

namespace {

using ladder::cpu_device::Context;
using ladder::cpu_device::switch_context;

struct Side {
  Context context;
  int number;
};
Side main_side{nullptr, 1}, fiber_side{nullptr, 2};
int wrong = 0;

// `here` comes in a register, and is needed again after the switch.
[[gnu::noinline]] int leave(Side& here, Side& there) {
  switch_context(here.context, there.context);
  return here.number;
}

void entry() {
  for (;;) wrong += leave(fiber_side, main_side) != 2;
}

}  // namespace

int main() {
  std::vector<char> stack(64 << 10);
  fiber_side.context = ladder::cpu_device::make_context<entry>(stack.data() + stack.size(), stack.size());
  for (int i = 0; i < 20; ++i) wrong += leave(main_side, fiber_side) != 1;
  std::printf("%d of 39 switches gave the other stack's number\n", wrong);
  return wrong;
}
