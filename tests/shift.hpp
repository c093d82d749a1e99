// The test of the tests. With LADDER_SHIFT_REFERENCES in the environment a test program is run with references that are
// wrong on purpose, and each of its test cases must fail, or be listed in tests/shift_exempt.txt with a reason.
#pragma once

/// True while message_of returns another text than the one that was thrown.
extern bool messages_shifted;

/// Runs this program's test cases so, instead of as usual. Every number that compare.hpp expects is three tolerances
/// off: a case that compared numbers must fail. The other cases run once more with wrong messages, and must fail then.
/// Prints each case that is blind, and each line of the list that is out of date; returns the exit status.
int run_shifted();
