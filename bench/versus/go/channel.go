package main

import "sync"

func pingpong(n int) outcome {
	ping, pong := make(chan int), make(chan int)
	w := startWatch()
	go func() {
		for v := range ping {
			pong <- v + 1
		}
		close(pong)
	}()
	v := 0
	for i := 0; i < n; i++ {
		ping <- v
		v = <-pong
	}
	out := w.stop(n)
	close(ping)
	_, open := <-pong
	out.ok = v == n && !open
	return out
}

func buffered(n int) outcome {
	ch := make(chan int, 128)
	w := startWatch()
	go func() {
		for i := 0; i < n; i++ {
			ch <- i
		}
		close(ch)
	}()
	sum, count := 0, 0
	for v := range ch {
		sum += v
		count++
	}
	out := w.stop(n)
	out.ok = count == n && sum == n*(n-1)/2
	return out
}

func mpmc(n int) outcome {
	const sides = 4
	each := n / sides
	ch := make(chan int, 64)
	var producers, consumers sync.WaitGroup
	var sums [sides]struct{ sum, count, _, _, _, _, _, _ int }
	producers.Add(sides)
	consumers.Add(sides)
	w := startWatch()
	for p := 0; p < sides; p++ {
		go func(p int) {
			for i := 0; i < each; i++ {
				ch <- p*each + i
			}
			producers.Done()
		}(p)
		go func(p int) {
			sum, count := 0, 0
			for v := range ch {
				sum += v
				count++
			}
			sums[p].sum, sums[p].count = sum, count
			consumers.Done()
		}(p)
	}
	producers.Wait()
	close(ch)
	consumers.Wait()
	total := each * sides
	out := w.stop(total)
	sum, count := 0, 0
	for _, s := range sums {
		sum += s.sum
		count += s.count
	}
	out.ok = count == total && sum == total*(total-1)/2
	return out
}

func selectOverTwo(n, capacity int) outcome {
	each := n / 2
	a, b := make(chan int, capacity), make(chan int, capacity)
	produce := func(ch chan<- int, first int) {
		for i := 0; i < each; i++ {
			ch <- first + i
		}
	}
	w := startWatch()
	go produce(a, 0)
	go produce(b, each)
	sum := 0
	for i := 0; i < 2*each; i++ {
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		}
	}
	total := 2 * each
	out := w.stop(total)
	out.ok = sum == total*(total-1)/2
	return out
}

func select2(n int) outcome         { return selectOverTwo(n, 0) }
func select2Buffered(n int) outcome { return selectOverTwo(n, 128) }

// select16 is written out: reflect.Select, the only way to select over a slice of channels, is many times slower.
func select16(n int) outcome {
	const sources = 16
	each := n / sources
	var c [sources]chan int
	for i := range c {
		c[i] = make(chan int)
	}
	w := startWatch()
	for s := range c {
		go func(out chan<- int, first int) {
			for i := 0; i < each; i++ {
				out <- first + i
			}
		}(c[s], s*each)
	}
	total := each * sources
	sum, v := 0, 0
	for i := 0; i < total; i++ {
		select {
		case v = <-c[0]:
		case v = <-c[1]:
		case v = <-c[2]:
		case v = <-c[3]:
		case v = <-c[4]:
		case v = <-c[5]:
		case v = <-c[6]:
		case v = <-c[7]:
		case v = <-c[8]:
		case v = <-c[9]:
		case v = <-c[10]:
		case v = <-c[11]:
		case v = <-c[12]:
		case v = <-c[13]:
		case v = <-c[14]:
		case v = <-c[15]:
		}
		sum += v
	}
	out := w.stop(total)
	out.ok = sum == total*(total-1)/2
	return out
}

func ring(n int) outcome {
	const members = 503
	var links [members]chan int
	for i := range links {
		links[i] = make(chan int)
	}
	// The token counts down; whoever receives 0 says who it is and the ring is closed one by one.
	last := make(chan int)
	var wg sync.WaitGroup
	wg.Add(members)
	w := startWatch()
	for i := range links {
		go func(i int) {
			in, out := links[i], links[(i+1)%members]
			for token := range in {
				if token == 0 {
					last <- i
				} else {
					out <- token - 1
				}
			}
			wg.Done()
		}(i)
	}
	links[0] <- n
	at := <-last
	out := w.stop(n)
	for _, link := range links {
		close(link)
	}
	wg.Wait()
	out.ok = at == n%members
	return out
}

func pipeline(n int) outcome {
	const stages = 100
	first := make(chan int)
	w := startWatch()
	last := first
	for s := 0; s < stages; s++ {
		in, out := last, make(chan int)
		go func() {
			for v := range in {
				out <- v + 1
			}
			close(out)
		}()
		last = out
	}
	go func() {
		for i := 0; i < n; i++ {
			first <- i
		}
		close(first)
	}()
	sum, count := 0, 0
	for v := range last {
		sum += v
		count++
	}
	out := w.stop(n * stages)
	out.ok = count == n && sum == n*(n-1)/2+n*stages
	return out
}

// nthPrime is the check for sieve.
func nthPrime(n int) int {
	for candidate := 2; ; candidate++ {
		prime := true
		for d := 2; d*d <= candidate; d++ {
			if candidate%d == 0 {
				prime = false
				break
			}
		}
		if prime {
			n--
			if n == 0 {
				return candidate
			}
		}
	}
}

// sieve sends the numbers up to the n-th prime through a chain that grows by one filter a prime: n of them.
func sieve(n int) outcome {
	limit := nthPrime(n)
	ch := make(chan int)
	w := startWatch()
	go func(out chan<- int) {
		for i := 2; i <= limit; i++ {
			out <- i
		}
		close(out)
	}(ch)
	count, last := 0, 0
	for {
		prime, open := <-ch
		if !open {
			break
		}
		count, last = count+1, prime
		out := make(chan int)
		go func(in <-chan int) {
			for v := range in {
				if v%prime != 0 {
					out <- v
				}
			}
			close(out)
		}(ch)
		ch = out
	}
	out := w.stop(n)
	out.ok = count == n && last == limit
	return out
}
