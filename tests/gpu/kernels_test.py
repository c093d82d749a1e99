#!/usr/bin/env python3
"""kernels.py on listings as cuobjdump prints them, shortened by hand: it must see a spill, and a kernel that is not listed."""
import pathlib
import tempfile
import unittest

import kernels

ADD, SPILLING = "_Z3addPf", "_Z5spillPf"
SASS = """
Fatbin elf code:
================
arch = sm_80
code version = [1,7]
host = linux
compile_size = 64bit

\tcode for sm_80
\t\tFunction : _Z3addPf
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   LDG.E R2, [R2.64] ;                     /* 0x0000000402027981 */
                                                                           /* 0x000ea8000c1e1900 */

Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux
compile_size = 64bit

\tcode for sm_90
\t\tFunction : _Z3addPf
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                  /* 0x00000a00ff017b82 */
                                                                           /* 0x000fe20000000800 */
        /*0010*/                   IMAD.WIDE.U32 R2, R5, 0x100, R2 ;       /* 0x0000010005027825 */
        /*0020*/               @P0 EXIT ;                                  /* 0x000000000000094d */
        /*0030*/              @!P1 LDG.E.128 R4, desc[UR4][R4.64] ;        /* 0x0000000404049981 */
        /*0040*/                   LDG.E.128.CONSTANT R8, desc[UR4][R2.64] ;
        /*0050*/                   LDG.E R2, desc[UR4][R2.64] ;
        /*0060*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0070*/                   IMAD.HI.U32 R9, R2, -0x2daee0ad, RZ ;
        /*0080*/                   IMAD.MOV.U32 R9, RZ, RZ, R2 ;
        /*0090*/                   MUFU.EX2 R9, R9 ;
        /*00a0*/                   FFMA.FTZ R9, R9, R9, R2 ;
        /*00b0*/                   SHFL.BFLY PT, R3, R2, 0x10, 0x1f ;
        /*00c0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00d0*/                   LDS.64 R6, [R3] ;
        /*00e0*/                   STS [R3], R6 ;
        /*00f0*/                   STG.E.128 desc[UR4][R6.64], R4 ;
        /*0100*/                   EXIT ;
        /*0110*/                   BRA 0x110;
\t\t..........

\t\tFunction : _Z5spillPf
\t.headerflags\t@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   STL.64 [R1], R2 ;
        /*0010*/                   LDL R3, [R1] ;
        /*0020*/                   EXIT ;
"""
USAGE = """
Fatbin elf code:
================
arch = sm_80
host = linux

Resource usage:
 Common:
  GLOBAL:0
 Function _Z3addPf:
  REG:99 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:380 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_90
host = linux

Resource usage:
 Common:
  GLOBAL:0 CONSTANT[3]:28
 Function _Z3addPf:
  REG:12 STACK:0 SHARED:64 LOCAL:0 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z5spillPf:
  REG:255 STACK:16 SHARED:0 LOCAL:0 CONSTANT[0]:536
"""
LIST = (f"fact\tdevice\tNVIDIA H200 (sm_90, 132 multiprocessors)\nkernel\t{ADD}\tany n\t256\t12\t0\t64\t1024\t8\t64\t64\n"
        f"kernel\t{SPILLING}\tany n\t256\t255\t16\t0\t0\t1\t8\t64\n")


class Cuobjdump(unittest.TestCase):
    def test_only_the_device_s_architecture_counts(self):
        usage = kernels.resource_usage(kernels.of_architecture(USAGE, "sm_90"))
        self.assertEqual(usage[ADD]["REG"], 12)
        self.assertEqual(usage[ADD]["CONSTANT[0]"], 560)
        self.assertEqual(usage[SPILLING]["STACK"], 16)
        self.assertEqual(kernels.resource_usage(kernels.of_architecture(USAGE, "sm_80"))[ADD]["REG"], 99)
        self.assertEqual(kernels.of_architecture("no such line", "sm_90"), "no such line")
        self.assertEqual(kernels.resource_usage(kernels.of_architecture(USAGE.replace("sm_90", "sm_90a"), "sm_90"))[ADD]["REG"], 12)

    def test_instructions_by_kind_and_width(self):
        sass = kernels.opcodes(kernels.of_architecture(SASS, "sm_90"))
        self.assertEqual(sum(sass[ADD].values()), 18)
        self.assertEqual(kernels.instructions(sass[ADD]), {
            "global": "LDG.E 1, LDG.E.128 2, STG.E.128 1",
            "shared": "LDS.64 1, STS 1",
            "threads": "BAR 1, SHFL 1",
            "arithmetic": "FFMA 1, IMAD.HI 1, IMAD.WIDE 1, MUFU.EX2 1"})
        self.assertEqual(kernels.instructions(sass[SPILLING]), {"local": "LDL 1, STL.64 1"})

    def test_the_record_names_the_kernel_that_spills(self):
        facts, listed = kernels.parse_list(LIST)
        self.assertEqual(facts["device"], "NVIDIA H200 (sm_90, 132 multiprocessors)")
        usage = kernels.resource_usage(kernels.of_architecture(USAGE, "sm_90"))
        sass = kernels.opcodes(kernels.of_architecture(SASS, "sm_90"))
        text, spilling = kernels.record(facts, listed, usage, sass, {ADD: "add"})
        self.assertEqual(spilling, [SPILLING])
        self.assertEqual(text.splitlines(), [
            "add",
            "  shape             any n; blocks of 256 threads",
            "  registers         12",
            "  spills            none: stack 0, local 0 bytes; LDL 0, STL 0",
            "  shared memory     64 bytes static, 1024 dynamic",
            "  occupancy         1.00: 8 blocks of a multiprocessor, 64 of 64 warps",
            "  global            LDG.E 1, LDG.E.128 2, STG.E.128 1",
            "  shared            LDS.64 1, STS 1",
            "  threads           BAR 1, SHFL 1",
            "  arithmetic        FFMA 1, IMAD.HI 1, IMAD.WIDE 1, MUFU.EX2 1",
            "  in all            18 instructions",
            "",
            SPILLING,
            "  shape             any n; blocks of 256 threads",
            "  registers         255",
            "  spills            YES: stack 16, local 16 bytes; LDL 1, STL 1",
            "  shared memory     0 bytes static, 0 dynamic",
            "  occupancy         0.12: 1 blocks of a multiprocessor, 8 of 64 warps",
            "  local             LDL 1, STL.64 1",
            "  in all            3 instructions"])
        self.assertEqual(kernels.record(facts, listed[:1], usage, sass, {})[1], [])

    def test_what_is_missing_is_no_record(self):
        facts, listed = kernels.parse_list(LIST)
        usage = kernels.resource_usage(kernels.of_architecture(USAGE, "sm_90"))
        with self.assertRaisesRegex(kernels.NoRecord, f"says nothing of {ADD}"):
            kernels.record(facts, listed, usage, {}, {})
        for text in ("", "fact\tdevice\tx\n", "kernel\ttoo\tshort\n", "out of memory\n"):
            with self.assertRaises(kernels.NoRecord):
                kernels.parse_list(text)


class TheList(unittest.TestCase):
    def test_names_behind_any_attributes(self):
        source = """
            // __global__ void in_a_comment_kernel(int);
            __global__ void plain_kernel(float* x);
            template <int B>
            __global__ void __launch_bounds__(threads_for(B) * rows(B))
                bounded_kernel(float* x) { f(x); }
            /* __global__ */ __global__ void __launch_bounds__(256) __cluster_dims__(2, 1, 1) cluster_kernel() {}
            static __global__ void static_kernel() {}
        """
        self.assertEqual(kernels.kernel_names(source), ["plain_kernel", "bounded_kernel", "cluster_kernel", "static_kernel"])

    def test_a_kernel_that_is_missing_on_either_side_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "steps/01_add").mkdir(parents=True)
            (root / "tests/gpu").mkdir(parents=True)
            self.assertIn("no kernel at all", self.listed(root, "", "")[0])
            kernel = "__global__ void add_kernel(float*);"
            self.assertEqual(self.listed(root, kernel, "record(step01::add_kernel<256>);"), [])
            self.assertEqual(self.listed(root, kernel, "// step01::add_kernel"),
                             ["step01::add_kernel of steps/ is not in tests/gpu/kernels.cu"])
            self.assertEqual(self.listed(root, kernel, "step01::add_kernel step02::add_kernel"),
                             ["step02::add_kernel of tests/gpu/kernels.cu is not in steps/"])

    @staticmethod
    def listed(root, kernel, listing):
        (root / "steps/01_add/add.cuh").write_text(kernel)
        (root / "tests/gpu/kernels.cu").write_text(listing)
        return kernels.check_list(root)


if __name__ == "__main__":
    unittest.main()
