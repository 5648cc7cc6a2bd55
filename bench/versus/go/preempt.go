package main

/*
static void nothing(void) { __asm__ volatile(""); }
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func hog(n int) outcome {
	var stop atomic.Bool
	turns := 0
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		for ; !stop.Load(); turns++ {
		}
		wg.Done()
	}()
	samples := make([]time.Duration, 0, n)
	w := startWatch()
	for i := 0; i < n; i++ {
		began := time.Now()
		time.Sleep(time.Millisecond)
		samples = append(samples, time.Since(began)-time.Millisecond)
	}
	out := w.stop(n)
	stop.Store(true)
	wg.Wait()
	out.addPercentiles(samples, "")
	out.ok = turns > 0
	return out
}

func blockingNaps(n int) outcome {
	const naps = 20
	var wg sync.WaitGroup
	w := startWatch()
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			for k := 0; k < naps; k++ {
				ms := syscall.Timespec{Nsec: 1_000_000}
				syscall.Nanosleep(&ms, nil)
			}
			wg.Done()
		}()
	}
	wg.Wait()
	return w.stop(n * naps)
}

// blockingEmpty is cgo's cost: Go's way to call C code that may block.
func blockingEmpty(n int) outcome {
	w := startWatch()
	for i := 0; i < n; i++ {
		C.nothing()
	}
	return w.stop(n)
}
