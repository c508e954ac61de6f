// Package measurement stores results of benchmarks as a JSON array. Benchmarks write it with Write; dev/performance
// reads it with Read and makes docs/performance.md from it.
package measurement

import (
	"encoding/json"
	"fmt"
	"os"
)

// Result is one measured number.
type Result struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Curve names the curve that the number is a point of, Line the line on it and X its position. Curve is empty for a
	// number that stands alone.
	Curve string  `json:"curve,omitempty"`
	Line  string  `json:"line,omitempty"`
	X     float64 `json:"x,omitempty"`
}

// Point returns the point at x of a line. Its key is CURVE_X_LINE, for example plugins_1000_start_ms.
func Point(curve string, x int, line string, value float64, unit string) Result {
	return Result{fmt.Sprintf("%s_%d_%s", curve, x, line), value, unit, curve, line, float64(x)}
}

// Write replaces the results in the file at path.
func Write(path string, results []Result) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Read returns the results in the file at path.
func Read(path string) ([]Result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var results []Result
	if err := json.Unmarshal(data, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
