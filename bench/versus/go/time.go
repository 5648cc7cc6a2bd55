package main

import (
	"sort"
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
	sort.Slice(samples, func(a, b int) bool { return samples[a] < samples[b] })
	out.ok = samples[0] >= 0
	out.extra["p50_us"] = percentile(samples, .50).Seconds() * 1e6
	out.extra["p99_us"] = percentile(samples, .99).Seconds() * 1e6
	out.extra["p999_us"] = percentile(samples, .999).Seconds() * 1e6
	return out
}
