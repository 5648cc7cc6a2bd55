#pragma once

// Prints one byte, has wrk(1) keep the connections busy for so many seconds, and prints the number of requests. Returns
// the exit code: 0 if there was wrk and every answer was right.
int run_wrk(int port, int connections, int seconds);
