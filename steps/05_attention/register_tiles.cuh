// A variant of rung 05. One idea: a lane keeps a patch of sixteen sums in registers, 4 queries by 4 keys.
//
// The rung fetches both factors of each multiply-add. Shared memory gives a multiprocessor 128 bytes a clock, one float
// for each lane of one warp. Where a multiprocessor has 128 fp32 lanes (sm_86, sm_89, sm_90), they could multiply and
// add for four warps meanwhile: by that reckoning seven eighths of them wait. Here a
// block takes 32 queries at a time, so that S = Q K^T and O = P V are products of matrices. Four floats of Q and four
// of K, eight in all, make sixteen multiply-adds in place of four. In P V it is four weights and two columns of V.
//
// What it costs: all 8 warps meet at five barriers for each 32 queries, where the rung's warps went their own ways; and
// the scores of 32 queries lie on chip, not of 8, so that fewer keys fit.
#pragma once

#include "steps/05_attention/attention.cuh"

namespace step05 {

constexpr int TILE_Q = ladder::WARP_SIZE;               ///< Queries at a time.
constexpr int QUERIES_PER_BLOCK_OF_TILES = 4 * TILE_Q;  ///< Queries of a block.
constexpr int Q_STRIDE = TILE_Q + 4;  ///< A row of Q^T, so that a column is stored to 8 banks, not to one
constexpr int KEYS_PER_WARP = 16;     ///< Keys at a time: four lanes side by side, four keys each.

/// The elements from one row of V to the next in shared memory: rows are padded by zeros to whole float4s.
__host__ __device__ constexpr int64_t padded(int64_t head_dim) { return ladder::cdiv(head_dim, 4) * 4; }
/// The same for K, to an odd number of float4s: then four consecutive rows, which a warp reads at once, lie in
/// different banks.
__host__ __device__ constexpr int64_t k_tile_stride(int64_t head_dim) { return (ladder::cdiv(head_dim, 4) | 1) * 4; }

/// Four floats as one access moves them; `first` must lie at a multiple of 16 bytes.
__device__ inline float4& four_at(float* first) { return *reinterpret_cast<float4*>(first); }
/// a * b + c for each of the four.
__device__ inline float4 multiply_add(float4 a, float b, float4 c) {
  return make_float4(a.x * b + c.x, a.y * b + c.y, a.z * b + c.z, a.w * b + c.w);
}

/// A patch of Q K^T: adds to dot[n] the products of four queries, from first_query on, with the key at K_row[n]. `Q` is
/// Q^T, its rows Q_STRIDE apart; `row` is their number and the length of a key, a multiple of 4.
__device__ inline void dot_products(float* Q, int first_query, const float* const (&K_row)[4], int row,
                                    float4 (&dot)[4]) {
#pragma unroll 2  // so that fetches of the next four columns are under way
  for (int d = 0; d < row; d += 4) {
    const float4 q0 = four_at(Q + d * Q_STRIDE + first_query), q1 = four_at(Q + (d + 1) * Q_STRIDE + first_query);
    const float4 q2 = four_at(Q + (d + 2) * Q_STRIDE + first_query), q3 = four_at(Q + (d + 3) * Q_STRIDE + first_query);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float4 k_d = *reinterpret_cast<const float4*>(K_row[n] + d);
      dot[n] = multiply_add(q0, k_d.x, dot[n]);
      dot[n] = multiply_add(q1, k_d.y, dot[n]);
      dot[n] = multiply_add(q2, k_d.z, dot[n]);
      dot[n] = multiply_add(q3, k_d.w, dot[n]);
    }
  }
}

/// One block per BLOCK_Q queries of one batch and head. It brings all of K and V on chip, then takes TILE_Q queries at
/// a time; all its warps compute S, then the softmax, then O.
template <int BLOCK_Q>
__global__ void __launch_bounds__(THREADS)
    attention_register_tiles_kernel(const float* q, Strides q_strides,  // (batch, heads, q_len, head_dim)
                                    const float* k, Strides k_strides,  // (batch, heads, k_len, head_dim)
                                    const float* v, Strides v_strides,  // (batch, heads, k_len, head_dim)
                                    float* out, Strides out_strides,    // (batch, heads, q_len, head_dim)
                                    int64_t heads, int64_t q_len, int k_len, int head_dim, float scale, bool causal) {
  using namespace ladder;
  static_assert(BLOCK_Q % TILE_Q == 0 && TILE_Q == 4 * WARPS, "a warp owns four rows of O");
  const int warp = threadIdx.x / WARP_SIZE;
  const int lane = threadIdx.x % WARP_SIZE;
  const int64_t tiles = cdiv(q_len, BLOCK_Q);
  const int64_t block_start = blockIdx.x % tiles * BLOCK_Q;
  const int64_t head = blockIdx.x / tiles % heads;
  const int64_t batch = blockIdx.x / tiles / heads;

  const int row = static_cast<int>(padded(head_dim)), k_stride = static_cast<int>(k_tile_stride(head_dim));
  float* const K = dynamic_shared<float>();          // (k_len, head_dim), rows k_stride apart
  float* const V = K + k_len * k_stride;             // (k_len, head_dim), rows `row` apart
  float* const Q = V + k_len * row;                  // (head_dim, TILE_Q), rows Q_STRIDE apart: Q^T
  float* const S = Q + row * Q_STRIDE;               // (k_len, TILE_Q): S^T
  float* const P = S;                                // (k_len, TILE_Q), in the place of S
  float* const max_of_warp = S + k_len * TILE_Q;     // (WARPS, TILE_Q)
  float* const sum_of_warp = max_of_warp + THREADS;  // (WARPS, TILE_Q)

  for (int d = lane; d < row; d += WARP_SIZE) {
#pragma unroll 8  // so that sixteen loads are under way, not two
    for (int j = warp; j < k_len; j += WARPS) {
      K[j * k_stride + d] = d < head_dim ? k[k_strides.row_start(batch, head, j) + d] : 0.0f;
      V[j * row + d] = d < head_dim ? v[v_strides.row_start(batch, head, j) + d] : 0.0f;
    }
  }

  const int64_t block_end = min(block_start + BLOCK_Q, q_len);
  for (int64_t tile_start = block_start; tile_start < block_end; tile_start += TILE_Q) {
    // How many keys a query of the tile sees: where causal, one more than the query before it.
    const auto visible = [&](int query) {
      const int64_t seen = causal ? tile_start + query + k_len - q_len + 1 : k_len;
      return static_cast<int>(max(min(seen, int64_t{k_len}), int64_t{0}));
    };

    for (int d = lane; d < row; d += WARP_SIZE) {
#pragma unroll
      for (int query = warp; query < TILE_Q; query += WARPS) {
        const int64_t i = min(tile_start + query, q_len - 1);  // past the last query, that one again: not stored
        Q[d * Q_STRIDE + query] = d < head_dim ? q[q_strides.row_start(batch, head, i) + d] : 0.0f;
      }
    }
    __syncthreads();  // Q is complete, and so are K and V; all have left the P of the previous tile

    // S = scale Q K^T. Eight lanes side by side hold the 32 queries, four each.
    const int own_queries = lane % 8 * 4;
    for (int first = warp * KEYS_PER_WARP; first < visible(TILE_Q - 1); first += WARPS * KEYS_PER_WARP) {
      const auto key = [&](int n) { return first + lane / 8 + 4 * n; };
      const float* K_row[4];
      float4 dot[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        K_row[n] = K + min(key(n), k_len - 1) * k_stride;  // past the last key, that one again: not stored
        dot[n] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      }
      dot_products(Q, own_queries, K_row, row, dot);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        if (key(n) < k_len)
          four_at(S + key(n) * TILE_Q + own_queries) =
              make_float4(scale * dot[n].x, scale * dot[n].y, scale * dot[n].z, scale * dot[n].w);
    }
    __syncthreads();  // S is complete

    // The softmax. A lane is a query now, and the warps share its keys. What it does not see it does not touch.
    float m = -INFINITY;
    for (int j = warp; j < visible(lane); j += WARPS) m = fmaxf(m, S[j * TILE_Q + lane]);
    max_of_warp[warp * TILE_Q + lane] = m;
    __syncthreads();                                                               // the maxima are complete
    for (int w = 0; w < WARPS; ++w) m = fmaxf(m, max_of_warp[w * TILE_Q + lane]);  // in every warp
    float l = 0.0f;
    for (int j = warp; j < visible(lane); j += WARPS) {
      const float numerator = expf(S[j * TILE_Q + lane] - m);
      P[j * TILE_Q + lane] = numerator;
      l += numerator;
    }
    sum_of_warp[warp * TILE_Q + lane] = l;
    __syncthreads();  // the sums are complete
    l = 0.0f;
    for (int w = 0; w < WARPS; ++w) l += sum_of_warp[w * TILE_Q + lane];  // in every warp
    const float reciprocal = 1.0f / l;
#pragma unroll 4  // so that a warp does not wait for each weight in turn
    for (int j = warp; j < visible(lane); j += WARPS) P[j * TILE_Q + lane] *= reciprocal;
    __syncthreads();  // P is complete

    // O = P V, 0 where no key is visible. A warp owns four queries, and a lane two columns. The last three keys of a
    // causal row are seen by some of the four only: what a query does not see is left out, not multiplied by 0.
    const int seen_by_all = visible(4 * warp), seen_by_some = visible(4 * warp + 3);
    for (int d = 2 * lane; d < head_dim; d += 2 * WARP_SIZE) {
      float o[4][2] = {};
      const auto add_key = [&](int j, auto sees) {
        const float4 weights = four_at(P + j * TILE_Q + 4 * warp);
        const float2 v_j = *reinterpret_cast<const float2*>(V + j * row + d);
        const float weight[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
        for (int n = 0; n < 4; ++n)
          if (sees(n)) {
            o[n][0] += weight[n] * v_j.x;
            o[n][1] += weight[n] * v_j.y;
          }
      };
#pragma unroll 8
      for (int j = 0; j < seen_by_all; ++j) add_key(j, [](int) { return true; });
      for (int j = seen_by_all; j < seen_by_some; ++j) add_key(j, [&](int n) { return j < visible(4 * warp + n); });
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t i = tile_start + 4 * warp + n;
        if (i < block_end) {
          float* const out_row = out + out_strides.row_start(batch, head, i);
          out_row[d] = o[n][0];
          if (d + 1 < head_dim) out_row[d + 1] = o[n][1];
        }
      }
    }
  }
}

/// The floats of shared memory for each key: its rows of K and V, and the scores of 32 queries.
constexpr int64_t register_tiles_floats_per_key(int64_t head_dim) {
  return k_tile_stride(head_dim) + padded(head_dim) + TILE_Q;
}
/// The floats of shared memory whatever k_len is: 32 queries, and the warps' maxima and sums.
constexpr int64_t register_tiles_floats_besides(int64_t head_dim) { return padded(head_dim) * Q_STRIDE + 2 * THREADS; }

/// The largest k_len for which one block of attention_register_tiles needs no more than `bytes` of shared memory.
constexpr int64_t register_tiles_most_keys(int64_t head_dim, int64_t bytes) {
  return (bytes / static_cast<int64_t>(sizeof(float)) - register_tiles_floats_besides(head_dim)) /
         register_tiles_floats_per_key(head_dim);
}

/// The contract of attention(), to rounding, for up to register_tiles_most_keys keys; more are left to attention.
inline void attention_register_tiles(ladder::Heads<const float> q, ladder::Heads<const float> k,
                                     ladder::Heads<const float> v, ladder::Heads<float> out, bool causal = false,
                                     std::optional<float> scale = std::nullopt, cudaStream_t stream = nullptr) {
  using namespace ladder;
  constexpr const char* FUNCTION = "attention_register_tiles";
  require_attention(FUNCTION, q, k, v, out);
  const auto [batches, heads, q_len, head_dim] = q.sizes;
  const int64_t k_len = k.sizes[2];
  if (q.empty()) return;
  require_on_chip(FUNCTION, k_len, head_dim);
  if (k_len > register_tiles_most_keys(head_dim, static_cast<int64_t>(shared_memory_limit())))
    return launch_attention(FUNCTION, q, k, v, out, causal, scale, stream);
  const auto strides = [](const auto& view) { return Strides{view.strides[0], view.strides[1], view.strides[2]}; };
  const dim3 grid = grid_of(FUNCTION, batches * heads * cdiv(q_len, QUERIES_PER_BLOCK_OF_TILES));
  const int64_t floats = k_len * register_tiles_floats_per_key(head_dim) + register_tiles_floats_besides(head_dim);
  launch(attention_register_tiles_kernel<QUERIES_PER_BLOCK_OF_TILES>, grid, dim3(THREADS),
         static_cast<std::size_t>(floats) * sizeof(float), stream, q.data, strides(q), k.data, strides(k), v.data,
         strides(v), out.data, strides(out), heads, q_len, static_cast<int>(k_len), static_cast<int>(head_dim),
         scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)))), causal);
}

}  // namespace step05
