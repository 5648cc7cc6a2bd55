// main() of a test program that is built with mini_test.h.
#include "mini_test.h"

int main() { return weft_mini_test::run_all(); }
