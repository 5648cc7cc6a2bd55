package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const yielders = 8

func yield(n int) outcome { return yieldAmong(yielders, n/yielders) }

func yieldAmong(goroutines, each int) outcome {
	var total atomic.Int64
	var wg sync.WaitGroup
	wg.Add(goroutines)
	w := startWatch()
	for g := 0; g < goroutines; g++ {
		go func() {
			for i := 0; i < each; i++ {
				runtime.Gosched()
			}
			total.Add(int64(each))
			wg.Done()
		}()
	}
	wg.Wait()
	out := w.stop(each * goroutines)
	out.ok = total.Load() == int64(each*goroutines)
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

// stealBurst does not measure the quiet before each burst.
func stealBurst(n int) outcome {
	const tasks, length = 200, 2 * time.Microsecond
	var bursts time.Duration
	w := startWatch()
	for i := 0; i < n; i++ {
		spinFor(quietTime)
		start := time.Now()
		var wg sync.WaitGroup
		wg.Add(tasks)
		for t := 0; t < tasks; t++ {
			go func() {
				spinFor(length)
				wg.Done()
			}()
		}
		wg.Wait()
		bursts += time.Since(start)
	}
	out := w.stop(n * tasks)
	out.wall = bursts
	ideal := float64(n*tasks) * float64(length) / float64(runtime.GOMAXPROCS(0))
	out.extra["over_ideal"] = float64(bursts) / ideal
	return out
}

// spawnN spawns the same number of goroutines, n at a time.
func spawnN(n int) outcome {
	rounds := 1_000_000 / n
	if rounds < 1 {
		rounds = 1
	}
	w := startWatch()
	for r := 0; r < rounds; r++ {
		spawn(n)
	}
	return w.stop(rounds * n)
}

func yieldN(n int) outcome {
	each := 2_000_000 / n
	if each < 1 {
		each = 1
	}
	return yieldAmong(n, each)
}

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
	out.addPercentiles(late, "")
	out.ok = late[0] > 0
	return out
}
