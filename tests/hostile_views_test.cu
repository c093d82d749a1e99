// The launchers of all rungs under hostile views: negative, huge, short, null, misaligned, overlapping, of another
// shape. An oracle says what the contracts refuse, by plain 128-bit arithmetic and by walking over the cells; it knows
// none of the checks in common/kernel. What it refuses must be refused, with the right argument named, before a kernel
// is launched or a cell written; all else must run, be right, and write nothing but the output.
//
// (vector_add_without_mask takes whatever it gets: that is its point.)
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"
#include "tests/02_philox_by_hand.hpp"
#include "tests/expect.hpp"
#include "tests/signed_overflow.hpp"

namespace {

using namespace ladder;
using Wide = __int128;  // what no product of two sizes overflows

constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max(), LOWEST = std::numeric_limits<int64_t>::min();

// A view whose rank is known at run time only.
struct Tensor {
  std::string name;
  float* data = nullptr;
  std::vector<int64_t> sizes, strides{};
  int64_t extent = 0;

  template <class T, int RANK>
  operator View<T, RANK>() const {
    View<T, RANK> view{data, {}, {}, extent};
    std::copy(sizes.begin(), sizes.end(), view.sizes.begin());
    std::copy(strides.begin(), strides.end(), view.strides.begin());
    return view;
  }
  bool has(int64_t size) const { return std::ranges::count(sizes, size) > 0; }
  std::string axis(const char* member, std::size_t at) const {
    return name + "." + member + "[" + std::to_string(at) + "]";
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data); }
};

// ---- the oracle ----

// Elements from the first to the last.
Wide span_of(const Tensor& tensor) {
  Wide span = 1;
  for (std::size_t axis = 0; axis < tensor.sizes.size(); ++axis)
    span += (Wide{tensor.sizes[axis]} - 1) * tensor.strides[axis];
  return span;
}

// The elements, last axis fastest, each as its distance from `data`. `once`: an axis of stride 0 is walked only once,
// since it may be of any length.
std::vector<int64_t> cells_of(const Tensor& tensor, bool once = false) {
  std::vector<int64_t> cells{0};
  for (std::size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
    std::vector<int64_t> next;
    const int64_t size = tensor.sizes[axis],
                  steps = once && tensor.strides[axis] == 0 ? std::min<int64_t>(size, 1) : size;
    for (int64_t cell : cells)
      for (int64_t i = 0; i < steps; ++i) next.push_back(cell + i * tensor.strides[axis]);
    cells = std::move(next);
  }
  return cells;
}

// Why a call must be refused, and how the refusal must begin after the function's name.
struct Oracle {
  std::multimap<std::string, std::string> reasons{};
  std::set<std::string> illegal{};  // names

  void refuse_for(const char* reason, const std::string& argument) { reasons.emplace(reason, argument); }

  void view(const Tensor& t) {
    for (std::size_t axis = 0; axis < t.sizes.size(); ++axis) {
      if (t.sizes[axis] < 0) refuse_for("negative size", t.axis("sizes", axis));
      if (t.strides[axis] < 0) refuse_for("negative stride", t.axis("strides", axis));
      if (t.sizes[axis] < 0 || t.strides[axis] < 0) illegal.insert(t.name);
    }
    if (illegal.contains(t.name) || t.has(0)) return;  // without elements it needs no memory
    const std::size_t before = reasons.size();
    if (span_of(t) > t.extent)
      refuse_for("short", t.name + ".extent");
    else if (span_of(t) * 4 > LARGEST)
      refuse_for("bytes beyond 64 bits", "the span of " + t.name);
    if (t.data == nullptr) refuse_for("null", t.name + ".data");
    if (t.address() % 4 != 0) refuse_for("misaligned", t.name + ".data");
    if (reasons.size() > before) illegal.insert(t.name);
  }
  void equal_sizes(const Tensor& t, const Tensor& other, const std::vector<std::size_t>& axes) {
    for (std::size_t axis : axes)
      if (t.sizes[axis] != other.sizes[axis]) refuse_for("another shape", t.axis("sizes", axis));
  }
  void contiguous_last_axis(const Tensor& t) {
    const std::size_t last = t.sizes.size() - 1;
    if (t.sizes[last] > 1 && t.strides[last] != 1) refuse_for("gaps in the last axis", t.axis("strides", last));
  }
  void rows_apart(const Tensor& t) {
    if (t.sizes[0] > 1 && t.strides[0] < t.sizes[1]) refuse_for("rows share cells", t.axis("strides", 0));
  }
  // Each element of an output has a cell of its own.
  void distinct(const Tensor& t) {
    if (illegal.contains(t.name) || t.has(0)) return;
    std::vector<int64_t> cells = cells_of(t, true);
    Wide elements = 1;
    for (int64_t size : t.sizes) elements *= size;
    std::ranges::sort(cells);
    if (static_cast<Wide>(cells.size()) != elements || std::ranges::adjacent_find(cells) != cells.end())
      return refuse_for("elements share cells", t.name + ".strides");
    // Known exception: axes that interlock without sharing a cell, as strides of 2 and 3 can, are refused as well.
    for (std::size_t a = 0; a < t.sizes.size(); ++a) {
      Wide reach = 1;
      for (std::size_t b = 0; b < t.sizes.size(); ++b)
        if (b != a && t.strides[b] <= t.strides[a]) reach += (Wide{t.sizes[b]} - 1) * t.strides[b];
      if (t.sizes[a] > 1 && t.strides[a] < reach) refuse_for("exception: interlocking axes", t.name + ".strides");
    }
  }
  // No cell in common, unless both are the same cells in the same order and that is allowed.
  void apart(const Tensor& output, const Tensor& input, bool same_allowed) {
    if (illegal.contains(output.name) || illegal.contains(input.name) || output.has(0) || input.has(0)) return;
    const Wide first_a = output.address(), last_a = first_a + 4 * span_of(output) - 4;
    const Wide first_b = input.address(), last_b = first_b + 4 * span_of(input) - 4;
    if (last_a < first_b || last_b < first_a) return;
    const std::string argument = output.name + ".data";
    bool same = output.data == input.data && output.sizes == input.sizes;
    for (std::size_t axis = 0; axis < output.sizes.size(); ++axis)
      same = same && (output.sizes[axis] == 1 || output.strides[axis] == input.strides[axis]);
    if (same && same_allowed) return;
    if (span_of(output) > (1 << 20)) return refuse_for("overlap", argument);  // too long to walk, and has no gaps
    std::vector<int64_t> a = cells_of(output, true), b = cells_of(input, true);
    for (int64_t& cell : b) cell += input.data - output.data;
    std::ranges::sort(a);
    std::ranges::sort(b);
    std::vector<int64_t> common;
    std::ranges::set_intersection(a, b, std::back_inserter(common));
    // Known exception: memory is judged from the first element to the last, so that rows of one view in the gaps of
    // another are refused although no cell is shared.
    refuse_for(common.empty() ? "exception: interleaved" : "overlap", argument);
  }
};

// ---- hostile calls ----

constexpr int64_t CELLS = 4096;

int64_t between(int64_t lowest, int64_t highest) { return *rc::gen::inRange<int64_t>(lowest, highest + 1); }
template <class... T>
int64_t one_of(T... values) {
  return *rc::gen::element<int64_t>(static_cast<int64_t>(values)...);
}
bool one_in(int64_t n) { return between(1, n) == 1; }

// All tensors of a call lie in one buffer, so that a stray write shows wherever it goes.
struct Arena {
  std::vector<float> values = normal(CELLS, 1);
  Buffer<float> buffer{"arena", values};

  int64_t room(const Tensor& t) const {  // elements that are there, from t.data on
    const auto end = reinterpret_cast<std::uintptr_t>(buffer.data() + CELLS);
    return t.address() <= end ? static_cast<int64_t>((end - t.address()) / 4) : 0;
  }
  std::size_t index(const Tensor& t, int64_t cell) const {
    return static_cast<std::size_t>(t.data - buffer.data() + cell);
  }
  // In the order given, rows with gaps between them, tensors with gaps between them.
  void lay_out(std::vector<Tensor>& tensors) const {
    float* data = buffer.data();
    for (Tensor& t : tensors) {
      t.data = data + between(0, 5);
      t.strides.assign(t.sizes.size(), 1);
      int64_t stride = std::max<int64_t>(t.sizes.back(), 1);
      for (std::size_t axis = t.sizes.size() - 1; axis-- > 0;) {
        t.strides[axis] = stride += one_of(0, 0, 1, 3);
        stride *= std::max<int64_t>(t.sizes[axis], 1);
      }
      const auto span = static_cast<int64_t>(span_of(t));
      t.extent = t.has(0) ? between(0, 1) * room(t) : one_of(span, room(t));
      data = t.data + std::max<int64_t>(span, 0);
    }
  }
  // One thing about one of them becomes hostile. Extents never promise more than there is: no launcher could tell.
  void spoil(std::vector<Tensor>& tensors) const {
    const auto any = [&] { return static_cast<std::size_t>(between(0, std::ssize(tensors) - 1)); };
    Tensor& t = tensors[any()];
    const Tensor& other = tensors[any()];
    const auto axis = static_cast<std::size_t>(between(0, std::ssize(t.sizes) - 1));
    int64_t& size = t.sizes[axis];
    int64_t& stride = t.strides[axis];
    switch (between(0, 7)) {
      case 0:
        size = one_of(-1, LOWEST, 0, 1, size < 100 ? size + 1 : 2, int64_t{1} << 32, LARGEST);
        break;
      case 1:
        stride = one_of(-1, LOWEST, 0, 1, 2, 3, 5, LARGEST, LARGEST / 2);
        break;
      case 2: {
        const auto span = static_cast<int64_t>(std::clamp<Wide>(span_of(t), 0, room(t)));
        t.extent = one_of(-1, 0, LOWEST, span / 2, span - 1, span);
        break;
      }
      case 3:
        t.data = nullptr;
        break;
      case 4:
        t.data = reinterpret_cast<float*>(t.address() + static_cast<std::uintptr_t>(between(1, 3)));
        t.extent = std::min(t.extent, room(t));
        break;
      case 5:  // onto another one, or a little beside it
        t.data = other.data;
        if (t.data != nullptr) t.data += between(0, 2);
        t.extent = room(t);
        break;
      case 6:  // exactly another one, where the shapes allow it
        if (other.sizes.size() == t.sizes.size()) t = {t.name, other.data, t.sizes, other.strides, other.extent};
        break;
      case 7:  // into the gaps of another one
        if (other.sizes.size() < 2 || other.data == nullptr || other.name == t.name ||
            t.sizes.size() != other.sizes.size())
          break;
        for (Tensor& each : tensors)
          if (each.name == other.name || each.name == t.name)
            for (std::size_t outer = 0; outer + 1 < each.strides.size(); ++outer)
              if (each.strides[outer] >= 0 && each.strides[outer] < CELLS) {
                each.strides[outer] *= 3;
                each.extent = room(each);
              }
        if (other.sizes.back() < 0 || other.sizes.back() > CELLS) break;
        t.data = other.data + other.sizes.back();
        t.extent = room(t);
        break;
    }
  }
};

struct Call {
  std::vector<Tensor> tensors;  // the output last
  std::vector<Tensor> scratch{};
  Oracle oracle{};
  std::function<void()> launch{};
  std::function<std::vector<double>()> expected{};  // of an accepted call, in the order of cells_of
  Tolerance tolerance{};
};

struct Tally {
  int calls = 0, accepted = 0;
  std::map<std::string, int> refused{};
};

void check_call(Arena& arena, const char* function, const Call& call, Tally& tally) {
  arena.buffer.upload(arena.values);
  std::string message;
  const int64_t overflows = signed_overflows;
  const Launches launches = count_launches([&] {
    try {
      call.launch();
    } catch (const InvalidArgument& refusal) {
      message = refusal.what();
    }
  });
  std::vector<float> after = arena.buffer.download();
  RC_ASSERT(signed_overflows == overflows);
  RC_ASSERT(arena.buffer.guards_intact());
  ++tally.calls;
  const auto same_bits = [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); };
  if (call.oracle.reasons.empty()) {
    RC_ASSERT(message == "");
    ++tally.accepted;
    const Tensor& out = call.tensors.back();
    if (!out.has(0)) {
      RC_ASSERT(launches.kernels > 0);
      std::vector<float> result;
      for (int64_t cell : cells_of(out)) {
        result.push_back(after.at(arena.index(out, cell)));
        after[arena.index(out, cell)] = arena.values[arena.index(out, cell)];
      }
      const Comparison difference = compare(result, call.expected(), {std::ssize(result)}, call.tolerance);
      RC_LOG() << difference.describe() << "\n";
      RC_ASSERT(difference.matches());
      for (const Tensor& t : call.scratch)
        for (int64_t cell : cells_of(t)) after.at(arena.index(t, cell)) = arena.values[arena.index(t, cell)];
    } else {
      RC_ASSERT(launches.kernels == 0);
    }
  } else {
    RC_ASSERT(launches.kernels == 0);
    const bool named = std::ranges::any_of(call.oracle.reasons, [&](const auto& reason) {
      return message.starts_with(function + (": " + reason.second));
    });
    RC_LOG() << "'" << message << "', must name " << call.oracle.reasons.begin()->second << " ("
             << call.oracle.reasons.begin()->first << ")\n";
    RC_ASSERT(named);
    for (const auto& reason : call.oracle.reasons) ++tally.refused[reason.first];
  }
  RC_ASSERT(std::ranges::equal(after, arena.values, same_bits));  // but for the output of an accepted call
}

// Draws calls until the law of averages holds; then each reason must have come up, and acceptance often.
void check_launcher(const char* function, const std::function<Call(const Arena&)>& draw,
                    const std::set<std::string>& reasons) {
  const std::string name = function;
  CAPTURE(name);
  Arena arena;
  Tally tally;
  CHECK_PROPERTY([&] {
    for (int i = 0; i < 40; ++i) check_call(arena, function, draw(arena), tally);
  });
  CHECK(tally.accepted >= tally.calls / 5);
  CHECK(tally.accepted <= tally.calls * 4 / 5);
  for (const std::string& reason : reasons) {
    CAPTURE(reason);
    CAPTURE(tally.calls);
    CHECK(tally.refused[reason] > 0);
  }
}

void spoil_some(const Arena& arena, std::vector<Tensor>& tensors) {
  for (int64_t left = one_of(0, 0, 0, 1, 1, 1, 2); left > 0; --left) arena.spoil(tensors);
}

std::vector<float> values_of(const Arena& arena, const Tensor& t) {
  std::vector<float> values;
  if (t.has(0)) return values;
  for (int64_t cell : cells_of(t)) values.push_back(arena.values.at(arena.index(t, cell)));
  return values;
}

const std::set<std::string> ANY_VIEW{"negative size", "negative stride", "short",   "null",
                                     "misaligned",    "another shape",   "overlap", "gaps in the last axis"};
std::set<std::string> with(std::set<std::string> reasons, const std::set<std::string>& more) {
  reasons.insert(more.begin(), more.end());
  return reasons;
}

// Vectors that claim to be so long that no launch can serve them: here an extent may lie, as nothing may be touched.
bool boast(std::vector<Tensor>& tensors) {
  if (!one_in(12)) return false;
  const int64_t n = one_of(int64_t{1} << 42, (int64_t{1} << 61) - 1, int64_t{1} << 61, LARGEST);
  for (Tensor& t : tensors) t = {t.name, tensors.back().data, {n}, {1}, LARGEST};
  return true;
}

void judge_vectors(Oracle& oracle, const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) oracle.view(t);
  for (std::size_t i = 1; i < tensors.size(); ++i) oracle.equal_sizes(tensors[i], tensors[0], {0});
  for (const Tensor& t : tensors) oracle.contiguous_last_axis(t);
  for (std::size_t i = 0; i + 1 < tensors.size(); ++i) oracle.apart(tensors.back(), tensors[i], true);
}

}  // namespace

TEST_CASE("hostile views: vector_add and vector_add_vectorized") {
  const auto run = [](const char* name, auto launcher) {
    check_launcher(
        name,
        [&](const Arena& arena) {
          const int64_t n = one_of(0, 1, 2, between(3, 600), between(3, 600));
          Call call{{{"x", nullptr, {n}}, {"y", nullptr, {n}}, {"out", nullptr, {n}}}};
          arena.lay_out(call.tensors);
          const bool boasts = boast(call.tensors);
          if (!boasts) spoil_some(arena, call.tensors);
          judge_vectors(call.oracle, call.tensors);
          if (boasts && call.oracle.reasons.empty())
            call.oracle.refuse_for("more blocks than a grid holds", "the number of blocks");
          call.launch = [tensors = call.tensors, launcher] { launcher(tensors[0], tensors[1], tensors[2], nullptr); };
          call.expected = [&arena, tensors = call.tensors] {
            return reference_add(values_of(arena, tensors[0]), values_of(arena, tensors[1]));
          };
          call.tolerance = {0, 0x1p-24};  // one rounding
          return call;
        },
        with(ANY_VIEW, {"bytes beyond 64 bits", "more blocks than a grid holds"}));
  };
  run("vector_add", step01::vector_add);
  run("vector_add_vectorized", step01::vector_add_vectorized);
}

TEST_CASE("hostile views: relu_dropout, four_per_call and unfused") {
  const auto run = [](const char* name, auto launcher, uint32_t (*word)(uint64_t, uint64_t)) {
    check_launcher(
        name,
        [&](const Arena& arena) {
          const int64_t n = one_of(0, 1, 2, between(3, 600), between(3, 600));
          Call call{{{"x", nullptr, {n}}, {"out", nullptr, {n}}}};
          arena.lay_out(call.tensors);
          const bool boasts = boast(call.tensors);
          if (!boasts) spoil_some(arena, call.tensors);
          judge_vectors(call.oracle, call.tensors);
          if (boasts && call.oracle.reasons.empty())
            call.oracle.refuse_for("more blocks than a grid holds", "the number of blocks");
          float p = static_cast<float>(between(0, 100)) / 100;
          if (one_in(10)) p = *rc::gen::element(-0.1f, 1.001f, std::nextafter(1.0f, 2.0f), NAN, INFINITY, -INFINITY);
          if (!(p >= 0) || !(p <= 1)) call.oracle.refuse_for("p outside [0, 1]", "p is");
          const auto seed = *rc::gen::arbitrary<uint64_t>();
          uint64_t first = *rc::gen::arbitrary<uint64_t>() / 2;
          if (one_in(10)) first = std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(between(0, 2 * n + 1));
          if (Wide{first} + call.tensors[0].sizes[0] > std::numeric_limits<uint64_t>::max())
            call.oracle.refuse_for("counters past 2^64", "first_counter");
          call.launch = [=, tensors = call.tensors] { launcher(tensors[0], tensors[1], p, seed, first, nullptr); };
          call.expected = [=, &arena, x = call.tensors[0]] {
            return reference_relu_dropout(values_of(arena, x), by_hand::uniforms(word, seed, first, x.sizes[0]), p);
          };
          call.tolerance = {0, 0x1.01p-23};  // two roundings
          return call;
        },
        with(ANY_VIEW,
             {"bytes beyond 64 bits", "more blocks than a grid holds", "p outside [0, 1]", "counters past 2^64"}));
  };
  run("relu_dropout", step02::relu_dropout<256>, by_hand::word_per_call);
  run("relu_dropout_four_per_call", step02::relu_dropout_four_per_call<256>, by_hand::word_of_four);
  run("relu_dropout_in_flight", step02::relu_dropout_in_flight<64, 4>, by_hand::word_of_four);
  run("relu_dropout_unfused", step02::relu_dropout_unfused, by_hand::word_per_call);
}

namespace {

void judge_matrices(Oracle& oracle, const Tensor& input, const Tensor& output) {
  for (const Tensor* t : {&input, &output}) {
    oracle.view(*t);
    oracle.contiguous_last_axis(*t);
    oracle.rows_apart(*t);
  }
  oracle.equal_sizes(output, input, {0, 1});
  oracle.apart(output, input, true);
}

}  // namespace

TEST_CASE("hostile views: both softmaxes, the vectorized one, and the naive one") {
  const auto run = [](const char* name, auto launcher, int64_t widest) {
    std::set<std::string> reasons = with(ANY_VIEW, {"rows share cells", "exception: interleaved"});
    if (widest != 0) reasons.insert("too wide");
    check_launcher(
        name,
        [&](const Arena& arena) {
          const int64_t rows = between(0, 5), columns = one_of(0, 1, 2, between(3, 130), between(3, 130));
          Call call{{{"input", nullptr, {rows, columns}}, {"output", nullptr, {rows, columns}}}};
          arena.lay_out(call.tensors);
          if (widest != 0 && one_in(12)) {  // memory that is not there: nothing may be touched
            const int64_t wide = one_of(widest + 1, 2 * widest, LARGEST / 4 - 1);
            for (Tensor& t : call.tensors) t = {t.name, call.tensors[0].data, {1, wide}, {wide, 1}, LARGEST};
          } else {
            spoil_some(arena, call.tensors);
          }
          const Tensor &input = call.tensors[0], &output = call.tensors[1];
          judge_matrices(call.oracle, input, output);
          if (widest != 0 && !input.has(0) && input.sizes[1] > widest) call.oracle.refuse_for("too wide", "n_cols");
          call.launch = [launcher, input, output] { launcher(input, output); };
          call.expected = [&arena, input] {
            return reference_softmax(values_of(arena, input), input.sizes[0], input.sizes[1]);
          };
          call.tolerance = {0, 2e-6};
          return call;
        },
        reasons);
  };
  run(
      "softmax", [](const Tensor& in, const Tensor& out) { step03::softmax(in, out); }, 0);
  run(
      "softmax", [](const Tensor& in, const Tensor& out) { step04::softmax(in, out); }, 32768);
  run(
      "softmax_vectorized",
      [](const Tensor& in, const Tensor& out) {
        step04::softmax_vectorized(Matrix<const float>(in), Matrix<float>(out));
      },
      32768);
  run(
      "softmax_naive", [](const Tensor& in, const Tensor& out) { step04::softmax_naive(in, out); }, 0);
}

TEST_CASE("hostile views: softmax_unfused and its scratch memory") {
  check_launcher(
      "softmax_unfused",
      [&](const Arena& arena) {
        const int64_t rows = between(0, 5), columns = one_of(0, 1, 2, between(3, 60), between(3, 60));
        const int64_t needed = 2 * rows * columns + 2 * rows;
        Call call{{{"input", nullptr, {rows, columns}},
                   {"scratch", nullptr, {std::max<int64_t>(needed + one_of(0, 0, 0, 0, 5, 5, -1), 0)}},
                   {"output", nullptr, {rows, columns}}}};
        arena.lay_out(call.tensors);
        spoil_some(arena, call.tensors);
        const Tensor &input = call.tensors[0], &scratch = call.tensors[1], &output = call.tensors[2];
        judge_matrices(call.oracle, input, output);
        call.oracle.view(scratch);
        call.oracle.contiguous_last_axis(scratch);
        if (!input.has(0) && !call.oracle.illegal.contains("input")) {
          const Wide least = 2 * Wide{input.sizes[0]} * input.sizes[1] + 2 * Wide{input.sizes[0]};
          if (scratch.sizes[0] < least) call.oracle.refuse_for("scratch too small", "scratch.sizes[0]");
          call.oracle.apart(scratch, input, false);
          call.oracle.apart(scratch, output, false);
          call.scratch = {{"scratch", scratch.data, {static_cast<int64_t>(least)}, {1}, 0}};
        }
        call.launch = [=] { step04::softmax_unfused(input, output, scratch); };
        call.expected = [&arena, input] {
          return reference_softmax(values_of(arena, input), input.sizes[0], input.sizes[1]);
        };
        call.tolerance = {0, 2e-6};
        return call;
      },
      with(ANY_VIEW, {"rows share cells", "exception: interleaved", "scratch too small"}));
}

TEST_CASE("hostile views: attention, and its variant with sums in registers") {
  const auto run = [](const char* name, auto attention) {
    check_launcher(
        name,
        [&](const Arena& arena) {
          const int64_t batch = one_of(1, 1, 2), k_len = one_of(0, 1, 2, 4, 7);
          int64_t heads = one_of(0, 1, 2, 2, 2, 3), q_len = one_of(0, 1, 2, 3, 4, 5),
                  head_dim = one_of(1, 1, 2, 3, 5, 8, 8);
          const bool interlocking = one_in(20);
          if (interlocking) heads = 2, q_len = 3, head_dim = 1;
          const std::vector<int64_t> queries{batch, heads, q_len, head_dim}, keys{batch, heads, k_len, head_dim};
          Call call{{{"q", nullptr, queries}, {"k", nullptr, keys}, {"v", nullptr, keys}, {"out", nullptr, queries}}};
          arena.lay_out(call.tensors);
          if (one_in(6))  // one head of K and V for all, or one key
            for (std::size_t which : {1, 2}) call.tensors[which].strides[static_cast<std::size_t>(between(0, 2))] = 0;
          if (one_in(12)) {  // more keys than shared memory takes: a row stride of 0 makes few cells of them
            const int64_t many = one_of(10'000, 30'000, int64_t{1} << 32, LARGEST);
            for (std::size_t which : {1, 2}) {
              call.tensors[which].sizes[2] = many;
              call.tensors[which].strides[2] = 0;
            }
          }
          if (interlocking) {  // rows 0, 2, 4 of one head, 3, 5, 7 of the next
            call.tensors[3].strides = {8, 3, 2, 1};
            call.tensors[3].extent = arena.room(call.tensors[3]);
          }
          if (one_in(10)) --call.tensors[3].strides[static_cast<std::size_t>(between(0, 2))];  // by one cell too near
          if (one_in(15))  // a head dimension that the contract does not know
            for (Tensor& t : call.tensors) t = {t.name, t.data, {1, 1, 1, 257}, {257, 257, 257, 1}, arena.room(t)};
          spoil_some(arena, call.tensors);
          const Tensor &q = call.tensors[0], &k = call.tensors[1], &v = call.tensors[2], &out = call.tensors[3];
          Oracle& oracle = call.oracle;
          for (const Tensor& t : call.tensors) {
            oracle.view(t);
            oracle.contiguous_last_axis(t);
          }
          if (q.sizes[3] < 1 || q.sizes[3] > 256) oracle.refuse_for("head_dim outside 1 to 256", "q.sizes[3]");
          oracle.equal_sizes(k, q, {0, 1, 3});
          oracle.equal_sizes(v, k, {0, 1, 2, 3});
          oracle.equal_sizes(out, q, {0, 1, 2, 3});
          oracle.distinct(out);
          for (const Tensor* input : {&q, &k, &v}) oracle.apart(out, *input, false);
          // On chip: K with rows of an odd length, V, and for each of 8 warps a query and its scores.
          const Wide floats = Wide{k.sizes[2]} * (Wide{q.sizes[3] | 1} + q.sizes[3] + 8) + 8 * Wide{q.sizes[3]};
          if (!q.has(0) && floats * 4 > static_cast<Wide>(shared_memory_limit()))
            oracle.refuse_for("more keys than fit on chip", "shared memory for K and V");
          const bool causal = *rc::gen::arbitrary<bool>();
          call.launch = [=] { attention(q, k, v, out, causal, std::nullopt, nullptr); };
          call.expected = [=, &arena] {
            return reference_attention(values_of(arena, q), values_of(arena, k), values_of(arena, v), q.sizes[0],
                                       q.sizes[1], q.sizes[2], k.sizes[2], q.sizes[3],
                                       1 / std::sqrt(static_cast<double>(q.sizes[3])), causal);
          };
          call.tolerance = {2e-6, 1e-5};
          return call;
        },
        with(ANY_VIEW, {"head_dim outside 1 to 256", "elements share cells", "exception: interlocking axes",
                        "exception: interleaved", "more keys than fit on chip"}));
  };
  run("attention", step05::attention);
  run("attention_register_tiles", step05::attention_register_tiles);
}
