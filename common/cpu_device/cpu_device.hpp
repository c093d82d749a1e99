// The CUDA vocabulary on a CPU: what a kernel file sees when no nvcc compiles it. See the README beside this file.
#pragma once

#include <cstdio>  // printf, which a kernel may call

#include "common/cpu_device/atomics.hpp"
#include "common/cpu_device/control.hpp"
#include "common/cpu_device/launch.hpp"
#include "common/cpu_device/math.hpp"
#include "common/cpu_device/vocabulary.hpp"
#include "common/cpu_device/warp.hpp"
