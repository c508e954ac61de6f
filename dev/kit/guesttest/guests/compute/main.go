// Command compute prints the results of many small computations, to compare two ways of running it.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	fmt.Println("fib", fib(24))
	fmt.Printf("sha %x\n", sha256.Sum256([]byte(strings.Repeat("hako", 1000))))
	numbers := make([]int, 2000)
	for i := range numbers {
		numbers[i] = i * 7919 % 2003
	}
	slices.Sort(numbers)
	fmt.Println("sorted", slices.IsSorted(numbers), numbers[17], numbers[1999])
	var decoded map[string]any
	fmt.Println("json", json.Unmarshal([]byte(`{"a":[1,2.5,"x",null,true],"b":{"c":"\u3042"}}`), &decoded), decoded)
	fmt.Println("regexp", regexp.MustCompile(`(\w+)@(\w+)\.jp`).FindAllStringSubmatch("a@b.jp, cd@ef.jp", -1))
	for i := range 20 {
		x := float64(i) * 1.37
		fmt.Println(math.Sin(x), math.Sqrt(x), math.Pow(x, 3), int64(x*1e6),
			bits.OnesCount64(uint64(i)*0x9e3779b97f4a7c15))
	}
	for i, r := range "日本語 abc" {
		defer func() { fmt.Println("deferred", i, strconv.QuoteRune(r)) }()
	}
	results := make(chan int)
	for i := range 10 {
		go func() { results <- i * i }()
	}
	total := 0
	for range 10 {
		total += <-results
	}
	fmt.Println("goroutines", total)
	var nothing []int
	fmt.Println(nothing[total])
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}
