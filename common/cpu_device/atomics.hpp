// CUDA's atomic functions: each returns the value that was there before. Relaxed order, as on a GPU.
#pragma once

#include <atomic>
#include <type_traits>

// Replaces *address by operation(*address), whatever the other blocks do meanwhile; returns the old value.
template <class T, class Operation>
T atomic_update(T* address, Operation operation) {
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, operation(old), std::memory_order_relaxed)) {
  }
  return old;
}

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return atomic_update(address, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA's atomicMax takes integers");
  return atomic_update(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>, "CUDA's atomicMin takes integers");
  return atomic_update(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(compare, value, std::memory_order_relaxed);
  return compare;
}
