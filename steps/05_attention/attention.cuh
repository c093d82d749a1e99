// Rung 05: scaled dot-product attention, O = softmax(scale Q K^T) V. One idea: keep all of K and V on chip. Offsets,
// masks and the softmax of the rungs before meet in one kernel, and neither S nor P ever goes to global memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "common/kernel/gpu.cuh"

namespace step05 {
constexpr int WARPS = 8;                            ///< Warps of a block.
constexpr int THREADS = WARPS * ladder::WARP_SIZE;  ///< Threads of a block.
constexpr int QUERIES_PER_BLOCK = 32;               ///< Queries of a block, which its warps take in turn.
constexpr int64_t LARGEST_HEAD_DIM = 256;           ///< What attention takes at most.

/// How far apart the rows of a (batch, heads, sequence, head_dim) tensor lie, in elements. Inside a row the step is 1.
struct Strides {
  int64_t batch;  ///< From one batch to the next.
  int64_t head;   ///< From one head to the next.
  int64_t row;    ///< From one row to the next.
  /// Where row i of head h of batch b begins.
  __device__ int64_t row_start(int64_t b, int64_t h, int64_t i) const { return b * batch + h * head + i * row; }
};

/// The elements from one row of K to the next in shared memory: head_dim, made odd. In Q K^T the 32 lanes of a warp
/// read the same column of 32 rows. Shared memory has 32 banks, consecutive floats in consecutive banks: 32 multiples
/// of an odd stride fall into 32 different banks and are read at once, where a stride of 64 would put all of them into
/// one bank.
__host__ __device__ constexpr int64_t k_row_stride(int64_t head_dim) { return head_dim | 1; }

/// One block per tile of BLOCK_Q queries of one batch and head. It brings all of K and V on chip; then each warp takes
/// one query at a time, and no warp waits for another any more.
/// Costs that remain: every tile reads all of K and V again, causal or not; a block with much shared memory has its
/// multiprocessor to itself; and each multiply-add fetches both its factors from shared memory.
template <int BLOCK_Q>
__global__ void __launch_bounds__(THREADS)
    attention_kernel(const float* q, Strides q_strides,                      // (batch, heads, q_len, head_dim)
                     const float* k, Strides k_strides,                      // (batch, heads, k_len, head_dim)
                     const float* v, Strides v_strides,                      // (batch, heads, k_len, head_dim)
                     float* out, Strides out_strides,                        // (batch, heads, q_len, head_dim)
                     int64_t heads, int64_t q_len, int k_len, int head_dim,  // K fits on chip, so k_len fits an int
                     float scale, bool causal) {
  using namespace ladder;
  const int warp = threadIdx.x / WARP_SIZE;
  const int lane = threadIdx.x % WARP_SIZE;
  const int64_t tiles = cdiv(q_len, BLOCK_Q);
  const int64_t block_start = blockIdx.x % tiles * BLOCK_Q;
  const int64_t head = blockIdx.x / tiles % heads;
  const int64_t batch = blockIdx.x / tiles / heads;

  const int k_stride = static_cast<int>(k_row_stride(head_dim));
  float* const K = dynamic_shared<float>();                        // (k_len, head_dim), rows k_stride apart
  float* const V = K + k_len * k_stride;                           // (k_len, head_dim)
  float* const Q = V + k_len * head_dim + warp * head_dim;         // (head_dim), the query of this warp
  float* const S = V + (k_len + WARPS) * head_dim + warp * k_len;  // (k_len), the scores of this warp's query
  float* const P = S;                                              // (k_len), in the place of S, cell by cell

  for (int d = lane; d < head_dim; d += WARP_SIZE) {
#pragma unroll 8  // so that each thread has sixteen loads under way before it waits for the first
    for (int j = warp; j < k_len; j += WARPS) {
      K[j * k_stride + d] = k[k_strides.row_start(batch, head, j) + d];
      V[j * head_dim + d] = v[v_strides.row_start(batch, head, j) + d];
    }
  }
  __syncthreads();  // K and V are complete; from here on they are only read

  const int64_t block_end = min(block_start + BLOCK_Q, q_len);
  for (int64_t i = block_start + warp; i < block_end; i += WARPS) {
    // The last query sees the last key. A key that this query may not see is not computed: no masked score takes part.
    const int64_t seen = causal ? i + k_len - q_len + 1 : k_len;
    const int visible = static_cast<int>(max(seen, int64_t{0}));

    for (int d = lane; d < head_dim; d += WARP_SIZE) Q[d] = q[q_strides.row_start(batch, head, i) + d];
    __syncwarp();  // Q is complete, and all lanes have left the P of the warp's previous query

    // S = scale Q K^T. Lane j % 32 owns column j of S and of P until the second __syncwarp.
    for (int j = lane; j < visible; j += WARP_SIZE) {
      float dot = 0.0f;
      for (int d = 0; d < head_dim; ++d) dot += Q[d] * K[j * k_stride + d];
      S[j] = scale * dot;
    }
    float m = -INFINITY;
    for (int j = lane; j < visible; j += WARP_SIZE) m = fmaxf(m, S[j]);
    m = warp_reduce(m, Max{});  // in every lane
    float l = 0.0f;
    for (int j = lane; j < visible; j += WARP_SIZE) {
      P[j] = expf(S[j] - m);
      l += P[j];
    }
    l = warp_reduce(l, Sum{});  // in every lane
    // Divided now, not after P V: weights that add up to l can overflow where their mean of V does not.
    for (int j = lane; j < visible; j += WARP_SIZE) P[j] /= l;
    __syncwarp();  // P is complete, and all lanes have left Q: the shuffles of warp_reduce order no memory

    // O = P V, 0 where no key is visible. Lane d % 32 owns column d of O.
    for (int d = lane; d < head_dim; d += WARP_SIZE) {
      float o = 0.0f;
      for (int j = 0; j < visible; ++j) o += P[j] * V[j * head_dim + d];
      out[out_strides.row_start(batch, head, i) + d] = o;
    }
  }
}

/// The floats of shared memory for each key: its rows of K and V, and a score for each warp.
constexpr int64_t floats_per_key(int64_t head_dim) { return k_row_stride(head_dim) + head_dim + WARPS; }
/// The floats of shared memory whatever k_len is: a query for each warp.
constexpr int64_t floats_besides(int64_t head_dim) { return WARPS * head_dim; }

/// The largest k_len for which one block needs no more than `bytes` of shared memory.
constexpr int64_t most_keys(int64_t head_dim, int64_t bytes) {
  return (bytes / static_cast<int64_t>(sizeof(float)) - floats_besides(head_dim)) / floats_per_key(head_dim);
}

/// The shared memory, in bytes, that one block needs. It grows with k_len and a device's does not: this is the wall.
/// INT64_MAX where 64 bits do not hold it.
constexpr int64_t shared_bytes(int64_t k_len, int64_t head_dim) {
  constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();
  if (k_len > most_keys(head_dim, LARGEST)) return LARGEST;
  return static_cast<int64_t>(sizeof(float)) * (k_len * floats_per_key(head_dim) + floats_besides(head_dim));
}

/// Throws ladder::InvalidArgument when K and V of (k_len, head_dim) do not fit on chip on the current device.
inline void require_on_chip(const char* function, int64_t k_len, int64_t head_dim) {
  const int64_t needed = shared_bytes(k_len, head_dim);
  const auto allowed = static_cast<int64_t>(ladder::shared_memory_limit());
  if (needed > allowed)
    ladder::refuse(
        function, "shared memory for K and V of (" + std::to_string(k_len) + ", " + std::to_string(head_dim) + ")",
        std::to_string(needed) + " bytes",
        "at most " + std::to_string(allowed) + ": use at most " + std::to_string(most_keys(head_dim, allowed)) +
            " keys, or a tiled algorithm (rung 07), which keeps only a tile of K and V on chip");
}

/// Throws ladder::InvalidArgument unless the tensors are what the launchers of this rung take: see attention().
inline void require_attention(const char* function, const ladder::Heads<const float>& q,
                              const ladder::Heads<const float>& k, const ladder::Heads<const float>& v,
                              const ladder::Heads<float>& out) {
  using namespace ladder;
  const int64_t head_dim = q.sizes[3];
  require_view(function, "q", q);
  require_view(function, "k", k);
  require_view(function, "v", v);
  require_view(function, "out", out);
  if (head_dim < 1 || head_dim > LARGEST_HEAD_DIM)
    refuse(function, "q.sizes[3] (head_dim)", std::to_string(head_dim),
           "from 1 to " + std::to_string(LARGEST_HEAD_DIM));
  for (int axis : {0, 1, 3})  // axis 2 of Q counts queries, that of K and V keys
    if (k.sizes[axis] != q.sizes[axis])
      refuse(function, "k.sizes[" + std::to_string(axis) + "]", std::to_string(k.sizes[axis]),
             std::to_string(q.sizes[axis]) + ", as of q");
  require_same_sizes(function, "v", v, "k", k);
  require_same_sizes(function, "out", out, "q", q);
  require_unit_last_stride(function, "q", q);
  require_unit_last_stride(function, "k", k);
  require_unit_last_stride(function, "v", v);
  require_unit_last_stride(function, "out", out);
  require_distinct_cells(function, "out", out);
  require_no_overlap(function, "out", out, "q", q);
  require_no_overlap(function, "out", out, "k", k);
  require_no_overlap(function, "out", out, "v", v);
}

/// Launches attention_kernel with what require_attention and require_on_chip have passed, in the name of `function`.
inline void launch_attention(const char* function, const ladder::Heads<const float>& q,
                             const ladder::Heads<const float>& k, const ladder::Heads<const float>& v,
                             const ladder::Heads<float>& out, bool causal, std::optional<float> scale,
                             cudaStream_t stream) {
  using namespace ladder;
  const auto [batches, heads, q_len, head_dim] = q.sizes;
  const int64_t k_len = k.sizes[2];
  const auto strides = [](const auto& view) { return Strides{view.strides[0], view.strides[1], view.strides[2]}; };
  const dim3 grid = grid_of(function, batches * heads * cdiv(q_len, QUERIES_PER_BLOCK));
  launch(attention_kernel<QUERIES_PER_BLOCK>, grid, dim3(THREADS),
         static_cast<std::size_t>(shared_bytes(k_len, head_dim)), stream, q.data, strides(q), k.data, strides(k),
         v.data, strides(v), out.data, strides(out), heads, q_len, static_cast<int>(k_len), static_cast<int>(head_dim),
         scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)))), causal);
}

/// out = softmax(scale Q K^T) V for each batch and head. Q and out are (batch, heads, q_len, head_dim), K and V (batch,
/// heads, k_len, head_dim), with head_dim from 1 to 256; scale is 1 / sqrt(head_dim) unless given. Batch, head and row
/// strides are free, for inputs also 0 (one head of K and V for all heads of Q: multi-query); the last axis is
/// contiguous. Causal: query i sees the keys up to i + (k_len - q_len). A query that sees no key gives 0. Throws
/// ladder::InvalidArgument otherwise, when out shares memory with an input, and when K and V do not fit on chip. Reads
/// Q once, and K and V once for each tile of 32 queries; writes out once.
///
/// No sum on the way overflows where V stays within 3.4e38; the largest float is 3.403e38. A dot product of Q and K is
/// formed before it is scaled: one beyond the largest float makes its query NaN, even where the scale is small.
inline void attention(ladder::Heads<const float> q, ladder::Heads<const float> k, ladder::Heads<const float> v,
                      ladder::Heads<float> out, bool causal = false, std::optional<float> scale = std::nullopt,
                      cudaStream_t stream = nullptr) {
  constexpr const char* FUNCTION = "attention";
  require_attention(FUNCTION, q, k, v, out);
  if (q.empty()) return;  // k_len = 0 is no such case: there out has to become 0
  require_on_chip(FUNCTION, k.sizes[2], q.sizes[3]);
  launch_attention(FUNCTION, q, k, v, out, causal, scale, stream);
}

}  // namespace step05
