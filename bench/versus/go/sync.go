package main

import (
	"sync"
	"sync/atomic"
)

func mutexAlone(n int) outcome {
	var mu sync.Mutex
	count := 0
	w := startWatch()
	for i := 0; i < n; i++ {
		mu.Lock()
		count++
		mu.Unlock()
	}
	out := w.stop(n)
	out.ok = count == n
	return out
}

func mutexContended(n int) outcome {
	const contenders = 8
	each := n / contenders
	var mu sync.Mutex
	var wg sync.WaitGroup
	count := 0
	wg.Add(contenders)
	w := startWatch()
	for g := 0; g < contenders; g++ {
		go func() {
			for i := 0; i < each; i++ {
				mu.Lock()
				count++
				mu.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	out := w.stop(each * contenders)
	out.ok = count == each*contenders
	return out
}

func readMostly(n int) outcome {
	const contenders, writesOneIn = 8, 100
	each := n / contenders
	var mu sync.RWMutex
	var wg sync.WaitGroup
	var torn atomic.Int64
	a, b := 0, 0
	wg.Add(contenders)
	w := startWatch()
	for g := 0; g < contenders; g++ {
		go func() {
			unequal := int64(0)
			for i := 1; i <= each; i++ {
				if i%writesOneIn == 0 {
					mu.Lock()
					a++
					b++
					mu.Unlock()
				} else {
					mu.RLock()
					if a != b {
						unequal++
					}
					mu.RUnlock()
				}
			}
			torn.Add(unequal)
			wg.Done()
		}()
	}
	wg.Wait()
	out := w.stop(each * contenders)
	out.ok = torn.Load() == 0 && a == each/writesOneIn*contenders
	return out
}
