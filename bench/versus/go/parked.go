package main

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// crowd is a number of goroutines that are all blocked in a receive from one channel.
type crowd struct {
	gate  chan struct{}
	woken atomic.Int64
	wg    sync.WaitGroup
}

// newCrowd returns once n goroutines stand at the gate.
func newCrowd(n int) *crowd {
	c := &crowd{gate: make(chan struct{})}
	var ready sync.WaitGroup
	ready.Add(n)
	c.wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			ready.Done()
			<-c.gate
			c.woken.Add(1)
			c.wg.Done()
		}()
	}
	ready.Wait()
	return c
}

// dismiss wakes them all and returns once each has run to its end.
func (c *crowd) dismiss() {
	close(c.gate)
	c.wg.Wait()
}

func parked(n int) outcome {
	before := procStatus("VmRSS")
	w := startWatch()
	c := newCrowd(n)
	out := w.stop(n)
	out.extra["create_ms"] = milliseconds(out.wall)
	out.extra["bytes_each"] = (procStatus("VmRSS") - before) / float64(n)
	start := time.Now()
	c.dismiss()
	out.extra["wake_ms"] = milliseconds(time.Since(start))
	out.ok = c.woken.Load() == int64(n)
	return out
}

// medianNs runs one of the workloads above three times beside the crowd and returns its median cost.
func medianNs(run func(int) outcome, n int) (float64, bool) {
	var ns [3]float64
	ok := true
	for i := range ns {
		out := run(n)
		ns[i] = float64(out.wall) / float64(out.ops)
		ok = ok && out.ok
	}
	sort.Float64s(ns[:])
	return ns[1], ok
}

func parkedCost(n int) outcome {
	const yields, spawns = 800_000, 100_000
	yield(yields)
	spawn(spawns)
	cost := map[string]float64{}
	w := startWatch()
	ok := true
	for _, level := range []struct {
		suffix string
		parked int
	}{{"none", 0}, {"few", n / 100}, {"all", n}} {
		c := newCrowd(level.parked)
		var yieldOk, spawnOk bool
		cost["yield_"+level.suffix], yieldOk = medianNs(yield, yields)
		cost["spawn_"+level.suffix], spawnOk = medianNs(spawn, spawns)
		c.dismiss()
		ok = ok && yieldOk && spawnOk && c.woken.Load() == int64(level.parked)
	}
	out := w.stop(3 * 3 * (yields + spawns))
	out.ok, out.extra = ok, cost
	cost["yield_growth"] = cost["yield_all"] / cost["yield_none"]
	cost["spawn_growth"] = cost["spawn_all"] / cost["spawn_none"]
	return out
}
