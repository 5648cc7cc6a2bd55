// For the compiler only: a type that has channels of itself, whose conditions must not be looked at before the type is complete.
#include <weft/weft.h>

#include <string>

struct request {
  std::string text;
  weft::chan<request> reply;
  weft::send_chan<request> out;
  weft::recv_chan<request> in;
};

bool use(weft::chan<request> c, const request& r, request& to) { return c.try_send(r) && c.try_recv(to) == weft::recv_status{}; }
