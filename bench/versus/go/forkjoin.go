package main

import "sync"

func fibSerial(n int) int {
	a, b := 0, 1
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

// fib forks one half of every call down to the leaves, without a cut-off: the fork and the join are what is measured.
func fib(n int) int {
	if n < 2 {
		return n
	}
	a := make(chan int, 1)
	go func() { a <- fib(n - 1) }()
	b := fib(n - 2)
	return <-a + b
}

// fibForkJoin counts one operation a fork: fib(n+1) - 1 of them.
func fibForkJoin(n int) outcome {
	w := startWatch()
	result := fib(n)
	out := w.stop(fibSerial(n+1) - 1)
	out.ok = result == fibSerial(n)
	return out
}

// skynetNode sends the sum of the ordinals of the size leaves below it to parent.
func skynetNode(parent chan<- int, ordinal, size int) {
	if size == 1 {
		parent <- ordinal
		return
	}
	children := make(chan int)
	for i := 0; i < 10; i++ {
		go skynetNode(children, ordinal+i*(size/10), size/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-children
	}
	parent <- sum
}

func powerOfTenUpTo(n int) int {
	power := 1
	for power*10 <= n {
		power *= 10
	}
	return power
}

func skynet(n int) outcome {
	leaves := powerOfTenUpTo(n)
	result := make(chan int)
	w := startWatch()
	go skynetNode(result, 0, leaves)
	sum := <-result
	out := w.stop(leaves)
	out.ok = sum == leaves*(leaves-1)/2
	return out
}

// skynetJoinedNode returns that sum by way of memory.
func skynetJoinedNode(ordinal, size int) int {
	if size == 1 {
		return ordinal
	}
	var sums [10]int
	var group sync.WaitGroup
	group.Add(len(sums))
	for i := range sums {
		go func(i int) {
			sums[i] = skynetJoinedNode(ordinal+i*(size/10), size/10)
			group.Done()
		}(i)
	}
	group.Wait()
	sum := 0
	for _, s := range sums {
		sum += s
	}
	return sum
}

func skynetJoined(n int) outcome {
	leaves := powerOfTenUpTo(n)
	w := startWatch()
	sum := skynetJoinedNode(0, leaves)
	out := w.stop(leaves)
	out.ok = sum == leaves*(leaves-1)/2
	return out
}
