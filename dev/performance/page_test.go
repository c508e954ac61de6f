package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// TestReplaceSection: what one target measures leaves the sections of the others as they are.
func TestReplaceSection(t *testing.T) {
	page := ""
	for _, step := range []struct{ target, text, want string }{
		{"a", "1\n", marker("a") + "1\n"},
		{"b", "2\n", marker("a") + "1\n\n" + marker("b") + "2\n"},
		{"a", "3\n", marker("a") + "3\n\n" + marker("b") + "2\n"},
		{"b", "4\n", marker("a") + "3\n\n" + marker("b") + "4\n"},
	} {
		var err error
		page, err = replaceSection(page, step.target, func(out io.Writer) error {
			_, err := fmt.Fprint(out, step.text)
			return err
		})
		if err != nil || page != step.want {
			t.Errorf("after %s: %q, %v; want %q", step.target, page, err, step.want)
		}
	}
}

func TestPower(t *testing.T) {
	for _, test := range []struct {
		exponent float64
		want     string
	}{{0, "0.00"}, {1, "1.00"}, {2, "2.00"}} {
		var list []measurement.Result
		value := 3.0
		for _, x := range []int{10, 100} {
			list = append(list, measurement.Point("c", x, "l", value, "ms"))
			for range int(test.exponent) {
				value *= 10
			}
		}
		if got := power(list); got != test.want {
			t.Errorf("exponent %v: %s", test.exponent, got)
		}
	}
}
