// A variant of rung 05. One idea: what comes from shared memory is used several times before it is let go.
//
// The rung fetches both factors of each multiply-add. Shared memory gives a multiprocessor 128 bytes a clock, one float
// for each lane of one warp, while its units could multiply and add for four warps: seven eighths of them wait. Here a
// warp takes four queries at a time, side by side in a float4, and each lane four keys of them: four floats of Q and
// four of K, eight in all, make sixteen multiply-adds in place of four. P V likewise, with two columns of V a lane.
//
// What it costs: registers, and room for the scores of four queries, so that fewer keys fit on chip.
#pragma once

#include "steps/05_attention/attention.cuh"

namespace step05 {

constexpr int QUERIES_PER_BLOCK_OF_FOURS = 128;         // K and V are brought on chip for more queries than in the rung
constexpr int KEYS_PER_LANE = 4, COLUMNS_PER_LANE = 2;  // at a time

// One number for each of the four queries.
__device__ inline float4 each(float value) { return make_float4(value, value, value, value); }
__device__ inline float4 multiply_add(float4 a, float b, float4 c) {
  return make_float4(a.x * b + c.x, a.y * b + c.y, a.z * b + c.z, a.w * b + c.w);
}
template <class Operation>
__device__ float4 combine(float4 a, float4 b, Operation operation) {
  return make_float4(operation(a.x, b.x), operation(a.y, b.y), operation(a.z, b.z), operation(a.w, b.w));
}
template <class Operation>
__device__ float4 warp_reduce_each(float4 value, Operation operation) {
  return make_float4(ladder::warp_reduce(value.x, operation), ladder::warp_reduce(value.y, operation),
                     ladder::warp_reduce(value.z, operation), ladder::warp_reduce(value.w, operation));
}
__device__ inline float exp_of_difference(float a, float b) { return expf(a - b); }

template <int BLOCK_Q>
__global__ void __launch_bounds__(THREADS)
    attention_four_queries_kernel(const float* q, Strides q_strides,  // (batch, heads, q_len, head_dim)
                                  const float* k, Strides k_strides,  // (batch, heads, k_len, head_dim)
                                  const float* v, Strides v_strides,  // (batch, heads, k_len, head_dim)
                                  float* out, Strides out_strides,    // (batch, heads, q_len, head_dim)
                                  int64_t heads, int64_t q_len, int k_len, int head_dim, float scale, bool causal) {
  using namespace ladder;
  const int warp = threadIdx.x / WARP_SIZE;
  const int lane = threadIdx.x % WARP_SIZE;
  const int64_t tiles = cdiv(q_len, BLOCK_Q);
  const int64_t block_start = blockIdx.x % tiles * BLOCK_Q;
  const int64_t head = blockIdx.x / tiles % heads;
  const int64_t batch = blockIdx.x / tiles / heads;

  const int k_stride = static_cast<int>(k_row_stride(head_dim));
  float4* const Q = dynamic_shared<float4>() + warp * head_dim;                  // (head_dim), four queries each
  float4* const S = dynamic_shared<float4>() + WARPS * head_dim + warp * k_len;  // (k_len), likewise
  float4* const P = S;                                                           // (k_len), in the place of S
  float* const K = dynamic_shared<float>() + 4 * WARPS * (head_dim + k_len);     // (k_len, head_dim)
  float* const V = K + k_len * k_stride;                                         // (k_len, head_dim)

  for (int j = warp; j < k_len; j += WARPS)
    for (int d = lane; d < head_dim; d += WARP_SIZE) {
      K[j * k_stride + d] = k[k_strides.row_start(batch, head, j) + d];
      V[j * head_dim + d] = v[v_strides.row_start(batch, head, j) + d];
    }
  __syncthreads();  // K and V are complete; from here on they are only read

  const int64_t block_end = min(block_start + BLOCK_Q, q_len);
  for (int64_t i = block_start + 4 * warp; i < block_end; i += 4 * WARPS) {
    const int queries = static_cast<int>(min(block_end - i, int64_t{4}));
    // How many keys each of the four sees: one more than its neighbour does, where causal.
    const auto visible = [&](int query) {
      const int64_t seen = causal ? i + query + k_len - q_len + 1 : k_len;
      return static_cast<int>(max(min(seen, int64_t{k_len}), int64_t{0}));
    };
    const int seen_by_all = visible(0), seen_by_some = visible(queries - 1);

    for (int d = lane; d < head_dim; d += WARP_SIZE) {
      const auto element = [&](int query) {  // past the last query, the last one again: its results are not stored
        return q[q_strides.row_start(batch, head, i + min(query, queries - 1)) + d];
      };
      Q[d] = make_float4(element(0), element(1), element(2), element(3));
    }
    __syncwarp();  // Q is complete, and all lanes have left the P of the warp's previous queries

    // S = scale Q K^T. Lane j % 32 owns column j of S and of P until the second __syncwarp.
    float4 m = each(-INFINITY);
    for (int first = lane; first < seen_by_some; first += KEYS_PER_LANE * WARP_SIZE) {
      const float* K_row[KEYS_PER_LANE];
      float4 dot[KEYS_PER_LANE];
#pragma unroll
      for (int n = 0; n < KEYS_PER_LANE; ++n) {
        K_row[n] = K + min(first + n * WARP_SIZE, k_len - 1) * k_stride;  // past the last key, the last one: not used
        dot[n] = each(0.0f);
      }
      for (int d = 0; d < head_dim; ++d) {
        const float4 queries_d = Q[d];
#pragma unroll
        for (int n = 0; n < KEYS_PER_LANE; ++n) dot[n] = multiply_add(queries_d, K_row[n][d], dot[n]);
      }
#pragma unroll
      for (int n = 0; n < KEYS_PER_LANE; ++n) {
        const int j = first + n * WARP_SIZE;
        const auto masked = [&](float score, int query) { return j < visible(query) ? scale * score : -INFINITY; };
        if (j < seen_by_some) {
          S[j] = make_float4(masked(dot[n].x, 0), masked(dot[n].y, 1), masked(dot[n].z, 2), masked(dot[n].w, 3));
          m = combine(m, S[j], Max{});
        }
      }
    }
    m = warp_reduce_each(m, Max{});  // in every lane
    float4 l = each(0.0f);
    for (int j = lane; j < seen_by_some; j += WARP_SIZE) {
      // A query that sees no key has m = -inf: its P is NaN and not used.
      P[j] = combine(S[j], m, exp_of_difference);
      l = combine(l, P[j], Sum{});
    }
    l = warp_reduce_each(l, Sum{});  // in every lane
    __syncwarp();                    // P is complete, and all lanes have left Q

    // O = P V / l. Lane d % 32 owns column d of O. What a query does not see is left out, not multiplied by 0.
    for (int first = lane; first < head_dim; first += COLUMNS_PER_LANE * WARP_SIZE) {
      const float* V_column[COLUMNS_PER_LANE];
      float4 o[COLUMNS_PER_LANE];
#pragma unroll
      for (int n = 0; n < COLUMNS_PER_LANE; ++n) {
        V_column[n] = V + min(first + n * WARP_SIZE, head_dim - 1);
        o[n] = each(0.0f);
      }
      for (int j = 0; j < seen_by_all; ++j) {
        const float4 weights = P[j];
#pragma unroll
        for (int n = 0; n < COLUMNS_PER_LANE; ++n) o[n] = multiply_add(weights, V_column[n][j * head_dim], o[n]);
      }
      for (int j = seen_by_all; j < seen_by_some; ++j)  // at most three keys
#pragma unroll
        for (int n = 0; n < COLUMNS_PER_LANE; ++n) {
          const float4 sum = multiply_add(P[j], V_column[n][j * head_dim], o[n]);
          o[n] = make_float4(o[n].x, j < visible(1) ? sum.y : o[n].y, j < visible(2) ? sum.z : o[n].z,
                             j < visible(3) ? sum.w : o[n].w);
        }
#pragma unroll
      for (int n = 0; n < COLUMNS_PER_LANE; ++n) {
        const int d = first + n * WARP_SIZE;
        const auto store = [&](int query, float numerator, float denominator) {
          if (query < queries && d < head_dim)
            out[out_strides.row_start(batch, head, i + query) + d] =
                visible(query) > 0 ? numerator / denominator : 0.0f;
        };
        store(0, o[n].x, l.x);
        store(1, o[n].y, l.y);
        store(2, o[n].z, l.z);
        store(3, o[n].w, l.w);
      }
    }
  }
}

// What lies in shared memory: K and V, and for each warp four queries and their scores.
constexpr int64_t four_queries_floats_per_key(int64_t head_dim) {
  return k_row_stride(head_dim) + head_dim + 4 * WARPS;
}

/// The largest k_len for which one block of attention_four_queries needs no more than `bytes` of shared memory.
constexpr int64_t four_queries_most_keys(int64_t head_dim, int64_t bytes) {
  return (bytes / static_cast<int64_t>(sizeof(float)) - 4 * floats_besides(head_dim)) /
         four_queries_floats_per_key(head_dim);
}

/// The contract of attention, to rounding, for up to four_queries_most_keys keys; more are left to attention.
inline void attention_four_queries(ladder::Heads<const float> q, ladder::Heads<const float> k,
                                   ladder::Heads<const float> v, ladder::Heads<float> out, bool causal = false,
                                   std::optional<float> scale = std::nullopt, cudaStream_t stream = nullptr) {
  using namespace ladder;
  constexpr const char* FUNCTION = "attention_four_queries";
  require_attention(FUNCTION, q, k, v, out);
  const auto [batches, heads, q_len, head_dim] = q.sizes;
  const int64_t k_len = k.sizes[2];
  if (q.empty()) return;
  if (k_len > four_queries_most_keys(head_dim, static_cast<int64_t>(shared_memory_limit())))
    return attention(q, k, v, out, causal, scale, stream);
  const auto strides = [](const auto& view) { return Strides{view.strides[0], view.strides[1], view.strides[2]}; };
  const dim3 grid = grid_of(FUNCTION, batches * heads * cdiv(q_len, QUERIES_PER_BLOCK_OF_FOURS));
  const int64_t floats = k_len * four_queries_floats_per_key(head_dim) + 4 * floats_besides(head_dim);
  launch(attention_four_queries_kernel<QUERIES_PER_BLOCK_OF_FOURS>, grid, dim3(THREADS),
         static_cast<std::size_t>(floats) * sizeof(float), stream, q.data, strides(q), k.data, strides(k), v.data,
         strides(v), out.data, strides(out), heads, q_len, static_cast<int>(k_len), static_cast<int>(head_dim),
         scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)))), causal);
}

}  // namespace step05
