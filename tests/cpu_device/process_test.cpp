// How a whole process ends: after faults as ever, after a stack overflow with a message and status 2.
#include <doctest/doctest.h>
#include <sys/wait.h>

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

Ending run_subject(const std::string& argument) {
  const std::string err_file = std::string(SUBJECT) + "." + argument + ".err";
  const std::string command = std::string("timeout 60 '") + SUBJECT + "' " + argument + " 2>'" + err_file + "'";
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
