// Package fuel has the prices of what a runtime does for a guest, in the steps that package rewrite counts in the
// guest's own code. One step stands for about 5 ns of a core.
package fuel

const (
	// CallSteps is the price of every host function.
	CallSteps = 10
	// bytesPerStep is the number of bytes that may be copied for one step, as in the guest.
	bytesPerStep = 16
	// TextSteps is the price of one byte that is parsed as JSON, case-folded, matched against a pattern, or searched
	// for secrets.
	TextSteps = 1
	// ValueSteps is the price of one value that a component passes or gets, besides the bytes of strings.
	ValueSteps = 5
)

// CopySteps is the price of copying n bytes.
func CopySteps(n uint64) int64 { return int64(min(n, 1<<40) / bytesPerStep) }
