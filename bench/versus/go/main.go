// versus-go runs one workload of bench/versus once and prints one JSON line:
//
//	versus-go WORKLOAD [N] [--procs P]
//	versus-go --list
//
// What each workload does, and what N means, is in bench/README.md; the C++ programs do exactly the same.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// outcome is what a workload hands back: how many operations took how long, and whether the result was right.
type outcome struct {
	ops   int
	wall  time.Duration
	cpu   time.Duration
	ok    bool
	extra map[string]float64
}

type workload struct {
	n      int // the default of N
	warmUp int // N of the warm-up; 0: none, because it would spoil what is measured
	run    func(n int) outcome
}

var workloads = map[string]workload{
	"yield":          {4_000_000, 400_000, yield},
	"spawn":          {1_000_000, 100_000, spawn},
	"spawn_join":     {1_000_000, 100_000, spawnJoin},
	"conserve":       {10_000, 1_000, conserve},
	"spawn_to_run":   {5_000, 100, spawnToRun},
	"steal_burst":    {1_000, 50, stealBurst},
	"yield_n":        {1_000, 0, yieldN},
	"spawn_n":        {1_000, 0, spawnN},
	"parked":         {1_000_000, 0, parked},
	"parked_cost":    {1_000_000, 0, parkedCost},
	"fib":            {27, 18, fibForkJoin},
	"skynet":         {1_000_000, 10_000, skynet},
	"skynet_join":    {1_000_000, 10_000, skynetJoined},
	"pingpong":       {1_000_000, 100_000, pingpong},
	"buffered":       {10_000_000, 1_000_000, buffered},
	"mpmc":           {4_000_000, 400_000, mpmc},
	"select2":        {2_000_000, 200_000, select2},
	"select2_buf":    {4_000_000, 400_000, select2Buffered},
	"select16":       {1_000_000, 100_000, select16},
	"ring":           {3_000_000, 300_000, ring},
	"pipeline":       {30_000, 3_000, pipeline},
	"sieve":          {2_000, 200, sieve},
	"mutex":          {50_000_000, 5_000_000, mutexAlone},
	"mutex8":         {10_000_000, 1_000_000, mutexContended},
	"read_mostly":    {10_000_000, 1_000_000, readMostly},
	"echo_64":        {300_000, 20_000, echo(64)},
	"echo_1000":      {300_000, 20_000, echo(1000)},
	"http_hello":     {300_000, 20_000, httpHello("http")},
	"http_wrk":       {3, 1, httpHello("wrk")},
	"timer_chan":     {5_000_000, 500_000, timerChannel},
	"timer_func":     {5_000_000, 500_000, timerFunction},
	"timers_pending": {1_000_000, 100_000, timersPending},
	"load70":         {1_000, 50, load70},
	"sleepers":       {100_000, 0, sleepers},
	"sleep1ms":       {2_000, 10, sleepLateness},
	"hog":            {500, 10, hog},
	"blocking_naps":  {200, 20, blockingNaps},
	"blocking_empty": {20_000_000, 200_000, blockingEmpty},
}

// stopwatch measures wall time and the CPU time of the whole process.
type stopwatch struct {
	wall time.Time
	cpu  time.Duration
}

func startWatch() stopwatch { return stopwatch{cpu: cpuTime(), wall: time.Now()} }

func (w stopwatch) stop(ops int) outcome {
	wall := time.Since(w.wall)
	return outcome{ops: ops, wall: wall, cpu: cpuTime() - w.cpu, ok: true, extra: map[string]float64{}}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// procStatus returns a number of /proc/self/status: "Threads", or bytes for a line that ends in kB.
func procStatus(key string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == key+":" {
			v, _ := strconv.ParseFloat(f[1], 64)
			if len(f) == 3 && f[2] == "kB" {
				v *= 1024
			}
			return v
		}
	}
	return 0
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	i := int(p * float64(len(sorted)))
	if i >= len(sorted) {
		i = len(sorted) - 1
	}
	return sorted[i]
}

// addPercentiles sorts the samples.
func (o outcome) addPercentiles(samples []time.Duration, of string) {
	sort.Slice(samples, func(a, b int) bool { return samples[a] < samples[b] })
	o.extra[of+"p50_us"] = percentile(samples, .50).Seconds() * 1e6
	o.extra[of+"p99_us"] = percentile(samples, .99).Seconds() * 1e6
	o.extra[of+"p999_us"] = percentile(samples, .999).Seconds() * 1e6
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

func list() {
	names := make([]string, 0, len(workloads))
	for name := range workloads {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println(strings.Join(names, "\n"))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: versus-go WORKLOAD [N] [--procs P]\n       versus-go --list")
	os.Exit(64)
}

func main() {
	procs, n, name := runtime.NumCPU(), 0, ""
	for i := 1; i < len(os.Args); i++ {
		var err error
		switch arg := os.Args[i]; {
		case arg == "--list":
			list()
			return
		case arg == "--procs" && i+1 < len(os.Args):
			i++
			procs, err = strconv.Atoi(os.Args[i])
		case name == "":
			name = arg
		default:
			n, err = strconv.Atoi(arg)
		}
		if err != nil || n < 0 || procs < 1 {
			usage()
		}
	}
	w, known := workloads[name]
	if !known {
		usage()
	}
	if n == 0 {
		n = w.n
	}
	runtime.GOMAXPROCS(procs)
	if w.warmUp > 0 && w.warmUp <= n {
		w.run(w.warmUp)
		runtime.GC() // the warm-up's garbage is not the workload's
	}
	out := w.run(n)
	line := map[string]any{
		"impl": "go", "version": runtime.Version(), "workload": name, "procs": procs, "n": n, "ops": out.ops,
		"ns_per_op": float64(out.wall) / float64(out.ops), "ok": out.ok, "wall_ms": milliseconds(out.wall),
		"cpu_ms": milliseconds(out.cpu), "rss": procStatus("VmRSS"), "peak_rss": procStatus("VmHWM"),
		"threads": procStatus("Threads"),
	}
	for k, v := range out.extra {
		line[k] = v
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	if !out.ok {
		os.Exit(1)
	}
}
