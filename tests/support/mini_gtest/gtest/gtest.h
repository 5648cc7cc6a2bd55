// Found instead of GoogleTest's own header in a cross build, so that a test need not know which of the two it uses.
#pragma once
#include "mini_test.h"
