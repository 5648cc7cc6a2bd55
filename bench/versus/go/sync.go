package main

import "sync"

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
