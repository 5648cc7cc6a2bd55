// System calls that return their result, or a negative error number. Not inlined, and so the only place where errno is
// looked at: a caller that parks between two calls may be on another thread by the second, and a compiler that sees
// errno used in both would use the first thread's.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace weft::io {

long call_read(int fd, void* to, std::size_t size) noexcept;
long call_write(int fd, const void* from, std::size_t size) noexcept;
long call_write_without_sigpipe(int fd, const void* from, std::size_t size) noexcept;
long call_pread(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept;
long call_pwrite(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept;
long call_recv(int fd, void* to, std::size_t size) noexcept;
long call_send(int fd, const void* from, std::size_t size) noexcept;
long call_sendmsg(int fd, const iovec* parts, std::size_t count) noexcept;
long call_recvfrom(int fd, void* to, std::size_t size, sockaddr* from, socklen_t* from_size) noexcept;
long call_sendto(int fd, const void* from, std::size_t size, const sockaddr* to, socklen_t to_size) noexcept;
long call_accept(int fd, sockaddr* from, socklen_t* from_size) noexcept;
long call_connect(int fd, const sockaddr* to, socklen_t to_size) noexcept;
long call_socket(int family, int type) noexcept;
long call_setsockopt(int fd, int level, int name, int value) noexcept;
long call_shutdown_write(int fd) noexcept;

// The events (POLLIN, ...) that hold now; 0: none.
long call_poll(int fd, short events) noexcept;

}  // namespace weft::io
