// Everything.
#pragma once

#include <weft/future.h>
#include <weft/go.h>
#include <weft/run.h>
#include <weft/runtime.h>
#include <weft/time.h>
#include <weft/version.h>
