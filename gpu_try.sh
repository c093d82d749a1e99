set -u
root=$PWD
cfg="-DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_PREFIX_PATH=$root/.deps/usr -DLADDER_WERROR=ON"
tree() { mkdir -p /tmp/$1 && cp -r CMakeLists.txt CMakePresets.json cmake common steps tests docs /tmp/$1/; }
for v in B C D E; do tree $v; done
sed -i 's/const float4 access = \*reinterpret_cast<const float4\*>(from);/const float4 access = __ldcs(reinterpret_cast<const float4*>(from));/; s/const uint4 access = \*reinterpret_cast<const uint4\*>(from);/const uint4 access = __ldcs(reinterpret_cast<const uint4*>(from));/; s/\*reinterpret_cast<float4\*>(to) = \(make_float4([^;]*)\);/__stcs(reinterpret_cast<float4*>(to), \1);/; s/\*reinterpret_cast<uint4\*>(to) = \(make_uint4([^;]*)\);/__stcs(reinterpret_cast<uint4*>(to), \1);/' /tmp/B/common/kernel/access.cuh
grep -c __stcs /tmp/B/common/kernel/access.cuh
sed -i 's/, 512) : 1024;/, 512) : 512;/' /tmp/C/steps/04_softmax_fixed/vectorized.cuh; grep -c ": 512;" /tmp/C/steps/04_softmax_fixed/vectorized.cuh
python3 - <<'P'
p='/tmp/D/steps/02_relu_dropout/four_per_call.cuh'; s=open(p).read()
a=s.index('  const auto one = [&](int64_t i, uint32_t word)'); b=s.index('}\n\n// When the stream')
s=s[:a]+'''  const auto mask = [&](int64_t i) { return i >= 0 && i < n_elements; };
  const auto element = [&](int64_t i) { return mask(i) ? x[i] : 0.0f; };
  const float4 a = make_float4(element(offsets), element(offsets + 1), element(offsets + 2), element(offsets + 3));
  const float4 result = relu_dropout_of_four(a, words, p);
  if (mask(offsets)) out[offsets] = result.x;
  if (mask(offsets + 1)) out[offsets + 1] = result.y;
  if (mask(offsets + 2)) out[offsets + 2] = result.z;
  if (mask(offsets + 3)) out[offsets + 3] = result.w;
'''+s[b:]
open(p,'w').write(s)
p='/tmp/E/steps/02_relu_dropout/four_per_call.cuh'; s=open(p).read()
s=s.replace('out[i] = dropout(relu(x[i]), uniform_from(word), p);','out[i] = relu(dropout(x[i], uniform_from(word), p));')
open(p,'w').write(s)
P
build() { (cd $1 && cmake --preset cuda $cfg -DLADDER_TESTS=OFF >/dev/null 2>&1 && cmake --build --preset cuda --target $2 2>&1 | grep -E "error|FAILED" ); }
(cmake --preset cuda $cfg >/dev/null 2>&1; cmake --build --preset cuda --target bench_02 bench_04 bench_05 test_05_attention test_04_softmax_vectorized 2>&1 | grep -E "error|FAILED|warning") &
build /tmp/B bench_04 & build /tmp/C bench_04 & build /tmp/D bench_02 & build /tmp/E bench_02 &
wait
echo built $SECONDS
build/cuda/tests/test_05_attention 2>&1 | tail -4
build/cuda/tests/test_04_softmax_vectorized 2>&1 | tail -4
b() { $1 --benchmark_filter="$2" --benchmark_format=json 2>/dev/null | python3 -c "
import json,sys
d=json.load(sys.stdin)
for b in d['benchmarks']: print('$3', b['name'].split('/manual')[0].split('/iter')[0], b.get('error_message',''), round(b.get('GBps',b.get('TFLOPps',0)),2), round(b.get('share',0),4))"; }
for r in 1 2; do
b build/cuda/bench_04 softmax_vectorized A; b /tmp/B/build/cuda/bench_04 softmax_vectorized B; b /tmp/C/build/cuda/bench_04 'softmax_vectorized.*32768' C
b build/cuda/bench_02 in_flight A; b /tmp/D/build/cuda/bench_02 in_flight D; b /tmp/E/build/cuda/bench_02 in_flight E
b build/cuda/bench_05 . A
done
echo bench $SECONDS
ncu --clock-control none -k regex:register_tiles -c 1 --set full build/cuda/bench_05 --benchmark_filter=tiles > $OUT/ncu05.txt 2>&1
grep -E "Duration|Registers Per|Issue Slots Busy|Executed Ipc Active|Stall|Bank conf|FMA|Warp Cycles Per Issued|L1/TEX Hit|Mem Pipes|bank conf|Theoretical Occ|Est." $OUT/ncu05.txt | head -50
echo end $SECONDS
