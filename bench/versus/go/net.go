package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
)

// runLoad starts net-load ($NET_LOAD) against a server of this process, and measures from when it has connected until it
// has its answers. It may have made another number of requests than it was asked to, and then says how many.
func runLoad(l net.Listener, connections, requests int, kind string) outcome {
	port := l.Addr().(*net.TCPAddr).Port
	cmd := exec.Command(os.Getenv("NET_LOAD"), strconv.Itoa(port), strconv.Itoa(connections), strconv.Itoa(requests), kind)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	var b [1]byte
	io.ReadFull(out, b[:])
	w := startWatch()
	answered, _ := io.ReadAll(out)
	err = cmd.Wait()
	if made, bad := strconv.Atoi(string(answered)); bad == nil {
		requests = made
	}
	o := w.stop(requests)
	o.ok = err == nil
	o.extra["requests_per_s"] = float64(requests) / o.wall.Seconds()
	l.Close()
	return o
}

func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return l
}

func echo(connections int) func(n int) outcome {
	return func(n int) outcome {
		l := listen()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					buffer := make([]byte, 4096)
					for {
						n, err := c.Read(buffer)
						if err != nil {
							return
						}
						if _, err := c.Write(buffer[:n]); err != nil {
							return
						}
					}
				}()
			}
		}()
		return runLoad(l, connections, n, "echo")
	}
}

func httpHello(kind string) func(n int) outcome {
	return func(n int) outcome {
		l := listen()
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "Hello, world!")
		}))
		return runLoad(l, 64, n, kind)
	}
}
