// Leaving one stack for another: Boost.Context does the switch.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace ladder::cpu_device {

// A stack that waits: its pointer, where the registers lie that it goes on with.
using Context = boost::context::detail::fcontext_t;

// The stack that is left learns its context from the one that goes on.
[[gnu::always_inline]] inline void switch_context(Context& save, Context to) {
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(to, &save);
  *static_cast<Context*>(back.data) = back.fctx;
}
// A context that begins with a call of `entry`, which must not return.
template <void (*entry)()>
Context make_context(char* stack_end, std::size_t bytes) {
  return boost::context::detail::make_fcontext(stack_end, bytes, [](boost::context::detail::transfer_t from) {
    *static_cast<Context*>(from.data) = from.fctx;
    entry();
  });
}

}  // namespace ladder::cpu_device
