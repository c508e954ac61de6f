package rewrite

import (
	"fmt"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Limits of a module. They bound the memory and time for reading, validating and interpreting it by a multiple of its
// size. The compiler has no such limits and therefore runs in a process of its own. Limits without a comment are about
// ten times the highest value known of real plugins (Go, Rust, C, AssemblyScript, QuickJS, CPython).
const (
	maxTypes     = 10_000
	maxValues    = 255 // parameters, or results, of a type
	maxImports   = 10_000
	maxFunctions = 200_000
	maxTables    = 100
	maxGlobals   = 10_000
	maxExports   = 10_000
	maxSegments  = 100_000   // of elements, of data: as in browsers
	maxName      = 10_000    // bytes
	maxBody      = 7_654_321 // bytes of a function: as in browsers
	maxLocals    = 50_000    // of a function with its parameters: as in browsers
	maxTargets   = 65_520    // of a br_table: as in browsers
	maxNesting   = 20_000    // of blocks: the Go compiler opens one for each part of a function
	maxConstant  = 32        // bytes of a constant expression

	// Sums over a module.
	maxAllValues = 100_000   // parameters and results of all types
	maxAllLocals = 1_000_000 // of all functions: the runtime keeps each

	// Counting may make the code maxGrowth times as large plus growthSlack. That of compilers grows by a tenth.
	maxGrowth   = 2
	growthSlack = 1 << 20
)

// LimitError says which limit a module exceeds.
type LimitError struct {
	// What names what is counted: the module has Count of it and may have Limit.
	What         string
	Count, Limit uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("it has %d %s, and at most %d are supported: "+
		"compilers stay far below, so split up what yours made", e.Count, e.What, e.Limit)
}

// checkLimit throws a LimitError if there are too many of what.
func checkLimit[N int | uint32 | uint64](what string, count N, limit int) {
	if uint64(count) > uint64(limit) { // an int may have 32 bits
		wasmbin.Throw(&LimitError{what, uint64(count), uint64(limit)})
	}
}
