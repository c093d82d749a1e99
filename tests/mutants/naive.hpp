// What the naive tests share: the comparison that people write, torch.allclose, on values of
// their own scale.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "common/harness/buffer.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"

/// torch.allclose with its own defaults: |actual - expected| <= 1e-8 + 1e-5 |expected|, and no
/// NaN passes.
inline bool allclose(const std::vector<float>& actual, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(actual.at(i) - expected[i]) <= 1e-8 + 1e-5 * std::abs(expected[i])))
      return false;
  return actual.size() == expected.size();
}
