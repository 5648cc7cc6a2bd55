package main

import (
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const yielders = 8

func yield(n int) outcome {
	each := n / yielders
	var total atomic.Int64
	var wg sync.WaitGroup
	wg.Add(yielders)
	w := startWatch()
	for g := 0; g < yielders; g++ {
		go func() {
			for i := 0; i < each; i++ {
				runtime.Gosched()
			}
			total.Add(int64(each))
			wg.Done()
		}()
	}
	wg.Wait()
	out := w.stop(each * yielders)
	out.ok = total.Load() == int64(each*yielders)
	return out
}

// spawn's check is the WaitGroup itself: it lets go after exactly n calls of Done, and panics at one more.
func spawn(n int) outcome {
	var wg sync.WaitGroup
	w := startWatch()
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() { wg.Done() }()
	}
	wg.Wait()
	return w.stop(n)
}

// Of the ways to spawn and join that were tried (a channel or a WaitGroup, reused or new each time) the fastest.
func spawnJoin(n int) outcome {
	sum := 0
	result := make(chan int)
	w := startWatch()
	for i := 0; i < n; i++ {
		go func(i int) { result <- i }(i)
		sum += <-result
	}
	out := w.stop(n)
	out.ok = sum == n*(n-1)/2
	return out
}

const taskLength = 20 * time.Microsecond

func spinFor(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

func conserve(n int) outcome {
	var wg sync.WaitGroup
	w := startWatch()
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			spinFor(taskLength)
			wg.Done()
		}()
	}
	wg.Wait()
	out := w.stop(n)
	ideal := float64(n) * float64(taskLength) / float64(runtime.GOMAXPROCS(0))
	out.extra["over_ideal"] = float64(out.wall) / ideal
	return out
}

const quietTime = 300 * time.Microsecond // long enough for every other thread to have gone to sleep

func spawnToRun(n int) outcome {
	late := make([]time.Duration, n)
	w := startWatch()
	for i := range late {
		spinFor(quietTime)
		var ran atomic.Bool
		start := time.Now()
		go func() {
			late[i] = time.Since(start)
			ran.Store(true)
		}()
		for !ran.Load() {
		}
	}
	out := w.stop(n)
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	out.ok = late[0] > 0
	out.extra["p50_us"] = percentile(late, .50).Seconds() * 1e6
	out.extra["p99_us"] = percentile(late, .99).Seconds() * 1e6
	out.extra["p999_us"] = percentile(late, .999).Seconds() * 1e6
	return out
}
