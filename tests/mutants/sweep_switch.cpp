// Linked into every program of a sweep's build. LADDER_SWEEP_MUTANT is the mutant that is on;
// -1 notes what is reached, in the file LADDER_SWEEP_REACHED, which is mapped so that children
// and crashes keep their notes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

extern "C" {
int ladder_sweep_mutant = 0;
alignas(4096) unsigned char ladder_sweep_reached[4096] = {};
}

[[gnu::constructor(101)]] static void ladder_sweep_begin() {
  const char* mutant = std::getenv("LADDER_SWEEP_MUTANT");
  ladder_sweep_mutant = mutant ? std::atoi(mutant) : 0;
  const char* file = std::getenv("LADDER_SWEEP_REACHED");
  if (ladder_sweep_mutant != -1 || !file) return;
  const int handle = open(file, O_RDWR | O_CREAT, 0644);
  if (handle < 0 || ftruncate(handle, sizeof(ladder_sweep_reached)) != 0) std::abort();
  if (mmap(ladder_sweep_reached, sizeof(ladder_sweep_reached), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, handle, 0) == MAP_FAILED)
    std::abort();
  close(handle);
}
