package main

import (
	"runtime"
	"sync"
	"time"
)

func timerChannel(n int) outcome {
	stopped := 0
	w := startWatch()
	for i := 0; i < n; i++ {
		if time.NewTimer(time.Hour).Stop() {
			stopped++
		}
	}
	out := w.stop(n)
	out.ok = stopped == n
	return out
}

func timerFunction(n int) outcome {
	stopped := 0
	w := startWatch()
	for i := 0; i < n; i++ {
		if time.AfterFunc(time.Hour, func() {}).Stop() {
			stopped++
		}
	}
	out := w.stop(n)
	out.ok = stopped == n
	return out
}

// nextRandom gives the same naps in every program.
func nextRandom(state *uint64) uint64 {
	*state = *state*6364136223846793005 + 1442695040888963407
	return *state >> 33
}

func sleepers(n int) outcome {
	var wg sync.WaitGroup
	wg.Add(n)
	w := startWatch()
	for i := 0; i < n; i++ {
		go func(state uint64) {
			for nap := 0; nap < 5; nap++ {
				time.Sleep(time.Duration(1+nextRandom(&state)%100) * time.Millisecond)
			}
			wg.Done()
		}(uint64(i))
	}
	wg.Wait()
	return w.stop(5 * n)
}

func sleepLateness(n int) outcome {
	samples := make([]time.Duration, 0, n)
	w := startWatch()
	for i := 0; i < n; i++ {
		began := time.Now()
		time.Sleep(time.Millisecond)
		samples = append(samples, time.Since(began)-time.Millisecond)
	}
	out := w.stop(n)
	out.addPercentiles(samples, "")
	out.ok = samples[0] >= 0
	return out
}

// load70 has 14 clients a P; each wakes every millisecond, whatever happened before, and spawns a task of 50 µs.
// One that falls far behind, because the machine did something else, does not try to catch up.
func load70(n int) outcome {
	const period, patience, length = time.Millisecond, 10 * time.Millisecond, 50 * time.Microsecond
	clients := 14 * runtime.GOMAXPROCS(0)
	late, spawned := make([]time.Duration, clients*n), make([]time.Duration, clients*n)
	var wg sync.WaitGroup
	wg.Add(clients * (n + 1))
	w := startWatch()
	begin := time.Now()
	for c := 0; c < clients; c++ {
		go func(c int) {
			state := uint64(c)
			due := begin.Add(time.Duration(nextRandom(&state) % uint64(period)))
			for i := c * n; i < (c+1)*n; i++ {
				due = due.Add(period)
				time.Sleep(time.Until(due))
				now := time.Now()
				late[i] = now.Sub(due)
				if late[i] > patience {
					due = now
				}
				go func(sample *time.Duration) {
					*sample = time.Since(now)
					spinFor(length)
					wg.Done()
				}(&spawned[i])
			}
			wg.Done()
		}(c)
	}
	wg.Wait()
	out := w.stop(clients * n)
	out.addPercentiles(late, "late_")
	out.addPercentiles(spawned, "spawn_")
	out.ok = late[0] >= 0 && spawned[0] > 0
	return out
}

// timersPending has n timers wait all at once, and stops them in another order than they were made in.
func timersPending(n int) outcome {
	timers := make([]*time.Timer, 0, n)
	state := uint64(1)
	stopped := 0
	w := startWatch()
	for i := 0; i < n; i++ {
		timers = append(timers, time.AfterFunc(time.Hour+time.Duration(nextRandom(&state)%3_600_000)*time.Millisecond, func() {}))
	}
	for step := 0; step < 2; step++ {
		for i := step; i < n; i += 2 {
			if timers[i].Stop() {
				stopped++
			}
		}
	}
	out := w.stop(n)
	out.ok = stopped == n
	return out
}
