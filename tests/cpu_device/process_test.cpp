// How a whole process ends: after faults as ever, after a stack overflow with a message and status 2.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/expect.hpp"

namespace {

struct Ending {
  int status;  // as of exit; -1 after a signal
  std::string out, err;
};

// `environment` stands in front of the program's name: "LADDER_WORKERS=4".
// `kind` names another build of it: "_stripped".
Ending run_subject(const std::string& argument, const std::string& environment = "", const std::string& kind = "") {
  const std::string err_file = std::string(SUBJECT) + "." + argument + ".err";
  const std::string command =
      environment + " timeout 60 '" + SUBJECT + kind + "' " + argument + " 2>'" + err_file + "'";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = pclose(pipe);
  std::ostringstream err;
  err << std::ifstream(err_file).rdbuf();
  std::remove(err_file.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, judged(out), judged(err.str())};
}

}  // namespace

#ifndef LADDER_ADDRESS_SANITIZER_BUILD  // it reports a stack overflow itself
TEST_CASE("BC-098: 256 KiB of local variables: the message, and status 2") {
  const Ending ending = run_subject("array");
  CHECK(ending.status == 2);
  CHECK(ending.out == "");
  CHECK(
      ending.err.starts_with("stack overflow: a thread's local variables need more than the 64 KiB that the CPU device "
                             "gives each thread\n  in kernel (anonymous namespace)::large_local_array, block "));
  CHECK(ending.err.ends_with(", thread 0\n"));
}

TEST_CASE("BC-098: recursion without end: the message, and status 2") {
  const Ending ending = run_subject("recursion");
  CHECK(ending.status == 2);
  CHECK(ending.out == "");
  CHECK(ending.err ==
        "stack overflow: a thread's local variables need more than the 64 KiB that the CPU device gives each thread\n  "
        "in "
        "kernel (anonymous namespace)::recursion, block 0, thread 0\n");
}
#endif

TEST_CASE("after many faults, on all workers and without a buffer, the process ends well and says nothing more") {
  const Ending ending = run_subject("faults");
  CHECK(ending.status == 0);
  CHECK(ending.err == "");
  CHECK(ending.out.starts_with("barrier that not all threads reach: no thread of the block can go on\n"));
  CHECK(ending.out.ends_with("barrier_in_a_branch, block 0\nthe end\n"));
}

TEST_CASE("printf in a kernel") {
  const Ending ending = run_subject("print");
  CHECK(ending.status == 0);
  CHECK(ending.err == "");
  CHECK(ending.out == "block 0, thread 3: 2.50 from a kernel\nthe end\n");
}

TEST_CASE("a forked child launches, and so does its own child; one that does not launch ends as any process") {
  // What the parent's workers own is lost in a child, which LeakSanitizer calls a leak.
  const Ending ending = run_subject("fork", "ASAN_OPTIONS=detect_leaks=0 LADDER_WORKERS=4");
  CHECK(ending.status == 0);
  CHECK(ending.err == "");
  CHECK(ending.out ==
        "the parent, before: right\na child that launches: 0\na child that does not: 0\na child of a child: 0\n"
        "the parent, after: right\nthe end\n");
}

TEST_CASE("threads that have returned before a barrier: a note of the first block that has one, once for a kernel") {
  const Ending ending = run_subject("returned-threads");
  CHECK(ending.status == 0);
  CHECK(ending.out == "the end\n");
  CHECK(
      ending.err.starts_with("note: 31 threads had returned when the other 33 met in __syncthreads at "
                             "tests/cpu_device/subject.cu:"));
  CHECK(
      ending.err.ends_with("; before sm_70 this was undefined\n  in kernel (anonymous namespace)::returns_early, "
                           "block 0\n"));
  CHECK(std::count(ending.err.begin(), ending.err.end(), '\n') == 2);
}

TEST_CASE("LADDER_CHECKS=portability reports them instead") {
  const Ending ending = run_subject("returned-threads", "LADDER_CHECKS=portability");
  CHECK(ending.status == 2);
  CHECK(ending.err == "");
  CHECK(ending.out.starts_with("error: portability: threads return before a barrier that others reach"));
}

#ifndef LADDER_ADDRESS_SANITIZER_BUILD  // it takes these signals itself
TEST_CASE("abort() and an integer division by 0 in a kernel: the message, and status 2") {
  const Ending abort = run_subject("abort");
  CHECK(abort.status == 2);
  CHECK(abort.err ==
        "a kernel calls abort() or std::terminate()\n  in kernel (anonymous namespace)::aborts, block 0, "
        "thread 7\n");
#ifdef __x86_64__  // elsewhere the division gives a number
  const Ending division = run_subject("division");
  CHECK(division.status == 2);
  CHECK(division.err ==
        "a kernel divides an integer by 0, or the smallest one by -1; a GPU goes on with any value\n  in kernel "
        "(anonymous namespace)::divides, block 0, thread 5\n");
#endif
}
#endif

TEST_CASE("a variable of the environment that the device does not understand is refused, whatever the program does") {
  for (const char* value : {"abc", "", "0", "17", "-1", "+1", " 4", "4x", "99999999999999999999"}) {
    CAPTURE(value);
    const Ending ending = run_subject("description", "LADDER_WORKERS='" + std::string(value) + "'");
    CHECK(ending.status == 2);
    CHECK(ending.out == "error: LADDER_WORKERS is '" + std::string(value) + "', must be a number from 1 to 16\n");
    CHECK(run_subject("print", "LADDER_WORKERS='" + std::string(value) + "'").out == ending.out);
  }
  CHECK(run_subject("print", "LADDER_CHECKS=race").out ==
        "error: LADDER_CHECKS is 'race', must be none, uninitialised, races, portability or all\n");
  for (const char* value :
       {"sideways", "", "random", "random:", "random:x", "random:-1", "random:18446744073709551616"})
    CHECK(run_subject("print", "LADDER_ORDER='" + std::string(value) + "'").out ==
          "error: LADDER_ORDER is '" + std::string(value) +
              "', must be forward, reversed, warp-reversed or random:SEED\n");
  CHECK(run_subject("description", "LADDER_WORKERS=3 LADDER_CHECKS=none LADDER_ORDER=random:18446744073709551615")
            .out.starts_with("CPU device (limits of sm_90, 3 workers, "));
}

#ifdef LADDER_SEES_ACCESSES
TEST_CASE("a device that does not see its own kernel's accesses does not run as a checked one") {
  const Ending ending = run_subject("print", "", "_unseen");
  CHECK(ending.status == 2);
  CHECK(ending.err == "");
  CHECK(
      ending.out ==
      "error: the CPU device was built to see each access, and does not see those of its own kernel: the compiler has "
      "left out its callbacks, as with -flto. Build without that, or with -DLADDER_CHECKED=OFF\n");
}

TEST_CASE("a kernel that was compiled without the callbacks is not launched unseen") {
  const Ending ending = run_subject("print", "", "_flagless");
  CHECK(ending.status == 2);
  CHECK(
      ending.out ==
      "error: launch of (anonymous namespace)::prints: its file is compiled without -fsanitize=thread, and its accesses "
      "would not be seen; it needs the flags of kernel files (ladder_kernel_flags)\n");
}

TEST_CASE("without a symbol table a program says so, and takes threadIdx for no fault") {
  const Ending ending = run_subject("print", "", "_stripped");
  CHECK(ending.status == 2);
  CHECK(ending.out ==
        "error: the CPU device tells shared arrays by the program's symbol table, and this program has none: it was "
        "stripped\n");
}

TEST_CASE("a kernel without debug information: its address, and no other file's line") {
  const Ending ending = run_subject("copy-too-much", "", "_g0");
  CHECK(ending.status == 2);
  CHECK(
      ending.out.starts_with("error: out-of-bounds write to buffer 'out': index 48, size 48 (elements of 1 byte)\n"
                             "  in kernel (anonymous namespace)::copies, block 0, thread 3, at address 0x"));
  CHECK(ending.out.ends_with(" (compiled without debug information)\n"));
}

TEST_CASE("memset and memcpy of known size, also where _FORTIFY_SOURCE is asked for") {
  for (const char* kind : {"", "_fortified"}) {
    CAPTURE(kind);
    const Ending right = run_subject("copies", "LADDER_CHECKS=all", kind);
    CHECK(right.err == "");
    CHECK(right.out == "1 5\nthe end\n");
    const Ending too_much = run_subject("copy-too-much", "", kind);
    CHECK(too_much.status == 2);
    CHECK(
        too_much.out.starts_with("error: out-of-bounds write to buffer 'out': index 48, size 48 (elements of 1 byte)\n"
                                 "  in kernel (anonymous namespace)::copies, block 0, thread 3, at "));
  }
}

TEST_CASE("no room for the reserved addresses: what was wanted, and the limit") {
  const Ending ending = run_subject("fork", "ulimit -v 20000000; exec");
  CHECK(ending.status == 2);
  CHECK(ending.out ==
        "error: the CPU device reserves 256 GiB of addresses for its buffers, and the system refuses (ulimit -v, or "
        "vm.overcommit_memory)\n");
}
#endif
