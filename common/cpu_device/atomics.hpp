// CUDA's atomic functions: each returns the value that was there before. Relaxed order, as on a GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>

#include "common/cpu_device/launch.hpp"
#include "common/cpu_device/warp.hpp"

namespace ladder::cpu_device {

/// Checks the cell and counts one read and one write of it, however often the loop below has to try.
void atomic_access(const void* address, std::size_t bytes, CallSite site);

/// Replaces *address by operation(*address), whatever the other blocks do meanwhile; returns the old value.
template <class T, class Operation>
T atomic_update(T* address, Operation operation, CallSite site) {
  const OutsideKernel outside;
  atomic_access(address, sizeof(T), site);
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, operation(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace ladder::cpu_device

/// Adds `value` to `*address`. Returns what was there before.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) {
  return ladder::cpu_device::atomic_update(address, [value](T old) { return static_cast<T>(old + value); },
                                           {file, line});
}
/// Sets `*address` to the larger of itself and `value`. Returns what was there before.
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) {
  static_assert(std::is_integral_v<T>, "CUDA's atomicMax takes integers");
  return ladder::cpu_device::atomic_update(address, [value](T old) { return old < value ? value : old; }, {file, line});
}
/// Sets `*address` to the smaller of itself and `value`. Returns what was there before.
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value, const char* file = __builtin_FILE(),
            int line = __builtin_LINE()) {
  static_assert(std::is_integral_v<T>, "CUDA's atomicMin takes integers");
  return ladder::cpu_device::atomic_update(address, [value](T old) { return value < old ? value : old; }, {file, line});
}
/// Sets `*address` to `value`. Returns what was there before.
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value, const char* file = __builtin_FILE(),
             int line = __builtin_LINE()) {
  return ladder::cpu_device::atomic_update(address, [value](T) { return value; }, {file, line});
}
/// Sets `*address` to `value` if `compare` stands there. Returns what was there before.
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(std::is_integral_v<T>, "CUDA's atomicCAS takes integers");
  return ladder::cpu_device::atomic_update(address, [=](T old) { return old == compare ? value : old; }, {file, line});
}
