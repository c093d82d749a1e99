/* The launchers of rungs 01 to 05 behind a C interface, for callers that are not C++ and bring their own memory.
 *
 * A tensor is a pointer, sizes, strides and an extent. Sizes, strides and extent count elements, not bytes; the extent
 * is the number of elements from `data` to the end of the memory that holds it. Outputs are written in place.
 * The pointers lie on the device that the library was built for (ladder_device()), and `stream` is a cudaStream_t of
 * that device; on the CPU device it means nothing, and the kernel has ended when the call returns.
 *
 * Each function returns LADDER_OK or why it did not run; the text is in ladder_last_error() then. What a launcher asks
 * of its arguments stands at its declaration under steps/. */
#ifndef LADDER_C_H
#define LADDER_C_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  float* data;
  int64_t sizes[1], strides[1], extent;
} ladder_vector; /* (n) */
typedef struct {
  float* data;
  int64_t sizes[2], strides[2], extent;
} ladder_matrix; /* (rows, columns) */
typedef struct {
  float* data;
  int64_t sizes[4], strides[4], extent;
} ladder_heads; /* (batch, heads, sequence, head_dim) */

enum {
  LADDER_OK = 0,
  LADDER_INVALID_ARGUMENT = 1, /* the launcher refused: nothing was launched and nothing written */
  LADDER_LAUNCH_REFUSED = 2,   /* the device does not take the launch: nothing ran */
  LADDER_KERNEL_FAULT = 3,     /* the device failed while it ran */
  LADDER_OTHER_ERROR = 4       /* no memory, for example */
};

/* "cpu" or "cuda". */
const char* ladder_device(void);

/* Makes the GPU of this number the one that this host thread launches on; the CPU device has number 0 only. */
int32_t ladder_use_device(int32_t index);

/* The text of this host thread's last call that failed, in one line. It lies in the library and lasts until the next
 * call that fails. */
const char* ladder_last_error(void);

int32_t ladder_vector_add(ladder_vector x, ladder_vector y, ladder_vector out, void* stream);
int32_t ladder_vector_add_vectorized(ladder_vector x, ladder_vector y, ladder_vector out, void* stream);
int32_t ladder_relu_dropout(ladder_vector x, ladder_vector out, float p, uint64_t seed, uint64_t first_counter,
                            void* stream);
int32_t ladder_relu_dropout_four_per_call(ladder_vector x, ladder_vector out, float p, uint64_t seed,
                                          uint64_t first_counter, void* stream);
int32_t ladder_softmax_buggy(ladder_matrix input, ladder_matrix output, void* stream); /* 03: WRONG past 1024 columns */
int32_t ladder_softmax(ladder_matrix input, ladder_matrix output, void* stream);       /* 04 */
/* `scale` may be null: 1 / sqrt(head_dim). */
int32_t ladder_attention(ladder_heads q, ladder_heads k, ladder_heads v, ladder_heads out, int32_t causal,
                         const float* scale, void* stream);

#ifdef __cplusplus
}
#endif

#endif
